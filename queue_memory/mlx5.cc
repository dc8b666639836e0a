// SPDX-License-Identifier: Apache-2.0
//
// mlx5 (ConnectX-4 and later): the provider allocates rings and arrays in the
// process, so its memory cgroup pays. Rules from rdma-core providers/mlx5:
// verbs.c (functions named below), buf.c mlx5_alloc_buf, dbrec.c
// mlx5_alloc_dbrec.
#include "queue_memory/arithmetic.h"
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

// ConnectX-5 and later, where the device does not tell.
constexpr uint32_t kDefaultMaxQpWr = 32768;
constexpr uint32_t kDefaultMaxSqDescSz = 1024;
constexpr uint32_t kDefaultMaxRqDescSz = 512;
constexpr uint32_t kDefaultCqeSize = 64;
constexpr uint32_t kMostCqe = (1u << 24) - 1;  // create_cq

struct Device {
  explicit Device(const DeviceLimits& limits)
      : max_qp_wr(LimitOr(limits.max_qp_wr, kDefaultMaxQpWr, 1u << 31)),
        // The kernel reports both from log_max_qp_sz.
        max_send_wqebb(LimitOr(limits.max_send_wqebb, max_qp_wr)),
        max_sq_desc_sz(LimitOr(limits.max_sq_desc_sz, kDefaultMaxSqDescSz,
                               kMostEntryBytes)),
        max_rq_desc_sz(LimitOr(limits.max_rq_desc_sz, kDefaultMaxRqDescSz,
                               kMostEntryBytes)),
        page_size(LimitOr(limits.page_size, kDefaultPageSize)) {}
  uint32_t max_qp_wr;
  uint32_t max_send_wqebb;
  uint32_t max_sq_desc_sz;
  uint32_t max_rq_desc_sz;
  uint32_t page_size;
};

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
      return operation + 48;  // address vector
    case QueuePairType::kRawPacket:
      return operation + 32;  // Ethernet segment
    default:
      return operation;
  }
}

// mlx5_calc_send_wqe, mlx5_calc_sq_size.
Refusal SizeSendRing(const Device& device, const QueuePairRequest& request,
                     QueueMemory& memory) {
  memory.cap_send_sge = request.max_send_sge;
  memory.cap_inline_data = request.max_inline_data;
  if (request.max_send_wr == 0) return {};

  const uint32_t overhead = SendOverhead(request.type, request.send_ops);
  const uint64_t gather = overhead + uint64_t{kSge} * request.max_send_sge;
  const uint64_t inlined = request.max_inline_data == 0
                               ? 0
                               : overhead + RoundUp(uint64_t{kInlineHeader} +
                                                        request.max_inline_data,
                                                    kSge);
  const uint64_t wqe = RoundUp(Max(gather, inlined), kBasicBlock);
  if (wqe > device.max_sq_desc_sz)
    return {Limit::kSendWqeSize, wqe, device.max_sq_desc_sz};
  const uint32_t max_send_wr =
      Min<uint32_t>(device.max_qp_wr, INT32_MAX / device.max_sq_desc_sz);
  if (request.max_send_wr > max_send_wr)
    return {Limit::kMaxSendWr, request.max_send_wr, max_send_wr};

  const uint64_t bytes = NextPowerOfTwo(request.max_send_wr * wqe);
  if (bytes / kBasicBlock > device.max_send_wqebb)
    return {Limit::kSendRingSize, bytes / kBasicBlock, device.max_send_wqebb};
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
Refusal SizeReceiveRing(const Device& device, const QueuePairRequest& request,
                        QueueMemory& memory) {
  if (request.max_recv_wr == 0) return {};
  if (request.max_recv_wr > device.max_qp_wr)
    return {Limit::kMaxRecvWr, request.max_recv_wr, device.max_qp_wr};
  if (request.uses_srq) return {};
  const uint64_t wqe =
      NextPowerOfTwo(uint64_t{kSge} * Max<uint32_t>(request.max_recv_sge, 1));
  if (wqe > device.max_rq_desc_sz)
    return {Limit::kReceiveWqeSize, wqe, device.max_rq_desc_sz};

  const uint64_t bytes =
      Max<uint64_t>(NextPowerOfTwo(request.max_recv_wr) * wqe, kBasicBlock);
  memory.receive_ring = {.stride = static_cast<uint32_t>(wqe),
                         .slots = static_cast<uint32_t>(bytes / wqe),
                         .bytes = bytes};
  memory.cap_recv_wr = memory.receive_ring.slots;
  memory.cap_recv_sge = static_cast<uint32_t>(wqe / kSge);
  return {};
}

}  // namespace

// create_qp, mlx5_alloc_qp_buf.
QueueMemory Mlx5QueuePair(const DeviceLimits& limits,
                          const QueuePairRequest& request) {
  const Device device(limits);
  QueueMemory memory;
  if (const Refusal refusal = SizeSendRing(device, request, memory))
    return Refused(refusal);
  if (const Refusal refusal = SizeReceiveRing(device, request, memory))
    return Refused(refusal);

  const uint64_t send = memory.send_ring.bytes;
  const uint64_t receive = memory.receive_ring.bytes;
  memory.buffer_bytes =
      request.type == QueuePairType::kRawPacket
          ? RoundUp(send, device.page_size) + RoundUp(receive, device.page_size)
          : RoundUp(send + receive, device.page_size);
  memory.send.container = send;
  memory.receive.container = receive;
  memory.arrays.container =
      send / kBasicBlock * kArrayBytesPerBasicBlock +
      uint64_t{memory.receive_ring.slots} * kArrayBytesPerReceive;
  memory.overhead.container =
      memory.buffer_bytes - send - receive + kQueuePairStruct + kDoorbellRecord;
  return memory;
}

// create_cq, cq.c mlx5_alloc_cq_buf.
QueueMemory Mlx5CompletionQueue(const DeviceLimits& limits, uint32_t cqe) {
  const Device device(limits);
  const uint32_t max_cqe = LimitOr(limits.max_cqe, kMostCqe, kMostCqe);
  if (cqe == 0 || cqe > max_cqe) return Refused({Limit::kMaxCqe, cqe, max_cqe});

  const uint32_t cqe_size = LimitOr(limits.cqe_size, kDefaultCqeSize);
  const uint64_t entries = NextPowerOfTwo(uint64_t{cqe} + 1);
  const uint64_t bytes = entries * cqe_size;
  QueueMemory memory;
  memory.cap_cqe = static_cast<uint32_t>(entries - 1);
  memory.completion_ring = {
      .stride = cqe_size, .slots = memory.cap_cqe, .bytes = bytes};
  memory.buffer_bytes = RoundUp(bytes, device.page_size);
  memory.completion.container = bytes;
  memory.overhead.container =
      memory.buffer_bytes - bytes + kCompletionQueueStruct + kDoorbellRecord;
  return memory;
}

}  // namespace purser::queue_memory
