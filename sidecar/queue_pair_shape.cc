// SPDX-License-Identifier: Apache-2.0
#include "sidecar/queue_pair_shape.h"

#include <algorithm>
#include <tuple>

namespace purser::sidecar {
namespace {

auto Fields(const ibv_qp_cap& cap) {
  return std::tie(cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge,
                  cap.max_recv_sge, cap.max_inline_data);
}

}  // namespace

uint32_t QueuePairShape::send_slots() const {
  return std::max(memory.send_ring.slots, cap.max_send_wr);
}

uint32_t QueuePairShape::recv_slots() const {
  return std::max(memory.receive_ring.slots, cap.max_recv_wr);
}

bool operator==(const QueuePairShape& a, const QueuePairShape& b) {
  return a.type == b.type && a.send_ops == b.send_ops &&
         Fields(a.cap) == Fields(b.cap) && a.request == b.request &&
         a.memory == b.memory;
}

std::shared_ptr<const QueuePairShape> QueuePairShapes::Intern(
    const QueuePairShape& shape) {
  std::lock_guard lock(mutex_);
  for (const auto& known : last_)
    if (auto found = known.lock(); found != nullptr && *found == shape)
      return found;
  auto made = std::make_shared<const QueuePairShape>(shape);
  last_[next_] = made;
  next_ = (next_ + 1) % last_.size();
  return made;
}

}  // namespace purser::sidecar
