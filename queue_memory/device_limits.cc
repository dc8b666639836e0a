// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/device_limits.h"

#include "queue_memory/arithmetic.h"
#include "queue_memory/providers.h"

namespace purser::queue_memory {
namespace {

// Told, else the provider's default, else no limit; in any case no more than
// `most`.
uint32_t Resolve(uint32_t told, uint32_t otherwise,
                 uint32_t most = UINT32_MAX) {
  const uint32_t limit = told != 0 ? told : otherwise;
  return limit == 0 ? most : Min(limit, most);
}

uint32_t Told(uint32_t told, uint32_t otherwise) {
  return told != 0 ? told : otherwise;
}

}  // namespace

DeviceLimits WithDefaults(const DeviceLimits& told,
                          const DeviceLimits& defaults) {
  DeviceLimits limits = told;
  limits.max_qp_wr = Resolve(told.max_qp_wr, defaults.max_qp_wr);
  limits.max_sge = Resolve(told.max_sge, defaults.max_sge, kMostSge);
  limits.max_cqe = Resolve(told.max_cqe, defaults.max_cqe);
  limits.max_recv_wr =
      Resolve(Told(told.max_recv_wr, defaults.max_recv_wr), limits.max_qp_wr);
  limits.max_recv_sge = Resolve(Told(told.max_recv_sge, defaults.max_recv_sge),
                                limits.max_sge, kMostSge);
  limits.max_srq_wr =
      Resolve(Told(told.max_srq_wr, defaults.max_srq_wr), limits.max_recv_wr);
  limits.max_srq_sge = Resolve(Told(told.max_srq_sge, defaults.max_srq_sge),
                               limits.max_recv_sge, kMostSge);
  limits.max_inline_data =
      Resolve(told.max_inline_data, defaults.max_inline_data, kMostEntryBytes);
  limits.max_sq_desc_sz =
      Resolve(told.max_sq_desc_sz, defaults.max_sq_desc_sz, kMostEntryBytes);
  limits.max_rq_desc_sz =
      Resolve(told.max_rq_desc_sz, defaults.max_rq_desc_sz, kMostEntryBytes);
  limits.max_send_wqebb = Told(told.max_send_wqebb, defaults.max_send_wqebb);
  limits.cqe_size =
      Resolve(told.cqe_size, Told(defaults.cqe_size, 64), kMostCqeBytes);
  limits.page_size = Told(told.page_size, kDefaultPageSize);
  limits.irdma.generation =
      Told(told.irdma.generation, defaults.irdma.generation);
  limits.irdma.max_quanta =
      Resolve(told.irdma.max_quanta, defaults.irdma.max_quanta);
  limits.efa.max_llq_size =
      Resolve(told.efa.max_llq_size, defaults.efa.max_llq_size);
  limits.efa.sub_cqs = Resolve(told.efa.sub_cqs, 1, kMostSubCqs);
  limits.qedr.send_elements =
      Resolve(told.qedr.send_elements, defaults.qedr.send_elements, kMostSge);
  limits.qedr.receive_elements = Resolve(
      told.qedr.receive_elements, defaults.qedr.receive_elements, kMostSge);
  return limits;
}

DeviceLimits EffectiveLimits(Provider provider, const DeviceLimits& told) {
  return WithDefaults(told, RulesOf(provider).traits.defaults);
}

}  // namespace purser::queue_memory
