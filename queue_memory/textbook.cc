// SPDX-License-Identifier: Apache-2.0
//
// The fallback for providers without a rule of their own: a textbook sum, times
// a safety factor, plus a floor. Derived from tests/testdata/golden, fourteen
// profiles of eleven providers: it covers the real total of 99.7 % of the queue
// pairs and of all completion queues there, and is 4.9 times that total in the
// median (docs/memory-model.md). Who pays is not known, so the node does: such
// a device needs a budget given explicitly or by the plugin.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kSafetyFactor = 6;
constexpr uint32_t kFloor = 128 * 1024;  // bytes per queue pair
constexpr uint32_t kWqe = 64;
constexpr uint32_t kSge = 16;
constexpr uint32_t kCqe = 64;
constexpr uint32_t kCompletionSafetyFactor = 4;
constexpr uint32_t kCompletionFloor = 4096;

Ring WithFactor(uint32_t wr, uint32_t payload) {
  return RingOf(kSafetyFactor * (kWqe + payload), wr);
}

// Unlike TextbookBytes() it counts inline data, which most providers lay into
// the send ring. Refuses only what the device itself refuses, where it tells.
QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request))
    return Refused(refusal);
  QueueMemory memory;
  WriteBackAsAsked(request, memory);
  memory.send_ring =
      WithFactor(request.max_send_wr,
                 Max(kSge * request.max_send_sge, request.max_inline_data));
  memory.send.node = memory.send_ring.bytes;
  if (!request.uses_srq) {
    memory.receive_ring =
        WithFactor(request.max_recv_wr, kSge * request.max_recv_sge);
    memory.receive.node = memory.receive_ring.bytes;
  }
  memory.overhead.node = kFloor;
  memory.buffer_bytes =
      memory.send.node + memory.receive.node + memory.overhead.node;
  return memory;
}

QueueMemory CompletionQueue(const DeviceLimits&, uint32_t cqe) {
  QueueMemory memory;
  memory.completion_ring = RingOf(kCompletionSafetyFactor * kCqe, cqe);
  memory.completion.node = memory.completion_ring.bytes;
  memory.overhead.node = kCompletionFloor;
  memory.buffer_bytes = memory.completion.node + memory.overhead.node;
  memory.cap_cqe = cqe;
  return memory;
}

QueueMemory SharedReceiveQueue(const DeviceLimits&,
                               const SharedReceiveQueueRequest& request) {
  QueueMemory memory;
  memory.shared_receive_ring =
      WithFactor(request.max_wr, kSge * request.max_sge);
  memory.shared_receive.node = memory.shared_receive_ring.bytes;
  memory.overhead.node = kFloor;
  memory.buffer_bytes = memory.shared_receive.node + memory.overhead.node;
  memory.cap_srq_wr = request.max_wr;
  memory.cap_srq_sge = request.max_sge;
  return memory;
}

}  // namespace

constinit const ProviderRules kTextbookRules = {
    .traits = {.provider = Provider::kUnknown,
               .name = "unknown",
               .devices = "any other",
               .queue_pairs = Exactness::kFallback,
               .completion_queues = Exactness::kFallback,
               .shared_receive_queues = Exactness::kFallback,
               .queue_pair_types = UINT32_MAX,
               .charges_container = false,
               .charges_node = true,
               .pins_rings = false},
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue,
    .shared_receive_queue = SharedReceiveQueue};

}  // namespace purser::queue_memory
