// SPDX-License-Identifier: Apache-2.0
#include "sidecar/brokered_shared_receive_queue.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr char kOperation[] = "receive";

}  // namespace

BrokeredSharedReceiveQueue::BrokeredSharedReceiveQueue(Facts facts, Parts parts,
                                                       Counters& counters,
                                                       TrafficShares shares)
    : facts_(std::move(facts)),
      counters_(counters),
      shares_(std::move(shares)),
      parts_(std::move(parts)) {}

ibv_srq* BrokeredSharedReceiveQueue::srq() const {
  std::lock_guard lock(mutex_);
  return parts_.srq.get();
}

PostResult BrokeredSharedReceiveQueue::PostReceive(
    std::span<ibv_recv_wr> requests) {
  std::lock_guard lock(mutex_);
  if (!ended_.ok()) {
    PostResult refused =
        RefuseReceive(0, ECANCELED, std::string(ended_.message()));
    refused.ended = ended_;
    return refused;
  }
  // The completion queues have room for so many.
  const size_t outstanding = pending_.total() + completed_;
  const size_t room =
      facts_.slots > outstanding ? facts_.slots - outstanding : 0;
  const size_t count = std::min(requests.size(), room);
  const PostResult result = PostChain(
      requests.first(count), true, pending_,
      [&](ibv_recv_wr* first, ibv_recv_wr** bad) {
        return facts_.device->verbs().PostSrqRecv(parts_.srq.get(), first, bad);
      });
  if (result.posted > 0) {
    counters_.posts.Add(kOperation, result.posted);
    for (const auto& share : shares_)
      if (share != nullptr) share->posts += result.posted;
  }
  if (result.error_number == 0 && count == requests.size()) return result;
  if (result.error_number != 0 && result.error_number != ENOMEM)
    return RefuseReceive(result.posted, result.error_number,
                         fmt::format("ibv_post_srq_recv: {}",
                                     rdma::ErrnoName(result.error_number)));
  return RefuseReceive(
      result.posted, ENOMEM,
      fmt::format("shared receive queue full: it takes {} requests; {} are "
                  "posted whose completions were not fetched. Poll its queue "
                  "pairs, then post again, or create it with a larger max_wr",
                  facts_.slots, pending_.total() + completed_));
}

PostResult BrokeredSharedReceiveQueue::RefuseReceive(uint32_t posted,
                                                     int error_number,
                                                     std::string message) {
  counters_.post_failures.Add(kOperation, rdma::ErrnoName(error_number));
  for (const auto& share : shares_)
    if (share != nullptr) ++share->post_failures;
  return {posted, error_number, std::move(message), absl::OkStatus()};
}

std::optional<PendingRequests::Request> BrokeredSharedReceiveQueue::Complete(
    uint64_t key) {
  std::lock_guard lock(mutex_);
  const auto request = pending_.Take(key);
  if (request.has_value()) ++completed_;
  return request;
}

void BrokeredSharedReceiveQueue::Fetched(uint32_t count) {
  std::lock_guard lock(mutex_);
  completed_ -= count;
}

uint64_t BrokeredSharedReceiveQueue::outstanding() const {
  std::lock_guard lock(mutex_);
  return pending_.total() + completed_;
}

BrokeredSharedReceiveQueue::Ended BrokeredSharedReceiveQueue::End(
    const absl::Status& why, Undestroyed& undestroyed) {
  auto parts = std::make_shared<Parts>();
  {
    std::lock_guard lock(mutex_);
    if (!ended_.ok()) return {};
    ended_ = why;
    *parts = std::move(parts_);
  }
  const uint64_t bytes = parts->lease.charge().total();
  const absl::Status status = rdma::Destroy(parts->srq);
  if (status.ok()) return {.returned_bytes = bytes};
  undestroyed.Add(*parts->opened, "srq", status,
                  [parts] { return rdma::Destroy(parts->srq); });
  return {.not_yet_destroyed = true};
}

SharedReceiveUse::SharedReceiveUse(
    std::shared_ptr<BrokeredSharedReceiveQueue> queue)
    : queue_(std::move(queue)) {
  if (queue_ != nullptr) ++queue_->users_;
}

SharedReceiveUse& SharedReceiveUse::operator=(
    SharedReceiveUse&& other) noexcept {
  std::swap(queue_, other.queue_);
  return *this;
}

SharedReceiveUse::~SharedReceiveUse() {
  if (queue_ != nullptr) --queue_->users_;
}

}  // namespace purser::sidecar
