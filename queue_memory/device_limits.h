// SPDX-License-Identifier: Apache-2.0
//
// What a device can do and how it lays its queues out: the memory model's
// input beside the request.
#pragma once

#include <cstdint>

namespace purser::queue_memory {

// 0: not told; the model then takes the provider's named default (registry.h,
// EffectiveLimits).
struct DeviceLimits {
  uint32_t max_qp_wr = 0;  // ibv_device_attr, as the next four
  uint32_t max_sge = 0;
  uint32_t max_cqe = 0;
  uint32_t max_srq_wr = 0;
  uint32_t max_srq_sge = 0;
  // Where a device takes other figures for receives than for sends.
  uint32_t max_recv_wr = 0;
  uint32_t max_recv_sge = 0;
  uint32_t max_inline_data = 0;  // bytes
  uint32_t max_sq_desc_sz = 0;   // mlx5: bytes of the largest send WQE
  uint32_t max_rq_desc_sz = 0;   // mlx5: bytes of the largest receive WQE
  uint32_t max_send_wqebb = 0;   // mlx5: 64-byte basic blocks in a send ring
  uint32_t cqe_size = 0;         // bytes
  uint32_t page_size = 0;        // bytes, a power of two
  // rxe: ibv_create_qp writes back the slots that the ring really has. Before
  // Linux 6.6 it writes back what was asked instead; sizes are the same on
  // both.
  bool writes_back_real_slots = true;

  struct Irdma {
    uint32_t generation = 0;  // 1: X722; 2: E810; 3: E830 and later
    uint32_t max_quanta = 0;  // 32-byte quanta of a ring (max_hw_wq_quanta)
  } irdma;

  struct BnxtRe {
    bool variable_wqe = false;        // entries as large as asked: BCM576xx
    bool msn_table = false;           // 8 bytes an entry instead of 16
    bool power_of_two_rings = false;  // kernels without POW2_DISABLED
  } bnxt_re;

  struct Hns {
    bool receive_inline = true;  // the kernel grants RQ or CQE inline
  } hns;

  struct Efa {
    uint32_t max_llq_size = 0;      // bytes of the send ring in the device
    uint32_t min_sq_wr = 0;         // least depth of a send ring
    uint32_t sub_cqs = 0;           // of a completion queue
    bool wide_request_ids = false;  // 64-bit ids: no arrays beside the SQ
  } efa;

  struct Qedr {
    uint32_t send_elements = 0;     // 16-byte elements of an entry, told by the
    uint32_t receive_elements = 0;  // kernel (sges_per_send_wr, …)
  } qedr;
};

}  // namespace purser::queue_memory
