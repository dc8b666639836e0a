// SPDX-License-Identifier: Apache-2.0
//
// Requests and devices of all sorts, for properties that must hold for any.
#pragma once

#include <iterator>
#include <random>
#include <vector>

#include "queue_memory/queue_memory.h"
#include "queue_memory/registry.h"

namespace purser::queue_memory {

inline constexpr QueuePairType kTypes[] = {
    QueuePairType::kRc,      QueuePairType::kUc,        QueuePairType::kUd,
    QueuePairType::kXrcSend, QueuePairType::kRawPacket, QueuePairType::kDci,
    QueuePairType::kSrd};

// Each known provider as on each kind of device, and the fallback.
inline std::vector<DeviceProfile> Profiles() {
  const auto known = KnownProfiles();
  std::vector<DeviceProfile> profiles(known.begin(), known.end());
  profiles.push_back({.name = "unknown"});
  return profiles;
}

// So that one does not refuse nearly everything.
inline QueuePairType TypeOf(Provider provider, QueuePairType otherwise) {
  if (TraitsOf(provider).Has(otherwise)) return otherwise;
  return TraitsOf(provider).Has(QueuePairType::kRc) ? QueuePairType::kRc
                                                    : QueuePairType::kUd;
}

// Figures of all magnitudes, with those around powers of two more often.
class Arbitrary {
 public:
  explicit Arbitrary(uint32_t seed) : random_(seed) {}
  uint32_t Up(uint32_t most) { return Figure() % (uint64_t{most} + 1); }
  uint32_t Figure() {
    const uint32_t shifted =
        static_cast<uint32_t>(random_() >> (32 + random_() % 32));
    switch (random_() % 4) {
      case 0:
        return uint32_t{1} << (random_() % 32);
      case 1:
        return (uint32_t{1} << (random_() % 32)) - 1;
      case 2:
        return random_() % 8 == 0 ? UINT32_MAX : shifted;
      default:
        return shifted;
    }
  }
  QueuePairRequest Sensible() {
    return {.type = kTypes[random_() % std::size(kTypes)],
            .send_ops = static_cast<uint32_t>(random_() % 16),
            .max_send_wr = Up(40000),
            .max_send_sge = Up(40),
            .max_inline_data = Up(900),
            .max_recv_wr = Up(40000),
            .max_recv_sge = Up(40),
            .uses_srq = random_() % 4 == 0};
  }
  QueuePairRequest Any() {
    return {.type = kTypes[random_() % std::size(kTypes)],
            .send_ops = static_cast<uint32_t>(random_() % 16),
            .max_send_wr = Figure(),
            .max_send_sge = Figure(),
            .max_inline_data = Figure(),
            .max_recv_wr = Figure(),
            .max_recv_sge = Figure(),
            .uses_srq = random_() % 4 == 0};
  }
  DeviceLimits AnyLimits() {
    return {.max_qp_wr = Told(),
            .max_sge = Told(),
            .max_cqe = Told(),
            .max_srq_wr = Told(),
            .max_srq_sge = Told(),
            .max_recv_wr = Told(),
            .max_recv_sge = Told(),
            .max_inline_data = Told(),
            .max_sq_desc_sz = Told(),
            .max_rq_desc_sz = Told(),
            .max_send_wqebb = Told(),
            .cqe_size = Told(),
            .page_size = random_() % 2 == 0 ? 0 : 1u << (12 + random_() % 20),
            .writes_back_real_slots = random_() % 2 == 0,
            .irdma = {.generation = static_cast<uint32_t>(random_() % 4),
                      .max_quanta = Told()},
            .bnxt_re = {.variable_wqe = random_() % 2 == 0,
                        .msn_table = random_() % 2 == 0,
                        .power_of_two_rings = random_() % 2 == 0},
            .hns = {.receive_inline = random_() % 2 == 0},
            .efa = {.max_llq_size = Told(),
                    .min_sq_wr = Told(),
                    .sub_cqs = Told(),
                    .wide_request_ids = random_() % 2 == 0},
            .qedr = {.send_elements = Told(), .receive_elements = Told()}};
  }
  uint64_t operator()() { return random_(); }

 private:
  uint32_t Told() { return random_() % 2 == 0 ? 0 : Figure(); }
  std::mt19937_64 random_;
};

}  // namespace purser::queue_memory
