// SPDX-License-Identifier: Apache-2.0
//
// mlx4 (ConnectX-3): one anonymous mapping for both rings, in the process.
// Rules from rdma-core providers/mlx4: qp.c (functions named below), verbs.c
// create_qp_ex, buf.c mlx4_alloc_buf, dbrec.c.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kSge = 16;      // mlx4_wqe_data_seg
constexpr uint32_t kControl = 16;  // mlx4_wqe_ctrl_seg
// Inline data is cut into pieces that do not cross 64 bytes, each with a
// header.
constexpr uint32_t kInlinePiece = 60;
constexpr uint32_t kInlineHeader = 4;
constexpr uint32_t kArrayBytesPerEntry = 8;  // wrid
constexpr uint32_t kQueuePairStruct = 520;
constexpr uint32_t kCompletionQueueStruct = 384;
constexpr uint32_t kSharedReceiveQueueStruct = 256;  // about
constexpr uint32_t kQueuePairDoorbell = 4;           // where there is a RQ
constexpr uint32_t kCompletionQueueDoorbell = 8;

constexpr uint64_t DividedUp(uint64_t value, uint64_t by) {
  return (value + by - 1) / by;
}

// The transport's segments.
uint32_t TransportBytes(QueuePairType type) {
  switch (type) {
    case QueuePairType::kUd:
      return 48;
    case QueuePairType::kRawPacket:
      return 0;
    default:
      return 16;  // remote address
  }
}

// num_inline_segs, mlx4_calc_sq_wqe_size.
uint64_t SendStride(const QueuePairRequest& request) {
  const bool reliable = request.type == QueuePairType::kRc ||
                        request.type == QueuePairType::kXrcSend;
  const uint64_t before = request.type == QueuePairType::kUd ? 0 : 32;
  const uint64_t inlined = request.max_inline_data;
  const uint64_t pieces = DividedUp(inlined + before, kInlinePiece);
  const uint64_t gather = Max<uint64_t>(
      request.max_send_sge, DividedUp(inlined + kInlineHeader * pieces, kSge));
  uint64_t bytes = kSge * gather + TransportBytes(request.type);
  // Atomics and memory windows need three segments.
  bytes = Max<uint64_t>(bytes, reliable ? 48 : 32);
  return NextPowerOfTwo(Max<uint64_t>(bytes + kControl, 64));
}

// mlx4_set_sq_sizes: what fits the stride. Some entries stay spare, so that the
// device never reads what is being written.
void SizeSendRing(const QueuePairRequest& request, QueueMemory& memory) {
  const uint64_t stride = SendStride(request);
  const uint64_t spare = 2048 / stride + 1;
  const uint64_t count = NextPowerOfTwo(request.max_send_wr + spare);
  memory.send_ring = RingOf(stride, count);
  memory.send_ring.slots = memory.cap_send_wr =
      static_cast<uint32_t>(count - spare);
  const uint64_t payload = stride - kControl - TransportBytes(request.type);
  memory.cap_send_sge = static_cast<uint32_t>(payload / kSge);
  memory.cap_inline_data =
      static_cast<uint32_t>(payload - kInlineHeader * DividedUp(payload, 64));
  memory.arrays.container = count * kArrayBytesPerEntry;
}

// mlx4_alloc_qp_buf; the kernel's set_rq_size.
void SizeReceiveRing(const QueuePairRequest& request, QueueMemory& memory) {
  const uint64_t count = NextPowerOfTwo(request.max_recv_wr);
  const uint64_t stride =
      NextPowerOfTwo(kSge * Max<uint64_t>(request.max_recv_sge, 1));
  memory.receive_ring = RingOf(stride, count);
  memory.cap_recv_wr = memory.receive_ring.slots;
  memory.cap_recv_sge = static_cast<uint32_t>(stride / kSge);
  memory.arrays.container += count * kArrayBytesPerEntry;
  memory.overhead.container += kQueuePairDoorbell;
}

QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  if (const Refusal refusal = CheckEach(limits, request))
    return Refused(refusal);
  QueueMemory memory;
  SizeSendRing(request, memory);
  if (!request.uses_srq && request.type != QueuePairType::kXrcSend)
    SizeReceiveRing(request, memory);
  memory.send.container = memory.send_ring.bytes;
  memory.receive.container = memory.receive_ring.bytes;
  const uint64_t rings = memory.send_ring.bytes + memory.receive_ring.bytes;
  memory.buffer_bytes = RoundUpToPages(rings, limits.page_size);
  memory.overhead.container += memory.buffer_bytes - rings + kQueuePairStruct;
  if (request.uses_srq) memory.exactness = Exactness::kEstimated;
  return memory;
}

// cq.c mlx4_alloc_cq_buf, verbs.c create_cq.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  QueueMemory memory;
  memory.completion_ring = RingWithSpare(limits.cqe_size, cqe);
  memory.cap_cqe = memory.completion_ring.slots;
  const uint64_t bytes = memory.completion_ring.bytes;
  memory.completion.container = bytes;
  memory.buffer_bytes = RoundUpToPages(bytes, limits.page_size);
  memory.overhead.container = memory.buffer_bytes - bytes +
                              kCompletionQueueStruct + kCompletionQueueDoorbell;
  return memory;
}

// srq.c mlx4_alloc_srq_buf: a segment that links the entries, and one entry
// more than asked.
QueueMemory SharedReceiveQueue(const DeviceLimits& limits,
                               const SharedReceiveQueueRequest& request) {
  const uint64_t stride = NextPowerOfTwo(
      Max<uint64_t>(32, kSge + uint64_t{kSge} * request.max_sge));
  QueueMemory memory;
  memory.shared_receive_ring = RingWithSpare(stride, request.max_wr);
  memory.cap_srq_wr = memory.shared_receive_ring.slots;
  memory.cap_srq_sge = static_cast<uint32_t>(stride / kSge - 1);
  const uint64_t bytes = memory.shared_receive_ring.bytes;
  memory.shared_receive.container = bytes;
  memory.arrays.container =
      (uint64_t{memory.cap_srq_wr} + 1) * kArrayBytesPerEntry;
  memory.buffer_bytes = RoundUpToPages(bytes, limits.page_size);
  memory.overhead.container = memory.buffer_bytes - bytes +
                              kSharedReceiveQueueStruct + kQueuePairDoorbell;
  return memory;
}

}  // namespace

// Limits: ConnectX-3.
constinit const ProviderRules kMlx4Rules = {
    .traits = {.provider = Provider::kMlx4,
               .name = "mlx4",
               .kernel_names = {"mlx4_core", "mlx4_ib"},
               .devices = "ConnectX-3",
               .queue_pair_types =
                   Bit(QueuePairType::kRc) | Bit(QueuePairType::kUc) |
                   Bit(QueuePairType::kUd) | Bit(QueuePairType::kXrcSend) |
                   Bit(QueuePairType::kRawPacket),
               .defaults = {.max_qp_wr = 16351,
                            .max_sge = 32,
                            .max_cqe = 0x3fffff,
                            .max_inline_data = 1024,
                            .cqe_size = 64},
               .counts = {.max_qp = 1 << 18,
                          .max_cq = 65408,
                          .max_mr = 524032,
                          .max_srq = 65472}},
    .most_cqe = 0x3fffff,
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue,
    .shared_receive_queue = SharedReceiveQueue};

}  // namespace purser::queue_memory
