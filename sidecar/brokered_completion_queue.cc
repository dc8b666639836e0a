// SPDX-License-Identifier: Apache-2.0
#include "sidecar/brokered_completion_queue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/logging.h"
#include "base/status_macros.h"
#include "sidecar/work_queue.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr int kPollBatch = 32;

}  // namespace

Wakeups::~Wakeups() {
  for (const auto& events : events_) events->CompletionEvent();
}

void Wakeups::Add(const std::shared_ptr<QueuePairEvents>& events) {
  if (std::find(events_.begin(), events_.end(), events) == events_.end())
    events_.push_back(events);
}

absl::StatusOr<std::shared_ptr<BrokeredCompletionQueue>>
BrokeredCompletionQueue::Create(std::shared_ptr<OpenedDevice> opened,
                                uint32_t cqe) {
  auto queue =
      std::make_shared<BrokeredCompletionQueue>(ByCreate(), std::move(opened));
  PURSER_ASSIGN_OR_RETURN(
      queue->cq_,
      rdma::CreateCq(queue->opened_->verbs(), queue->opened_->context(),
                     static_cast<int>(cqe), queue.get(),
                     queue->opened_->channel()));
  return queue;
}

uint32_t BrokeredCompletionQueue::cqe() const {
  std::lock_guard lock(mutex_);
  return cq_ == nullptr ? 0 : static_cast<uint32_t>(cq_->cqe);
}

std::shared_ptr<OpenedDevice> BrokeredCompletionQueue::opened() const {
  std::lock_guard lock(mutex_);
  return opened_;
}

absl::Status BrokeredCompletionQueue::Resize(uint32_t cqe) {
  std::lock_guard lock(mutex_);
  return opened_->verbs().ResizeCq(cq_.get(), static_cast<int>(cqe));
}

void BrokeredCompletionQueue::Join(uint32_t qp_num, WorkQueue& work_queue) {
  std::lock_guard lock(mutex_);
  work_queues_.emplace(PlaceOf(qp_num), qp_num, &work_queue);
}

std::vector<BrokeredCompletionQueue::Member>::iterator
BrokeredCompletionQueue::PlaceOf(uint32_t qp_num) {
  return std::ranges::lower_bound(work_queues_, qp_num, {}, &Member::first);
}

WorkQueue* BrokeredCompletionQueue::Find(uint32_t qp_num) {
  const auto place = PlaceOf(qp_num);
  return place == work_queues_.end() || place->first != qp_num ? nullptr
                                                               : place->second;
}

absl::Status BrokeredCompletionQueue::DestroyQueuePair(rdma::QueuePair& qp,
                                                       Wakeups& wakeups) {
  if (qp == nullptr) return absl::OkStatus();
  std::lock_guard lock(mutex_);
  const uint32_t qp_num = qp->qp_num;
  // Before, since mlx5 takes them along, and of shared receives it must be
  // known that they were used. A queue that cannot be polled holds nothing that
  // could be taken for another's later.
  (void)DrainLocked(wakeups);
  if (absl::Status status = rdma::Destroy(qp); !status.ok()) {
    PlaceOf(qp_num)->second = nullptr;
    return status;
  }
  (void)DrainLocked(wakeups);
  work_queues_.erase(PlaceOf(qp_num));
  return absl::OkStatus();
}

absl::StatusOr<Wakeups> BrokeredCompletionQueue::Drain() {
  Wakeups wakeups;
  std::unique_lock lock(mutex_);
  const absl::Status status = DrainLocked(wakeups);
  lock.unlock();
  if (!status.ok()) return status;
  return wakeups;
}

absl::StatusOr<Wakeups> BrokeredCompletionQueue::ArmAndDrain() {
  Wakeups wakeups;
  std::unique_lock lock(mutex_);
  if (opened_ == nullptr) return wakeups;
  absl::Status status = rdma::StatusOf(
      opened_->verbs().ReqNotifyCq(cq_.get(), false), "ibv_req_notify_cq");
  if (status.ok()) status = DrainLocked(wakeups);
  lock.unlock();
  if (!status.ok()) return status;
  return wakeups;
}

void BrokeredCompletionQueue::CompletionEvent() {
  Wakeups wakeups;
  absl::Status status;
  {
    std::lock_guard lock(mutex_);
    if (opened_ == nullptr) return;
    if (IsWaitedFor())
      status = rdma::StatusOf(opened_->verbs().ReqNotifyCq(cq_.get(), false),
                              "ibv_req_notify_cq");
    status.Update(DrainLocked(wakeups));
  }
  // Those who wait are told at their time.
  if (!status.ok())
    base::LogError("completions are not taken", {{"status", status}});
}

void BrokeredCompletionQueue::Overran() {
  CompletionEvent();
  Wakeups wakeups;
  std::lock_guard lock(mutex_);
  for (const auto& [qp_num, work_queue] : work_queues_)
    if (work_queue != nullptr && work_queue->events()->has_subscribers())
      wakeups.Add(work_queue->events());
}

absl::Status BrokeredCompletionQueue::DrainLocked(Wakeups& wakeups) {
  if (opened_ == nullptr) return absl::OkStatus();
  std::array<ibv_wc, kPollBatch> batch;
  int count = kPollBatch;
  while (count == kPollBatch) {
    count = opened_->verbs().PollCq(cq_.get(), kPollBatch, batch.data());
    if (count < 0)
      return absl::InternalError(fmt::format("ibv_poll_cq: {}", count));
    for (int i = 0; i < count; ++i) {
      WorkQueue* const work_queue = Find(batch[i].qp_num);
      if (work_queue != nullptr && work_queue->Deliver(batch[i]))
        wakeups.Add(work_queue->events());
    }
  }
  return absl::OkStatus();
}

bool BrokeredCompletionQueue::IsWaitedFor() const {
  return std::any_of(work_queues_.begin(), work_queues_.end(),
                     [](const auto& entry) {
                       return entry.second != nullptr &&
                              entry.second->events()->has_subscribers();
                     });
}

absl::Status BrokeredCompletionQueue::Close() {
  std::shared_ptr<OpenedDevice> opened;  // let go of without the lock
  std::lock_guard lock(mutex_);
  PURSER_RETURN_IF_ERROR(rdma::Destroy(cq_));
  opened = std::exchange(opened_, nullptr);
  return absl::OkStatus();
}

}  // namespace purser::sidecar
