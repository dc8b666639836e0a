// SPDX-License-Identifier: Apache-2.0
//
// mana (Microsoft Azure): four queues of a reliable connection, each an
// anonymous mapping of the process. Rules from rdma-core providers/mana: qp.c,
// mana.c, mana.h, cq.c (functions named below). Inline data makes no difference
// to sizes.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kSge = 16;
constexpr uint32_t kWqeMultiple = 32;
constexpr uint32_t kSendHeader = 32;
constexpr uint32_t kReceiveHeader = 16;
constexpr uint32_t kRollbackArea = 16;  // after the requester's send ring
constexpr uint32_t kFurtherQueues = 2;  // of a page each
constexpr uint32_t kShadowEntry = 24;
constexpr uint32_t kQueuePairStruct = 648;
constexpr uint32_t kCompletionQueueStruct = 272;

// get_large_wqe_size, get_wqe_size.
uint64_t SendStride(uint32_t sge) {
  return RoundUp(uint64_t{kSge} * (uint64_t{Max(sge, 1u)} + 1) + kSendHeader,
                 kWqeMultiple);
}

uint64_t ReceiveStride(uint32_t sge) {
  return RoundUp(uint64_t{kSge} * Max(sge, 1u) + kReceiveHeader, kWqeMultiple);
}

// get_queue_size, align_hw_size. What can be posted is bounded by the shadow
// queue.
Ring Queue(const DeviceLimits& limits, uint32_t wr, uint64_t stride) {
  return {
      .stride = static_cast<uint32_t>(stride),
      .slots =
          static_cast<uint32_t>(Min<uint64_t>(NextPowerOfTwo(wr), UINT32_MAX)),
      .bytes = NextPowerOfTwo(Max<uint64_t>(wr * stride, limits.page_size))};
}

// create_shadow_queue.
uint64_t ShadowBytes(const DeviceLimits& limits, uint32_t wr) {
  return RoundUpToPages(kShadowEntry * NextPowerOfTwo(wr), limits.page_size);
}

// mana_create_qp_rnic.
QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request))
    return Refused(refusal);
  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  memory.send_ring =
      Queue(limits, request.max_send_wr, SendStride(request.max_send_sge));
  memory.receive_ring =
      Queue(limits, request.max_recv_wr, ReceiveStride(request.max_recv_sge));
  memory.send.container =
      RoundUpToPages(memory.send_ring.bytes + kRollbackArea, limits.page_size);
  memory.receive.container = memory.receive_ring.bytes;
  const uint64_t further = uint64_t{kFurtherQueues} * limits.page_size;
  memory.buffer_bytes =
      memory.send.container + memory.receive.container + further;
  memory.arrays.container = ShadowBytes(limits, request.max_send_wr) +
                            ShadowBytes(limits, request.max_recv_wr);
  memory.overhead.container = further + kQueuePairStruct;
  return memory;
}

// mana_create_cq.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  const uint64_t bytes = NextPowerOfTwo(
      Max<uint64_t>(uint64_t{limits.cqe_size} * cqe, limits.page_size));
  QueueMemory memory;
  memory.completion_ring = {.stride = limits.cqe_size,
                            .slots = static_cast<uint32_t>(Min<uint64_t>(
                                bytes / limits.cqe_size, UINT32_MAX)),
                            .bytes = bytes};
  memory.cap_cqe = memory.completion_ring.slots;
  memory.completion.container = bytes;
  memory.buffer_bytes = bytes;
  memory.overhead.container = kCompletionQueueStruct;
  return memory;
}

}  // namespace

// The provider checks no limits; all of them, and how many objects there are,
// the adapter tells (mana_ib_gd_query_adapter_caps).
constinit const ProviderRules kManaRules = {
    .traits = {.provider = Provider::kMana,
               .name = "mana",
               .kernel_names = {"mana", "mana_ib"},
               .devices = "Microsoft Azure Network Adapter",
               .queue_pair_types = Bit(QueuePairType::kRc),
               .has_shared_receive_queues = false,
               .defaults = {.cqe_size = 64}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue};

}  // namespace purser::queue_memory
