// SPDX-License-Identifier: Apache-2.0
#include "sidecar/undestroyed.h"

#include <iterator>

#include "base/logging.h"
#include "rdma/verbs.h"
#include "sidecar/opened_device.h"

namespace purser::sidecar {

Undestroyed::Undestroyed(Counters& counters,
                         std::chrono::milliseconds retry_every)
    : counters_(counters),
      retry_every_(retry_every),
      thread_([this](std::stop_token stop) { Run(std::move(stop)); }) {}

Undestroyed::~Undestroyed() {
  thread_.request_stop();
  thread_.join();
  TryAll();
  LetGo(nullptr);
}

void Undestroyed::Add(const OpenedDevice& opened, const std::string& object,
                      const absl::Status& why, Attempt attempt) {
  const std::string device =
      opened.name();  // `attempt` may hold the last of it
  counters_.destroy_failures.Add(object, rdma::ErrnoName(rdma::ErrnoOf(why)));
  {
    std::lock_guard lock(mutex_);
    // GiveUp() comes after it was marked, and sees what is here by then.
    if (!opened.lost()) {
      entries_.push_back({device, object, std::move(attempt)});
      attempt = nullptr;
      changed_.notify_all();
    }
  }
  const bool kept = attempt == nullptr;
  base::LogError(
      kept ? "RDMA object not destroyed: it stays charged and is tried again"
           : "RDMA object of a lost device not destroyed: it is tried once "
             "more, else the kernel does it when the device is closed",
      {{"device", device}, {"object", object}, {"status", why}});
  if (!kept) (void)attempt();
}

void Undestroyed::Run(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    changed_.wait(lock, stop, [this] { return !entries_.empty(); });
    // Nothing but a stop ends this wait early.
    changed_.wait_for(lock, stop, retry_every_, [] { return false; });
    if (stop.stop_requested()) return;
    lock.unlock();
    TryAll();
    lock.lock();
  }
}

// An attempt may add others, of what it held.
void Undestroyed::TryAll() {
  std::lock_guard trying(trying_);
  std::unique_lock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    lock.unlock();
    const bool gone = entry->attempt().ok();
    if (gone)
      base::LogInfo("RDMA object destroyed at last",
                    {{"device", entry->device}, {"object", entry->object}});
    lock.lock();
    const auto next = std::next(entry);
    std::list<Entry> ended;  // destroyed without the lock
    if (gone) ended.splice(ended.begin(), entries_, entry);
    entry = next;
    lock.unlock();
    ended.clear();
    lock.lock();
  }
}

void Undestroyed::GiveUp(const std::string& device) {
  TryAll();
  LetGo(&device);
}

void Undestroyed::LetGo(const std::string* device) {
  std::lock_guard trying(trying_);
  std::list<Entry> ended;
  do {
    ended.clear();  // without mutex_
    std::lock_guard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const auto next = std::next(entry);
      if (device == nullptr || entry->device == *device)
        ended.splice(ended.end(), entries_, entry);
      entry = next;
    }
  } while (!ended.empty());
}

Undestroyed::Counts Undestroyed::counts() const {
  std::lock_guard lock(mutex_);
  Counts counts;
  for (const Entry& entry : entries_) ++counts[{entry.device, entry.object}];
  return counts;
}

}  // namespace purser::sidecar
