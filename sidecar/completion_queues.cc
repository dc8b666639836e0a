// SPDX-License-Identifier: Apache-2.0
#include "sidecar/completion_queues.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/status_macros.h"
#include "sidecar/actual_charge.h"

namespace purser::sidecar {
namespace {

// Ends a completion queue and its lease; the bytes that returned.
uint64_t End(std::shared_ptr<BrokeredCompletionQueue> queue, Lease lease,
             Undestroyed& undestroyed) {
  const uint64_t bytes = lease.charge().total();
  const absl::Status status = queue->Close();
  if (status.ok()) return bytes;
  auto kept = std::make_shared<Lease>(std::move(lease));
  const std::shared_ptr<OpenedDevice> opened = queue->opened();
  undestroyed.Add(*opened, "cq", status,
                  [queue = std::move(queue), kept = std::move(kept)] {
                    return queue->Close();
                  });
  return 0;
}

absl::Status Outgrown() {
  return absl::ResourceExhaustedError(
      "the completion queue is larger than the memory model predicted, and "
      "what it takes more does not fit the budget");
}

}  // namespace

CompletionRoom::CompletionRoom(CompletionRoom&& other) noexcept {
  *this = std::move(other);
}

CompletionRoom& CompletionRoom::operator=(CompletionRoom&& other) noexcept {
  if (this == &other) return *this;
  Release();
  queue_ = std::exchange(other.queue_, nullptr);
  set_ = std::exchange(other.set_, nullptr);
  undestroyed_ = other.undestroyed_;
  lease_ = std::move(other.lease_);
  id_ = other.id_;
  slots_ = other.slots_;
  entries_ = other.entries_;
  receives_ = other.receives_;
  return *this;
}

bool CompletionRoom::Commit(ledger::Charge actual) {
  return set_ != nullptr || lease_.Commit(actual);
}

uint64_t CompletionRoom::Release() {
  if (queue_ == nullptr) return 0;
  if (set_ != nullptr) {
    const std::shared_ptr<CompletionQueueSet> set =
        std::exchange(set_, nullptr);
    return set->Release(*this);
  }
  return End(std::exchange(queue_, nullptr), std::exchange(lease_, Lease()),
             *undestroyed_);
}

CompletionQueueSet::CompletionQueueSet(Facts facts,
                                       std::atomic<uint64_t>& last_id,
                                       Undestroyed& undestroyed)
    : facts_(std::move(facts)), last_id_(last_id), undestroyed_(undestroyed) {}

CompletionOffer CompletionQueueSet::Offer(CompletionOffer::Kind kind,
                                          const SharedReceives& receives,
                                          bool may_grow) const {
  CompletionOffer offer{.kind = kind, .extra_slots = receives.slots};
  std::lock_guard lock(mutex_);
  for (const auto& shared : queues_)
    offer.shared.push_back(
        {.slots = shared->slots,
         .extra_slots =
             shared->receives.contains(receives.id) ? 0 : receives.slots,
         .cqe = shared->cqe,
         .charged = shared->memory.total(),
         .may_grow = may_grow && shared->resizable});
  return offer;
}

absl::StatusOr<CompletionRoom> CompletionQueueSet::Room(
    const std::shared_ptr<OpenedDevice>& opened, const SharedReceives& receives,
    Grant& grant) {
  const CompletionChoice& choice = grant.completion;
  Shared* shared = nullptr;
  if (choice.kind == CompletionChoice::Kind::kExisting) {
    shared = queues_[choice.existing].get();
    if (choice.cqe != 0)
      PURSER_RETURN_IF_ERROR(
          Resize(*shared, choice, grant.lease.Split(ToLedger(choice.growth))));
  } else {
    PURSER_ASSIGN_OR_RETURN(
        auto queue, BrokeredCompletionQueue::Create(opened, choice.cqe));
    auto added = std::make_unique<Shared>();
    added->id = ++last_id_;
    added->cqe = queue->cqe();
    added->memory = ActualCompletionQueue(*facts_.device, choice, added->cqe);
    added->lease = grant.lease.Split(ToLedger(choice.growth));
    if (!added->lease.Commit(ToLedger(added->memory.total()))) {
      End(std::move(queue), std::move(added->lease), undestroyed_);
      return Outgrown();
    }
    added->queue = std::move(queue);
    shared = added.get();
    std::lock_guard lock(mutex_);
    queues_.push_back(std::move(added));
  }
  CompletionRoom room;
  room.queue_ = shared->queue;
  room.set_ = shared_from_this();
  room.undestroyed_ = &undestroyed_;
  room.id_ = shared->id;
  room.slots_ = room.entries_ = static_cast<uint32_t>(choice.room);
  room.receives_ = receives;
  std::lock_guard lock(mutex_);
  ++shared->queue_pairs;
  shared->slots += choice.room;
  if (receives.id != 0 && ++shared->receives[receives.id] == 1)
    shared->slots += receives.slots;
  return room;
}

absl::Status CompletionQueueSet::Resize(Shared& shared,
                                        const CompletionChoice& choice,
                                        Lease growth) {
  const bool grows = choice.cqe > shared.cqe;
  // The smaller of the two, for the while in which both are there; of what is
  // promised to nobody else. To give back, it is done without.
  const std::optional<Lease> meanwhile = shared.lease.Beside(
      grows ? shared.lease.charge() : ToLedger(choice.memory.total()));
  if (grows && !meanwhile)
    return absl::ResourceExhaustedError(
        "no room in the budget for the moment in which the completion queue is "
        "resized, when the old one and the new one are there");
  absl::Status status = shared.queue->Resize(choice.cqe);
  const uint32_t cqe = shared.queue->cqe();
  queue_memory::QueueMemory memory = shared.memory;
  if (status.ok()) {
    shared.lease.Absorb(std::move(growth));
    memory = ActualCompletionQueue(*facts_.device, choice, cqe);
    // It stays as large as it is, charged as predicted, and is let alone.
    if (!shared.lease.Commit(ToLedger(memory.total()))) {
      memory = choice.memory;
      status = Outgrown();
    }
  }
  // For want of memory it may do later what it refuses now.
  const bool resizable = status.ok() || rdma::ErrnoOf(status) == ENOMEM;
  std::lock_guard lock(mutex_);
  if (status.ok() && cqe > shared.cqe) ++shared.growths;
  shared.memory = memory;
  shared.cqe = cqe;
  shared.resizable = resizable;
  return status;
}

uint64_t CompletionQueueSet::GiveBack() {
  const std::unique_lock holding(holding_, std::try_to_lock);
  if (!holding) return 0;
  uint64_t returned = 0;
  for (const auto& shared : queues_) {
    const uint64_t bytes = shared->memory.total().total();
    const CompletionChoice choice = SmallestShared(
        facts_.device->provider, facts_.device->limits, shared->slots);
    if (!shared->resizable || choice.cqe >= shared->cqe ||
        choice.memory.total().total() >= bytes)
      continue;
    if (Resize(*shared, choice, {}).ok())
      returned += bytes - shared->memory.total().total();
  }
  return returned;
}

uint64_t CompletionQueueSet::Release(CompletionRoom& room) {
  const std::shared_ptr<BrokeredCompletionQueue> queue =
      std::exchange(room.queue_, nullptr);
  std::lock_guard holding(holding_);
  std::unique_ptr<Shared> ended;
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(
        queues_.begin(), queues_.end(),
        [&](const auto& shared) { return shared->queue == queue; });
    Shared& shared = **found;
    shared.slots -= room.slots_;
    if (room.receives_.id != 0 && --shared.receives[room.receives_.id] == 0) {
      shared.receives.erase(room.receives_.id);
      shared.slots -= room.receives_.slots;
    }
    if (--shared.queue_pairs > 0) return 0;
    ended = std::move(*found);
    queues_.erase(found);
  }
  return End(std::move(ended->queue), std::move(ended->lease), undestroyed_);
}

std::vector<SharedCompletionQueueState> CompletionQueueSet::State() const {
  std::vector<SharedCompletionQueueState> states;
  std::lock_guard lock(mutex_);
  for (const auto& shared : queues_)
    states.push_back({.id = shared->id,
                      .cqe = shared->cqe,
                      .queue_pairs = shared->queue_pairs,
                      .growths = shared->growths,
                      .slots = shared->slots,
                      .memory = shared->memory});
  return states;
}

std::shared_ptr<CompletionQueueSet> CompletionQueues::SetOf(
    CompletionQueueSet::Facts facts, const OpenedDevice& opened) {
  std::lock_guard lock(mutex_);
  std::erase_if(sets_,
                [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<CompletionQueueSet>& known =
      sets_[{&opened, facts.owner.get(), facts.name}];
  std::shared_ptr<CompletionQueueSet> set = known.lock();
  if (set == nullptr) {
    set = std::make_shared<CompletionQueueSet>(std::move(facts), last_id_,
                                               undestroyed_);
    known = set;
  }
  return set;
}

absl::StatusOr<CompletionRoom> CompletionQueues::OwnRoom(
    const std::shared_ptr<OpenedDevice>& opened, const SharedReceives& receives,
    Grant& grant) {
  CompletionRoom room;
  PURSER_ASSIGN_OR_RETURN(room.queue_, BrokeredCompletionQueue::Create(
                                           opened, grant.completion.cqe));
  room.undestroyed_ = &undestroyed_;
  room.lease_ = grant.lease.Split(ToLedger(grant.completion.growth));
  room.slots_ = static_cast<uint32_t>(grant.completion.room);
  room.receives_ = receives;
  // What rounding leaves beside the shared receives is of use, too.
  const uint64_t left = room.queue_->cqe() > receives.slots
                            ? room.queue_->cqe() - receives.slots
                            : 0;
  room.entries_ =
      static_cast<uint32_t>(std::max<uint64_t>(grant.completion.room, left));
  return room;
}

uint64_t CompletionQueues::GiveBack() {
  uint64_t returned = 0;
  for (const auto& set : All()) returned += set->GiveBack();
  return returned;
}

std::vector<std::shared_ptr<CompletionQueueSet>> CompletionQueues::All() const {
  std::vector<std::shared_ptr<CompletionQueueSet>> sets;
  std::lock_guard lock(mutex_);
  for (const auto& [key, known] : sets_)
    if (std::shared_ptr<CompletionQueueSet> set = known.lock())
      sets.push_back(std::move(set));
  return sets;
}

}  // namespace purser::sidecar
