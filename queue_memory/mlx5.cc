// SPDX-License-Identifier: Apache-2.0
//
// mlx5 (ConnectX-4 and later): the provider allocates rings and arrays in the
// process, so its memory cgroup pays. Rules from rdma-core providers/mlx5:
// verbs.c (functions named below), buf.c mlx5_alloc_buf, dbrec.c
// mlx5_alloc_dbrec.
#include "queue_memory/checks.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

constexpr uint32_t kBasicBlock = 64;   // MLX5_SEND_WQE_BB
constexpr uint32_t kSge = 16;          // mlx5_wqe_data_seg
constexpr uint32_t kInlineHeader = 4;  // mlx5_wqe_inl_data_seg
// Beside each basic block of the send ring: wrid 8, wr_data 4, wqe_head 4.
constexpr uint32_t kArrayBytesPerBasicBlock = 16;
constexpr uint32_t kArrayBytesPerReceive = 8;  // wrid
constexpr uint32_t kQueuePairStruct = 992;
constexpr uint32_t kCompletionQueueStruct = 616;
constexpr uint32_t kDoorbellRecord = 64;

constexpr uint32_t kSharedReceiveQueueStruct = 512;  // about
constexpr uint32_t kMostCqe = (1u << 24) - 1;        // create_cq
// So that a number of slots stays in 32 bits.
constexpr uint32_t kMostWr = 1u << 31;

// Bytes of a send WQE before its gather list or inline data: the largest of
// the operations asked for, and the transport's segment. _sq_overhead,
// sq_overhead.
uint32_t SendOverhead(QueuePairType type, uint32_t send_ops) {
  const bool connected =
      type != QueuePairType::kUd && type != QueuePairType::kRawPacket;
  uint32_t operation = 16;  // SEND: the control segment
  if (send_ops == kDefaultSendOps && connected)
    send_ops = kSendOpsPlain | kSendOpsBindOrInv;
  if (connected && (send_ops & kSendOpsPlain) != 0)
    operation = 32;  // RDMA WRITE and READ: remote address
  if ((send_ops & kSendOpsAtomic) != 0) operation = Max(operation, 48u);
  if ((send_ops & kSendOpsBindOrInv) != 0)
    operation = Max(operation, 192u);  // UMR control, memory key
  switch (type) {
    case QueuePairType::kXrcSend:
      return operation + 16;
    case QueuePairType::kUd:
    case QueuePairType::kDci:
      return operation + 48;  // address vector
    case QueuePairType::kRawPacket:
      return operation + 32;  // Ethernet segment
    default:
      return operation;
  }
}

// mlx5_calc_send_wqe, mlx5_calc_sq_size.
Refusal SizeSendRing(const DeviceLimits& limits,
                     const QueuePairRequest& request, QueueMemory& memory) {
  memory.cap_send_sge = request.max_send_sge;
  memory.cap_inline_data = request.max_inline_data;
  if (request.max_send_wr == 0) return {};

  const uint32_t overhead = SendOverhead(request.type, request.send_ops);
  const uint64_t gather = overhead +
                          RoundUp(uint64_t{request.max_tso_header}, kSge) +
                          uint64_t{kSge} * request.max_send_sge;
  const uint64_t inlined = request.max_inline_data == 0
                               ? 0
                               : overhead + RoundUp(uint64_t{kInlineHeader} +
                                                        request.max_inline_data,
                                                    kSge);
  const uint64_t wqe = RoundUp(Max(gather, inlined), kBasicBlock);
  if (wqe > limits.max_sq_desc_sz)
    return {Limit::kSendWqeSize, wqe, limits.max_sq_desc_sz};
  const uint32_t max_send_wr =
      Min<uint32_t>(limits.max_qp_wr, INT32_MAX / limits.max_sq_desc_sz);
  if (request.max_send_wr > max_send_wr)
    return {Limit::kMaxSendWr, request.max_send_wr, max_send_wr};

  const uint64_t bytes = NextPowerOfTwo(request.max_send_wr * wqe);
  // The kernel reports both from log_max_qp_sz.
  const uint32_t max_send_wqebb =
      limits.max_send_wqebb != 0 ? limits.max_send_wqebb : limits.max_qp_wr;
  if (bytes / kBasicBlock > max_send_wqebb)
    return {Limit::kSendRingSize, bytes / kBasicBlock, max_send_wqebb};
  memory.send_ring = {.stride = static_cast<uint32_t>(wqe),
                      .slots = static_cast<uint32_t>(bytes / wqe),
                      .bytes = bytes};
  memory.cap_send_wr = memory.send_ring.slots;
  memory.cap_inline_data =
      static_cast<uint32_t>(wqe - overhead - kInlineHeader);
  return {};
}

// mlx5_calc_rcv_wqe, mlx5_calc_rq_size. An XRC_SEND queue pair gets the receive
// ring that it asks for, too.
Refusal SizeReceiveRing(const DeviceLimits& limits,
                        const QueuePairRequest& request, QueueMemory& memory) {
  if (request.max_recv_wr == 0) return {};
  const uint32_t max_recv_wr = Min(limits.max_recv_wr, kMostWr);
  if (request.max_recv_wr > max_recv_wr)
    return {Limit::kMaxRecvWr, request.max_recv_wr, max_recv_wr};
  if (request.uses_srq) return {};
  const uint64_t wqe =
      NextPowerOfTwo(uint64_t{kSge} * Max<uint32_t>(request.max_recv_sge, 1));
  if (wqe > limits.max_rq_desc_sz)
    return {Limit::kReceiveWqeSize, wqe, limits.max_rq_desc_sz};

  const uint64_t bytes =
      Max<uint64_t>(NextPowerOfTwo(request.max_recv_wr) * wqe, kBasicBlock);
  memory.receive_ring = {.stride = static_cast<uint32_t>(wqe),
                         .slots = static_cast<uint32_t>(bytes / wqe),
                         .bytes = bytes};
  memory.cap_recv_wr = memory.receive_ring.slots;
  memory.cap_recv_sge = static_cast<uint32_t>(wqe / kSge);
  return {};
}

// create_qp, mlx5_alloc_qp_buf.
QueueMemory QueuePair(const DeviceLimits& limits,
                      const QueuePairRequest& request) {
  QueueMemory memory;
  if (const Refusal refusal = SizeSendRing(limits, request, memory))
    return Refused(refusal);
  if (const Refusal refusal = SizeReceiveRing(limits, request, memory))
    return Refused(refusal);

  const uint64_t send = memory.send_ring.bytes;
  const uint64_t receive = memory.receive_ring.bytes;
  memory.buffer_bytes = request.type == QueuePairType::kRawPacket
                            ? RoundUpToPages(send, limits.page_size) +
                                  RoundUpToPages(receive, limits.page_size)
                            : RoundUpToPages(send + receive, limits.page_size);
  memory.send.container = send;
  memory.receive.container = receive;
  memory.arrays.container =
      send / kBasicBlock * kArrayBytesPerBasicBlock +
      uint64_t{memory.receive_ring.slots} * kArrayBytesPerReceive;
  memory.overhead.container =
      memory.buffer_bytes - send - receive + kQueuePairStruct + kDoorbellRecord;
  // No such creation was recorded.
  if (request.type == QueuePairType::kDci || request.max_tso_header != 0)
    memory.exactness = Exactness::kEstimated;
  return memory;
}

// create_cq, cq.c mlx5_alloc_cq_buf.
QueueMemory CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  QueueMemory memory;
  memory.completion_ring = RingWithSpare(limits.cqe_size, cqe);
  memory.cap_cqe = memory.completion_ring.slots;
  const uint64_t bytes = memory.completion_ring.bytes;
  memory.buffer_bytes = RoundUpToPages(bytes, limits.page_size);
  memory.completion.container = bytes;
  memory.overhead.container =
      memory.buffer_bytes - bytes + kCompletionQueueStruct + kDoorbellRecord;
  return memory;
}

// srq.c mlx5_alloc_srq_buf: a segment that links the entries, 32 bytes at
// least, and one entry more than asked.
QueueMemory SharedReceiveQueue(const DeviceLimits& limits,
                               const SharedReceiveQueueRequest& request) {
  const uint64_t wqe = NextPowerOfTwo(
      Max<uint64_t>(32, kSge + uint64_t{kSge} * request.max_sge));
  if (wqe > limits.max_rq_desc_sz)
    return Refused({Limit::kReceiveWqeSize, wqe, limits.max_rq_desc_sz});
  QueueMemory memory;
  memory.shared_receive_ring = RingWithSpare(wqe, request.max_wr);
  memory.cap_srq_wr = memory.shared_receive_ring.slots;
  memory.cap_srq_sge = static_cast<uint32_t>(wqe / kSge - 1);
  const uint64_t bytes = memory.shared_receive_ring.bytes;
  memory.buffer_bytes = RoundUpToPages(bytes, limits.page_size);
  memory.shared_receive.container = bytes;
  memory.arrays.container =
      (uint64_t{memory.cap_srq_wr} + 1) * kArrayBytesPerReceive;
  memory.overhead.container =
      memory.buffer_bytes - bytes + kSharedReceiveQueueStruct + kDoorbellRecord;
  return memory;
}

}  // namespace

// Limits: ConnectX-5 and later, as ibv_devinfo shows them.
constinit const ProviderRules kMlx5Rules = {
    .traits = {.provider = Provider::kMlx5,
               .name = "mlx5",
               .kernel_names = {"mlx5_core", "mlx5_ib"},
               .devices = "ConnectX-4 and later",
               .queue_pair_types =
                   Bit(QueuePairType::kRc) | Bit(QueuePairType::kUc) |
                   Bit(QueuePairType::kUd) | Bit(QueuePairType::kXrcSend) |
                   Bit(QueuePairType::kRawPacket) | Bit(QueuePairType::kDci),
               .send_ops_change_sizes = true,
               .defaults = {.max_qp_wr = 32768,
                            .max_cqe = kMostCqe,
                            .max_sq_desc_sz = 1024,
                            .max_rq_desc_sz = 512,
                            .cqe_size = 64},
               .counts = {.max_qp = 131072,
                          .max_cq = 1 << 24,
                          .max_mr = 1 << 24,
                          .max_srq = 1 << 23}},
    .most_cqe = kMostCqe,
    .queue_pair = QueuePair,
    .completion_queue = CompletionQueue,
    .shared_receive_queue = SharedReceiveQueue};

}  // namespace purser::queue_memory
