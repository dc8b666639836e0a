// SPDX-License-Identifier: Apache-2.0
#include "node_view/queue_sizes.h"

#include <algorithm>

#include "queue_memory/registry.h"
#include "queue_memory/vmalloc.h"

namespace purser::node_view {
namespace {

using queue_memory::Charge;
using queue_memory::DeviceLimits;
using queue_memory::Exactness;
using queue_memory::Provider;
using queue_memory::QueueMemory;
using queue_memory::QueuePairRequest;
using queue_memory::QueuePairType;

constexpr uint32_t kAssumedWorkRequests = 128;
constexpr uint32_t kAssumedSges = 1;
// No device comes near it: what exists was not refused.
constexpr uint32_t kNoLimit = 1u << 24;

// ib_qp_type. Of a driver's own type the provider's one is taken.
QueuePairType TypeOf(Provider provider, uint8_t ib_type) {
  switch (ib_type) {
    case 3:
      return QueuePairType::kUc;
    case 4:
      return QueuePairType::kUd;
    case 8:
      return QueuePairType::kRawPacket;
    case 9:
      return QueuePairType::kXrcSend;
    case 255:
      if (provider == Provider::kMlx5) return QueuePairType::kDci;
      if (provider == Provider::kEfa) return QueuePairType::kSrd;
      return QueuePairType::kRc;
    default:
      return QueuePairType::kRc;
  }
}

// The receiving end of an extended reliable connection has no rings.
constexpr uint8_t kXrcReceive = 10;

Size SizeOf(const QueueMemory& memory) {
  return {.charge = memory.total(),
          .exact = memory.exactness == Exactness::kExact};
}

DeviceLimits Unlimited(DeviceLimits limits) {
  limits.max_qp_wr = limits.max_recv_wr = kNoLimit;
  return limits;
}

// ---- bnxt_re: drivers/infiniband/hw/bnxt_re/main.c
// bnxt_re_fill_res_qp_entry ----

struct BnxtRe {
  uint64_t sq_max_wqe = 0, sq_wqe_size = 0, rq_max_wqe = 0, rq_wqe_size = 0;
};

BnxtRe ReadBnxtRe(rdma::Bytes driver) {
  BnxtRe told;
  rdma::ForEachDriverAttribute(driver,
                               [&](std::string_view name, uint64_t value) {
                                 if (name == "sq_max_wqe")
                                   told.sq_max_wqe = value;
                                 else if (name == "sq_wqe_size")
                                   told.sq_wqe_size = value;
                                 else if (name == "rq_max_wqe")
                                   told.rq_max_wqe = value;
                                 else if (name == "rq_wqe_size")
                                   told.rq_wqe_size = value;
                               });
  return told;
}

// With entries as large as asked, the driver counts the send ring in slots.
constexpr uint64_t kSlot = 16, kSlotsOfLeastWqe = 2, kWqeHeader = 32;
constexpr uint64_t kSpareSends = 129;

std::optional<Size> SizeOfBnxtRe(const Device& device, const BnxtRe& told) {
  if (told.sq_max_wqe > kNoLimit || told.rq_max_wqe > kNoLimit ||
      told.sq_wqe_size == 0)
    return std::nullopt;
  DeviceLimits limits = Unlimited(device.limits);
  // Told as rounded already.
  limits.bnxt_re.power_of_two_rings = false;
  limits.bnxt_re.variable_wqe = told.sq_wqe_size == kSlot;
  limits.bnxt_re.msn_table = limits.bnxt_re.variable_wqe;
  const uint64_t sends = limits.bnxt_re.variable_wqe
                             ? told.sq_max_wqe / kSlotsOfLeastWqe
                             : told.sq_max_wqe;
  if (sends < kSpareSends) return std::nullopt;
  QueuePairRequest request{
      .max_send_wr = static_cast<uint32_t>(sends - kSpareSends),
      .uses_srq = told.rq_max_wqe == 0};
  if (!request.uses_srq) {
    request.max_recv_wr = static_cast<uint32_t>(told.rq_max_wqe - 1);
    if (limits.bnxt_re.variable_wqe && told.rq_wqe_size >= kWqeHeader)
      request.max_recv_sge =
          static_cast<uint32_t>((told.rq_wqe_size - kWqeHeader) / kSlot);
  }
  const QueueMemory memory =
      QueuePairMemory(Provider::kBnxtRe, limits, request);
  if (memory.refusal ||
      memory.send_ring.bytes != told.sq_max_wqe * told.sq_wqe_size ||
      memory.receive_ring.bytes != told.rq_max_wqe * told.rq_wqe_size)
    return std::nullopt;
  return SizeOf(memory);
}

// ---- hns: drivers/infiniband/hw/hns/hns_roce_restrack.c
// hns_roce_fill_res_qp_entry ----

struct Hns {
  uint64_t sq_wqe_cnt = 0, rq_wqe_cnt = 0, rq_max_gs = 0, ext_sge_sge_cnt = 0;
};

Hns ReadHns(rdma::Bytes driver) {
  Hns told;
  rdma::ForEachDriverAttribute(driver,
                               [&](std::string_view name, uint64_t value) {
                                 if (name == "sq_wqe_cnt")
                                   told.sq_wqe_cnt = value;
                                 else if (name == "rq_wqe_cnt")
                                   told.rq_wqe_cnt = value;
                                 else if (name == "rq_max_gs")
                                   told.rq_max_gs = value;
                                 else if (name == "ext_sge_sge_cnt")
                                   told.ext_sge_sge_cnt = value;
                               });
  return told;
}

std::optional<Size> SizeOfHns(const Device& device, const Hns& told,
                              QueuePairType type) {
  if (told.sq_wqe_cnt == 0 || told.sq_wqe_cnt > kNoLimit ||
      told.rq_wqe_cnt > kNoLimit || told.rq_max_gs > UINT16_MAX ||
      told.ext_sge_sge_cnt / told.sq_wqe_cnt > UINT16_MAX)
    return std::nullopt;
  DeviceLimits limits = Unlimited(device.limits);
  limits.max_sge = UINT16_MAX;
  limits.max_recv_sge = UINT16_MAX;
  const auto extended =
      static_cast<uint32_t>(told.ext_sge_sge_cnt / told.sq_wqe_cnt);
  constexpr uint32_t kSgesInWqe = 2;  // of a connected type
  const QueuePairRequest request{
      .type = type,
      .max_send_wr = static_cast<uint32_t>(told.sq_wqe_cnt),
      .max_send_sge = type == QueuePairType::kUd ? std::max(extended, 1u)
                      : extended == 0            ? 1
                                                 : kSgesInWqe + extended,
      .max_recv_wr = static_cast<uint32_t>(told.rq_wqe_cnt),
      .max_recv_sge = static_cast<uint32_t>(told.rq_max_gs)};
  const QueueMemory memory = QueuePairMemory(Provider::kHns, limits, request);
  if (memory.refusal || memory.send_ring.slots != told.sq_wqe_cnt ||
      memory.receive_ring.slots != told.rq_wqe_cnt)
    return std::nullopt;
  return SizeOf(memory);
}

}  // namespace

std::optional<Size> SizeByDriver(const Device& device,
                                 const rdma::ResourceRecord& queue_pair) {
  if (queue_pair.driver.empty()) return std::nullopt;
  if (device.provider == Provider::kBnxtRe)
    return SizeOfBnxtRe(device, ReadBnxtRe(queue_pair.driver));
  if (device.provider == Provider::kHns)
    return SizeOfHns(device, ReadHns(queue_pair.driver),
                     TypeOf(device.provider, queue_pair.type));
  return std::nullopt;
}

std::optional<Size> SizeOfMlx5(const Device& device, const Mlx5Rings& rings) {
  constexpr uint64_t kBasicBlock = 64, kSge = 16;
  const QueuePairRequest request{
      // The entry of one block: a plain operation and one SGE.
      .send_ops = queue_memory::kSendOpsPlain,
      .max_send_wr = static_cast<uint32_t>(rings.send_bytes / kBasicBlock),
      .max_send_sge = 1,
      .max_recv_wr = rings.receive_stride == 0
                         ? 0
                         : static_cast<uint32_t>(rings.receive_bytes /
                                                 rings.receive_stride),
      .max_recv_sge = static_cast<uint32_t>(rings.receive_stride / kSge)};
  const QueueMemory memory =
      QueuePairMemory(Provider::kMlx5, device.limits, request);
  if (memory.refusal || memory.send_ring.bytes != rings.send_bytes ||
      memory.receive_ring.bytes != rings.receive_bytes)
    return std::nullopt;
  return SizeOf(memory);
}

Size AssumedQueuePair(const Device& device, uint8_t ib_type) {
  if (ib_type == kXrcReceive) return {};
  QueuePairRequest request{.type = TypeOf(device.provider, ib_type),
                           .max_send_wr = kAssumedWorkRequests,
                           .max_send_sge = kAssumedSges,
                           .max_recv_wr = kAssumedWorkRequests,
                           .max_recv_sge = kAssumedSges};
  QueueMemory memory = QueuePairMemory(device.provider, device.limits, request);
  for (uint8_t type = 0; memory.refusal && type <= 6; ++type) {
    request.type = static_cast<QueuePairType>(type);
    memory = QueuePairMemory(device.provider, device.limits, request);
  }
  return {.charge = memory.total()};
}

Size SizeOfCompletionQueue(const Device& device, uint32_t cqe) {
  // bnxt_re makes more than asked, and the kernel tells what was made.
  const uint32_t asked =
      device.provider == Provider::kBnxtRe ? std::max(cqe / 2, 1u) : cqe;
  const QueueMemory memory =
      CompletionQueueMemory(device.provider, device.limits, asked);
  const bool told_as_written_back = (device.provider == Provider::kBnxtRe ||
                                     device.provider == Provider::kMlx5) &&
                                    memory.cap_cqe == cqe;
  return {
      .charge = memory.total(),
      .exact = told_as_written_back && memory.exactness == Exactness::kExact};
}

Size AssumedSharedReceiveQueue(const Device& device) {
  const QueueMemory memory = SharedReceiveQueueMemory(
      device.provider, device.limits,
      {.max_wr = kAssumedWorkRequests, .max_sge = kAssumedSges});
  return {.charge = memory.total()};
}

Structs StructsOf(const Device& device) {
  return {.queue_pair = QueuePairMemory(device.provider, device.limits,
                                        {.max_send_wr = 1, .max_recv_wr = 1})
                            .total()
                            .container,
          .completion_queue =
              CompletionQueueMemory(device.provider, device.limits, 1)
                  .total()
                  .container,
          .shared_receive_queue =
              SharedReceiveQueueMemory(device.provider, device.limits, {1, 1})
                  .total()
                  .container};
}

uint64_t KernelBytesOfRing(const Device& device, uint64_t mapped_bytes) {
  return mapped_bytes +
         queue_memory::PageArrayBytes(mapped_bytes, device.limits.page_size);
}

}  // namespace purser::node_view
