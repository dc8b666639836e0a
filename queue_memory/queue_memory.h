// SPDX-License-Identifier: Apache-2.0
//
// The memory model: what a queue pair or a completion queue costs before it
// exists, by the rule of the provider that will allocate it. One pure function
// each; freestanding: no allocation, no exceptions, no dependency, so that the
// guard can carry it into other people's processes. Sources of the rules: the
// provider functions named in each provider's file.
#pragma once

#include <cstdint>

namespace purser::queue_memory {

enum class Provider : uint8_t { kUnknown, kMlx5, kRxe };

// rdma-core's name of the provider ("mlx5", "rxe"; "unknown"). Never null.
const char* ProviderName(Provider provider);
// From rdma-core's name or the kernel driver's ("mlx5_core", "rdma_rxe");
// kUnknown where not recognised.
Provider ProviderFromName(const char* name);

enum class QueuePairType : uint8_t { kRc, kUc, kUd, kXrcSend, kRawPacket };

// Operations that a queue pair will be asked for. kDefaultSendOps: what plain
// ibv_create_qp implies.
enum SendOps : uint32_t {
  kDefaultSendOps = 0,
  kSendOpsPlain = 1u << 0,   // SEND, RDMA WRITE, RDMA READ and their variants
  kSendOpsAtomic = 1u << 1,  // compare-and-swap, fetch-and-add
  kSendOpsBindOrInv = 1u << 2,  // BIND_MW, LOCAL_INV
};

// What the device can do. 0: not told; the model then takes the provider's
// named default.
struct DeviceLimits {
  uint32_t max_qp_wr = 0;        // ibv_device_attr
  uint32_t max_sge = 0;          // ibv_device_attr
  uint32_t max_cqe = 0;          // ibv_device_attr
  uint32_t max_inline_data = 0;  // bytes
  uint32_t max_sq_desc_sz = 0;   // mlx5: bytes of the largest send WQE
  uint32_t max_rq_desc_sz = 0;   // mlx5: bytes of the largest receive WQE
  uint32_t max_send_wqebb = 0;   // mlx5: 64-byte basic blocks in a send ring
  uint32_t cqe_size = 0;         // bytes
  uint32_t page_size = 0;        // bytes, a power of two
  // rxe: ibv_create_qp writes back the slots that the ring really has. Linux
  // 6.1 writes back what was asked instead; sizes are the same on both.
  bool writes_back_real_slots = true;
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
  kReceiveWqeSize,  // bytes
  kSendRingSize,    // wr x WQE size above what the device takes; mlx5: basic
                    // blocks
  kMaxCqe,
};
const char* LimitName(
    Limit limit);  // "max_send_wr", "send WQE size", … Never null.

struct Refusal {
  Limit limit = Limit::kNone;
  uint64_t asked = 0;
  uint64_t allowed = 0;
  constexpr explicit operator bool() const { return limit != Limit::kNone; }
};

// One ring as allocated.
struct Ring {
  uint32_t stride = 0;  // bytes of one entry
  uint32_t slots = 0;   // entries that can really be posted
  uint64_t bytes = 0;   // the ring proper: without header and page rounding
};

struct QueueMemory {
  Refusal refusal;  // when set, all below is zero
  Exactness exactness = Exactness::kExact;
  Ring send_ring, receive_ring, completion_ring;

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

  // What ibv_create_qp (ibv_create_cq) will write back.
  uint32_t cap_send_wr = 0, cap_send_sge = 0, cap_inline_data = 0,
           cap_recv_wr = 0, cap_recv_sge = 0, cap_cqe = 0;

  constexpr Charge total() const {
    return send + receive + completion + shared_receive + arrays + overhead;
  }
};

// Memory of one queue pair without its completion queues. Pure; ~100 ns; safe
// for any argument values (2^32-1 is refused or computed, never wrapped).
QueueMemory QueuePairMemory(Provider provider, const DeviceLimits& limits,
                            const QueuePairRequest& request);

// Memory of one completion queue of at least `cqe` entries. No provider makes
// one of 0 entries: refused by kMaxCqe.
QueueMemory CompletionQueueMemory(Provider provider, const DeviceLimits& limits,
                                  uint32_t cqe);

// Sum of two results (a queue pair and its completion queue); the refusal and
// the exactness are the worse of both. Bytes and slots add up; strides and
// capacities are the larger of both.
QueueMemory Sum(const QueueMemory& a, const QueueMemory& b);

// The textbook sum that the field reckons with: send wr x (64 + 16 x sge) +
// receive wr x (64 + 16 x sge). UINT64_MAX where it exceeds 64 bits.
uint64_t TextbookBytes(const QueuePairRequest& request);

}  // namespace purser::queue_memory
