// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/device_limits.h"

#include "queue_memory/arithmetic.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

template <typename Number>
void Take(Number told, Number& limit) {
  if (told != 0) limit = told;
}

// Nothing known: `otherwise`. In any case no more than `most`.
void Bound(uint32_t& limit, uint32_t otherwise, uint32_t most = UINT32_MAX) {
  limit = Min(limit != 0 ? limit : otherwise, most);
}

}  // namespace

DeviceLimits Overlay(const DeviceLimits& base, const DeviceLimits& told) {
  DeviceLimits limits = base;
  Take(told.max_qp_wr, limits.max_qp_wr);
  Take(told.max_sge, limits.max_sge);
  Take(told.max_cqe, limits.max_cqe);
  Take(told.max_srq_wr, limits.max_srq_wr);
  Take(told.max_srq_sge, limits.max_srq_sge);
  Take(told.max_recv_wr, limits.max_recv_wr);
  Take(told.max_recv_sge, limits.max_recv_sge);
  Take(told.max_inline_data, limits.max_inline_data);
  Take(told.max_sq_desc_sz, limits.max_sq_desc_sz);
  Take(told.max_rq_desc_sz, limits.max_rq_desc_sz);
  Take(told.max_send_wqebb, limits.max_send_wqebb);
  Take(told.cqe_size, limits.cqe_size);
  Take(told.page_size, limits.page_size);
  Take(told.irdma.generation, limits.irdma.generation);
  Take(told.irdma.max_quanta, limits.irdma.max_quanta);
  Take(told.efa.max_llq_size, limits.efa.max_llq_size);
  Take(told.efa.min_sq_wr, limits.efa.min_sq_wr);
  Take(told.efa.sub_cqs, limits.efa.sub_cqs);
  Take(told.qedr.send_elements, limits.qedr.send_elements);
  Take(told.qedr.receive_elements, limits.qedr.receive_elements);
  return limits;
}

ObjectCounts Overlay(const ObjectCounts& base, const ObjectCounts& told) {
  ObjectCounts counts = base;
  Take(told.max_qp, counts.max_qp);
  Take(told.max_cq, counts.max_cq);
  Take(told.max_mr, counts.max_mr);
  Take(told.max_srq, counts.max_srq);
  return counts;
}

DeviceLimits WithDefaults(const DeviceLimits& told,
                          const DeviceLimits& defaults) {
  DeviceLimits limits = Overlay(defaults, told);
  limits.writes_back_real_slots = told.writes_back_real_slots;
  limits.bnxt_re = told.bnxt_re;
  limits.hns = told.hns;
  limits.efa.wide_request_ids = told.efa.wide_request_ids;

  Bound(limits.max_qp_wr, UINT32_MAX);
  Bound(limits.max_sge, kMostSge, kMostSge);
  Bound(limits.max_cqe, UINT32_MAX);
  Bound(limits.max_recv_wr, limits.max_qp_wr);
  Bound(limits.max_recv_sge, limits.max_sge, kMostSge);
  Bound(limits.max_srq_wr, limits.max_recv_wr);
  Bound(limits.max_srq_sge, limits.max_recv_sge, kMostSge);
  Bound(limits.max_inline_data, kMostEntryBytes, kMostEntryBytes);
  Bound(limits.max_sq_desc_sz, kMostEntryBytes, kMostEntryBytes);
  Bound(limits.max_rq_desc_sz, kMostEntryBytes, kMostEntryBytes);
  Bound(limits.cqe_size, kDefaultCqeSize, kMostCqeBytes);
  Bound(limits.page_size, kDefaultPageSize, 1u << 31);
  limits.page_size = std::bit_ceil(limits.page_size);
  Bound(limits.irdma.max_quanta, UINT32_MAX);
  Bound(limits.efa.max_llq_size, UINT32_MAX);
  Bound(limits.efa.sub_cqs, 1, kMostSubCqs);
  Bound(limits.qedr.send_elements, kMostSge, kMostSge);
  Bound(limits.qedr.receive_elements, kMostSge, kMostSge);
  return limits;
}

DeviceLimits EffectiveLimits(Provider provider, const DeviceLimits& told) {
  return WithDefaults(told, RulesOf(provider).traits.defaults);
}

}  // namespace purser::queue_memory
