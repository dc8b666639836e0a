// SPDX-License-Identifier: Apache-2.0
//
// The memory model: what a queue pair, a completion queue or a shared receive
// queue costs before it exists, by the rule of the provider that will allocate
// it. One pure function each; freestanding: no allocation, no exceptions, no
// dependency, so that the guard can carry it into other people's processes.
// Sources of the rules: the provider functions named in each provider's file.
// Which providers there are and what they have: registry.h.
#pragma once

#include <cstdint>

#include "queue_memory/device_limits.h"

namespace purser::queue_memory {

enum class Provider : uint8_t {
  kUnknown,
  kMlx5,
  kMlx4,
  kIrdma,
  kBnxtRe,
  kEfa,
  kErdma,
  kHns,
  kMana,
  kQedr,
  kRxe,
  kSiw,
  kOcrdma,
  kCxgb4,
  kIonic,
};

// rdma-core's name of the provider ("mlx5", "rxe"; "unknown"). Never null.
const char* ProviderName(Provider provider);
// From rdma-core's name or the kernel driver's ("mlx5_core", "rdma_rxe");
// kUnknown where not recognised.
Provider ProviderFromName(const char* name);

enum class QueuePairType : uint8_t {
  kRc,
  kUc,
  kUd,
  kXrcSend,
  kRawPacket,
  kDci,  // mlx5: dynamically connected initiator
  kSrd,  // efa: scalable reliable datagram
};
// "RC", "XRC_SEND", … Never null.
const char* QueuePairTypeName(QueuePairType type);

// Operations that a queue pair will be asked for. kDefaultSendOps: what plain
// ibv_create_qp implies.
enum SendOps : uint32_t {
  kDefaultSendOps = 0,
  kSendOpsPlain = 1u << 0,   // SEND, RDMA WRITE, RDMA READ and their variants
  kSendOpsAtomic = 1u << 1,  // compare-and-swap, fetch-and-add
  kSendOpsBindOrInv = 1u << 2,    // BIND_MW, LOCAL_INV
  kSendOpsInlineWrite = 1u << 3,  // efa: RDMA WRITE of inline data (efadv)
};

struct QueuePairRequest {
  QueuePairType type = QueuePairType::kRc;
  uint32_t send_ops = kDefaultSendOps;
  uint32_t max_send_wr = 0;
  uint32_t max_send_sge = 0;
  uint32_t max_inline_data = 0;  // bytes
  uint32_t max_recv_wr = 0;
  uint32_t max_recv_sge = 0;
  bool uses_srq = false;
  // Bytes of the header of segmented sends (ibv_qp_init_attr_ex); only mlx5
  // has a rule for it.
  uint32_t max_tso_header = 0;

  friend constexpr bool operator==(const QueuePairRequest&,
                                   const QueuePairRequest&) = default;
};

struct SharedReceiveQueueRequest {
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;
};

// Bytes by who pays: the creating process's memory cgroup, or kernel memory
// that no cgroup is charged for.
struct Charge {
  uint64_t container = 0;
  uint64_t node = 0;
  constexpr uint64_t total() const { return container + node; }
  constexpr Charge& operator+=(Charge other) {
    container += other.container;
    node += other.node;
    return *this;
  }
  friend constexpr Charge operator+(Charge a, Charge b) { return a += b; }
  friend constexpr bool operator==(const Charge&, const Charge&) = default;
};

enum class Exactness : uint8_t { kExact, kEstimated, kFallback };

// Which limit refuses the request. The name is that of the field in verbs, or
// of the joint rule.
enum class Limit : uint8_t {
  kNone,
  kQueuePairType,  // the provider has no such type
  kMaxSendWr,
  kMaxRecvWr,
  kMaxSendSge,
  kMaxRecvSge,
  kMaxInlineData,
  kSendWqeSize,  // gather list or inline data make the send WQE larger than the
                 // device takes; bytes
  kReceiveWqeSize,   // bytes
  kSendRingSize,     // wr x WQE size above what the device takes; mlx5: basic
                     // blocks
  kReceiveRingSize,  // irdma: quanta
  kMaxCqe,
  kMaxSrqWr,
  kMaxSrqSge,
  kSharedReceiveQueue,  // the provider has none
  // Too little was asked; `allowed` is the least.
  kLeastSendWr,
  kLeastRecvWr,
  kLeastRecvSge,
  kLeastSrqWr,
};
inline constexpr Limit kLastLimit = Limit::kLeastSrqWr;
// "max_send_wr", "send WQE size", … Never null.
const char* LimitName(Limit limit);
// Less was asked than `allowed`, not more.
constexpr bool IsLeast(Limit limit) { return limit >= Limit::kLeastSendWr; }

struct Refusal {
  Limit limit = Limit::kNone;
  uint64_t asked = 0;
  uint64_t allowed = 0;
  constexpr explicit operator bool() const { return limit != Limit::kNone; }
  friend constexpr bool operator==(const Refusal&, const Refusal&) = default;
};

// One ring as allocated.
struct Ring {
  uint32_t stride = 0;  // bytes of one entry
  uint32_t slots = 0;   // entries that can really be posted
  uint64_t bytes = 0;   // the ring proper: without header and page rounding
  friend constexpr bool operator==(const Ring&, const Ring&) = default;
};

struct QueueMemory {
  Refusal refusal;  // when set, all below is zero
  Exactness exactness = Exactness::kExact;
  Ring send_ring, receive_ring, completion_ring, shared_receive_ring;

  Charge send;  // rings as mapped; where one buffer holds both, without its
                // page rounding
  Charge receive;
  Charge completion;
  Charge shared_receive;
  Charge arrays;    // the provider's arrays beside the rings: work request ids,
                    // shadow queues
  Charge overhead;  // page rounding, structs, doorbell records, the kernel's
                    // page arrays
  uint64_t buffer_bytes = 0;  // queue buffers as allocated, page-rounded: part
                              // of the above, for comparison

  // The kernel's objects and the adapter's context in host memory. Always an
  // estimate, for planning; in no other figure here, not in total() either.
  Charge context;

  // What ibv_create_qp (ibv_create_cq, ibv_create_srq) will write back.
  uint32_t cap_send_wr = 0, cap_send_sge = 0, cap_inline_data = 0,
           cap_recv_wr = 0, cap_recv_sge = 0, cap_cqe = 0, cap_srq_wr = 0,
           cap_srq_sge = 0;

  constexpr Charge total() const {
    return send + receive + completion + shared_receive + arrays + overhead;
  }
  friend constexpr bool operator==(const QueueMemory&,
                                   const QueueMemory&) = default;
};

// Memory of one queue pair without its completion queues. Pure; ~100 ns; safe
// for any argument values (2^32-1 is refused or computed, never wrapped).
QueueMemory QueuePairMemory(Provider provider, const DeviceLimits& limits,
                            const QueuePairRequest& request);

// Memory of one completion queue of at least `cqe` entries. No provider makes
// one of 0 entries: refused by kMaxCqe.
QueueMemory CompletionQueueMemory(Provider provider, const DeviceLimits& limits,
                                  uint32_t cqe);

// Memory of one shared receive queue. 0 entries are refused by kLeastSrqWr.
QueueMemory SharedReceiveQueueMemory(Provider provider,
                                     const DeviceLimits& limits,
                                     const SharedReceiveQueueRequest& request);

// Sum of two results (a queue pair and its completion queue); the refusal and
// the exactness are the worse of both. Bytes and slots add up; strides and
// capacities are the larger of both.
QueueMemory Sum(const QueueMemory& a, const QueueMemory& b);

// The textbook sum that the field reckons with: send wr x (64 + 16 x sge) +
// receive wr x (64 + 16 x sge). UINT64_MAX where it exceeds 64 bits.
uint64_t TextbookBytes(const QueuePairRequest& request);

}  // namespace purser::queue_memory
