// SPDX-License-Identifier: Apache-2.0
//
// siw (soft-iWARP): the kernel allocates the rings with vmalloc_user, which no
// cgroup is charged for, and the process maps them. Rules from Linux
// drivers/infiniband/sw/siw/siw_verbs.c (functions named below). SGEs and
// inline data make no difference to sizes.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"
#include "queue_memory/vmalloc.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kSendEntry = 120;        // siw_sqe
constexpr uint32_t kReceiveEntry = 112;     // siw_rqe
constexpr uint32_t kCompletionControl = 8;  // siw_cq_ctrl, after the ring
constexpr uint32_t kQueuePairStruct = 264;  // in the process
constexpr uint32_t kCompletionQueueStruct = 176;
constexpr uint32_t kSharedReceiveQueueStruct = 128;  // about

// Sets the area's charge; returns what its page array takes.
uint64_t Map(const DeviceLimits& limits, uint64_t bytes, Charge& charge) {
  charge.node = RoundUpToPages(bytes, limits.page_size);
  return PageArrayBytes(charge.node, limits.page_size);
}

// Without a ring to map the process fails.
Refusal Check(const DeviceLimits& limits, const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request)) return refusal;
  if (const Refusal refusal =
          RefuseBelow(Limit::kLeastSendWr, request.max_send_wr, 1))
    return refusal;
  if (request.uses_srq) return {};
  return RefuseBelow(Limit::kLeastRecvWr, request.max_recv_wr, 1);
}

// siw_create_qp.
QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = Check(limits, request)) return Refused(refusal);
  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  memory.send_ring = RingOf(kSendEntry, NextPowerOfTwo(request.max_send_wr));
  memory.overhead.node = Map(limits, memory.send_ring.bytes, memory.send);
  if (!request.uses_srq) {
    memory.receive_ring =
        RingOf(kReceiveEntry, NextPowerOfTwo(request.max_recv_wr));
    memory.overhead.node +=
        Map(limits, memory.receive_ring.bytes, memory.receive);
  }
  memory.buffer_bytes = memory.send.node + memory.receive.node;
  memory.overhead.container = kQueuePairStruct;
  if (request.uses_srq) memory.exactness = Exactness::kEstimated;
  return memory;
}

// siw_create_cq.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  QueueMemory memory;
  memory.completion_ring = RingOf(limits.cqe_size, NextPowerOfTwo(cqe));
  memory.cap_cqe = memory.completion_ring.slots;
  memory.overhead.node =
      Map(limits, memory.completion_ring.bytes + kCompletionControl,
          memory.completion);
  memory.buffer_bytes = memory.completion.node;
  memory.overhead.container = kCompletionQueueStruct;
  return memory;
}

// siw_create_srq: as a receive ring.
QueueMemory SharedReceiveQueue(const DeviceLimits& limits,
                               const SharedReceiveQueueRequest& request) {
  QueueMemory memory;
  memory.shared_receive_ring =
      RingOf(kReceiveEntry, NextPowerOfTwo(request.max_wr));
  memory.cap_srq_wr = memory.shared_receive_ring.slots;
  memory.cap_srq_sge = request.max_sge;
  memory.overhead.node =
      Map(limits, memory.shared_receive_ring.bytes, memory.shared_receive);
  memory.buffer_bytes = memory.shared_receive.node;
  memory.overhead.container = kSharedReceiveQueueStruct;
  return memory;
}

}  // namespace

// Limits and counts: siw.h.
constinit const ProviderRules kSiwRules = {
    .traits = {.provider = Provider::kSiw,
               .name = "siw",
               .kernel_names = {"siw"},
               .devices = "soft-iWARP",
               .completion_queues = Exactness::kEstimated,
               .queue_pair_types = Bit(QueuePairType::kRc),
               .has_adapter = false,
               .charges_container = false,
               .charges_node = true,
               .pins_rings = false,
               .defaults = {.max_qp_wr = 32768,
                            .max_sge = 6,
                            .max_cqe = 32768 * 100,
                            .max_srq_wr = 32768 * 10,
                            .max_inline_data = 80,
                            .cqe_size = 32},
               .counts = {.max_qp = 102400,
                          .max_cq = 102400,
                          .max_mr = 1024000,
                          .max_srq = 102400}},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue,
    .shared_receive_queue = SharedReceiveQueue};

}  // namespace purser::queue_memory
