// SPDX-License-Identifier: Apache-2.0
//
// One completion queue, and the work queues whose completions come out of it.
// Whoever polls takes everything and hands each completion to its work queue,
// by qp_num, from which its client fetches it; so no client waits for another
// queue pair's completions to be fetched, and the queue never fills up with
// them. Any thread. Locks: a work queue's comes after this one's.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "rdma/handles.h"
#include "sidecar/opened_device.h"
#include "sidecar/queue_pair_events.h"

namespace purser::sidecar {

class WorkQueue;

// Those who wait for completions that came; told when this is destroyed, which
// must be where no lock of a queue pair, work queue or completion queue is
// held: they fetch their completions then.
class Wakeups {
 public:
  Wakeups() = default;
  Wakeups(Wakeups&&) = default;
  Wakeups& operator=(Wakeups&&) = default;
  ~Wakeups();
  void Add(const std::shared_ptr<QueuePairEvents>& events);

 private:
  std::vector<std::shared_ptr<QueuePairEvents>> events_;  // each once
};

class BrokeredCompletionQueue
    : public std::enable_shared_from_this<BrokeredCompletionQueue> {
 public:
  // Its events go to the device's channel.
  static absl::StatusOr<std::shared_ptr<BrokeredCompletionQueue>> Create(
      std::shared_ptr<OpenedDevice> opened, uint32_t cqe);
  // After Close(); what could not be destroyed before is leaked, and logged.
  ~BrokeredCompletionQueue() = default;

  ibv_cq* cq() const { return cq_.get(); }
  uint32_t cqe() const;
  // Null after Close().
  std::shared_ptr<OpenedDevice> opened() const;
  absl::Status Resize(uint32_t cqe);

  // From now on the queue pair's completions go to `work_queue`, which must
  // call DestroyQueuePair() before its end. Once for each.
  void Join(uint32_t qp_num, WorkQueue& work_queue);
  // Destroys the queue pair and drops what it leaves in the queue (soft-RoCE
  // leaves it there, mlx5 takes it along), before its number can be another's.
  // Where the device refuses, completions of it are dropped as they come.
  absl::Status DestroyQueuePair(rdma::QueuePair& qp, Wakeups& wakeups);

  // Takes all that is there. Nothing after Close().
  absl::StatusOr<Wakeups> Drain();
  // Requests an event, then takes all that is there: no completion gets lost
  // between the two.
  absl::StatusOr<Wakeups> ArmAndDrain();
  // On the device's thread: takes all that is there and tells who waits.
  void CompletionEvent();
  // Completions were lost: tells all who wait, who may wait for one of them.
  void Overran();

  // Destroys it and lets go of the device. Where the device refuses, all is as
  // before.
  absl::Status Close();

 private:
  struct ByCreate {};  // who alone makes them
  using Member = std::pair<uint32_t, WorkQueue*>;

 public:
  BrokeredCompletionQueue(ByCreate, std::shared_ptr<OpenedDevice> opened)
      : opened_(std::move(opened)) {}

 private:
  // Of the queue pair, or where it belongs.
  std::vector<Member>::iterator PlaceOf(uint32_t qp_num)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Null: it is nobody's.
  WorkQueue* Find(uint32_t qp_num) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status DrainLocked(Wakeups& wakeups)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsWaitedFor() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable std::mutex mutex_;
  std::shared_ptr<OpenedDevice> opened_;  // null: closed
  rdma::CompletionQueue cq_;
  // Sorted by qp_num; null: destroyed for its owner, but not for the device.
  std::vector<Member> work_queues_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::sidecar
