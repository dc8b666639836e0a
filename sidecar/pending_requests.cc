// SPDX-License-Identifier: Apache-2.0
#include "sidecar/pending_requests.h"

namespace purser::sidecar {
namespace {

constexpr uint64_t kReceive = uint64_t{1} << 63;
constexpr uint32_t kGenerationMask = 0x7fffffff;

}  // namespace

uint64_t PendingRequests::Add(Request request) {
  uint32_t slot = first_free_;
  if (slot == kNone) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.push_back(request.wr_id);
  } else {
    first_free_ = static_cast<uint32_t>(slots_[slot]);
    slots_[slot] = request.wr_id;
  }
  ++(request.receive ? receives_ : sends_);
  return (request.receive ? kReceive : 0) | uint64_t{generation_} << 32 | slot;
}

std::optional<PendingRequests::Request> PendingRequests::Take(uint64_t key) {
  const uint32_t slot = static_cast<uint32_t>(key);
  if ((key >> 32 & kGenerationMask) != generation_ || slot >= slots_.size())
    return std::nullopt;
  const Request request{slots_[slot], (key & kReceive) != 0};
  slots_[slot] = first_free_;
  first_free_ = slot;
  --(request.receive ? receives_ : sends_);
  return request;
}

void PendingRequests::Clear() {
  generation_ = (generation_ + 1) & kGenerationMask;
  first_free_ = kNone;
  sends_ = receives_ = 0;
  std::vector<uint64_t>().swap(slots_);
}

}  // namespace purser::sidecar
