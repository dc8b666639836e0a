// SPDX-License-Identifier: Apache-2.0
#include "sidecar/completion_choice.h"

#include <algorithm>
#include <optional>

#include "queue_memory/fit.h"

namespace purser::sidecar {
namespace {

using queue_memory::Charge;
using queue_memory::DeviceLimits;
using queue_memory::Provider;
using queue_memory::QueueMemory;
using Kind = CompletionChoice::Kind;

uint32_t Entries(uint64_t completions) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(completions, 1, UINT32_MAX));
}

uint64_t Less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

// A new one, at most as large as the device has them.
CompletionChoice New(Provider provider, const DeviceLimits& limits, Kind kind,
                     uint64_t slots, uint64_t extra_slots) {
  CompletionChoice choice{.kind = kind};
  const uint64_t all = slots + extra_slots;
  choice.cqe =
      Entries(kind == Kind::kOwn ? all : queue_memory::WithHeadroom(all));
  choice.memory =
      queue_memory::CompletionQueueMemory(provider, limits, choice.cqe);
  if (choice.memory.refusal.limit == queue_memory::Limit::kMaxCqe) {
    choice.cqe = static_cast<uint32_t>(choice.memory.refusal.allowed);
    choice.memory =
        queue_memory::CompletionQueueMemory(provider, limits, choice.cqe);
  }
  choice.growth = choice.memory.total();
  choice.room = std::min<uint64_t>(slots, Less(choice.cqe, extra_slots));
  // Without room for its own requests beside the shared receives.
  if (slots > 0 && choice.room == 0 && !choice.memory.refusal)
    choice.memory.refusal = {queue_memory::Limit::kMaxCqe, all, choice.cqe};
  return choice;
}

// One that exists; nullopt where it would have to be larger than it can be.
std::optional<CompletionChoice> Existing(Provider provider,
                                         const DeviceLimits& limits,
                                         const CompletionOffer::Shared& shared,
                                         size_t index, uint64_t slots) {
  CompletionChoice choice{
      .kind = Kind::kExisting, .existing = index, .room = slots};
  const uint32_t needed = Entries(
      queue_memory::WithHeadroom(shared.slots + shared.extra_slots + slots));
  if (needed <= shared.cqe) return choice;
  if (!shared.may_grow) return std::nullopt;
  choice.cqe = needed;
  choice.memory = queue_memory::CompletionQueueMemory(provider, limits, needed);
  if (choice.memory.refusal) return std::nullopt;
  const Charge then = choice.memory.total();
  choice.growth = {.container = Less(then.container, shared.charged.container),
                   .node = Less(then.node, shared.charged.node)};
  return choice;
}

}  // namespace

CompletionChoice SmallestShared(Provider provider, const DeviceLimits& limits,
                                uint64_t slots) {
  return New(provider, limits, Kind::kFurther, slots, 0);
}

CompletionChoice ChooseCompletionQueue(Provider provider,
                                       const DeviceLimits& limits,
                                       uint64_t slots,
                                       const CompletionOffer& offer) {
  std::optional<CompletionChoice> best;
  const auto consider = [&](const CompletionChoice& choice) {
    if (!best || best->memory.refusal ||
        (!choice.memory.refusal &&
         choice.growth.total() < best->growth.total()))
      best = choice;
  };
  if (offer.kind != CompletionOffer::Kind::kOwn) {
    for (size_t i = 0; i < offer.shared.size(); ++i)
      if (const auto existing =
              Existing(provider, limits, offer.shared[i], i, slots))
        consider(*existing);
    // Who insists on sharing gets a further one only where there is no other
    // way.
    if (best && offer.kind == CompletionOffer::Kind::kShared) return *best;
    consider(New(provider, limits, Kind::kFurther, slots, offer.extra_slots));
  }
  if (offer.kind != CompletionOffer::Kind::kShared)
    consider(New(provider, limits, Kind::kOwn, slots, offer.extra_slots));
  return *best;
}

}  // namespace purser::sidecar
