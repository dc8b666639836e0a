// SPDX-License-Identifier: Apache-2.0
#include "sidecar/work_queue.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "base/status_macros.h"
#include "rdma/queue_pair_states.h"
#include "sidecar/brokered_shared_receive_queue.h"
#include "sidecar/send_operations.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

const char* OperationName(bool receive) { return receive ? "receive" : "send"; }

}  // namespace

WorkQueue::WorkQueue(rdma::Verbs& verbs, ibv_qp* qp, Queues queues,
                     const QueuePairShape& shape, uint32_t cqe,
                     Counters& counters, TrafficShares shares)
    : verbs_(verbs),
      qp_(qp),
      queues_(std::move(queues)),
      shape_(shape),
      counters_(counters),
      shares_(std::move(shares)),
      cqe_(cqe) {
  queues_.completions->Join(qp->qp_num, *this);
}

template <typename Count>
void WorkQueue::CountTraffic(Count count) {
  count(traffic_);
  for (const auto& share : shares_)
    if (share != nullptr) count(*share);
}

PostResult WorkQueue::PostSend(std::span<ibv_send_wr> requests) {
  return PostRequests(requests, false,
                      [this](ibv_send_wr* first, ibv_send_wr** bad) {
                        return verbs_.PostSend(qp_, first, bad);
                      });
}

PostResult WorkQueue::PostReceive(std::span<ibv_recv_wr> requests) {
  return PostRequests(requests, true,
                      [this](ibv_recv_wr* first, ibv_recv_wr** bad) {
                        return verbs_.PostRecv(qp_, first, bad);
                      });
}

template <typename Request, typename Post>
PostResult WorkQueue::PostRequests(std::span<Request> requests, bool receive,
                                   Post post) {
  if (requests.empty()) return {};
  std::lock_guard lock(mutex_);
  if (!closed_.ok()) {
    PostResult refused =
        Refuse(receive, 0, ECANCELED, std::string(closed_.message()));
    refused.ended = closed_;
    return refused;
  }
  if (Failure failure = StateRefusal(receive); failure.error_number != 0)
    return Refuse(receive, 0, failure.error_number, std::move(failure.message));

  const uint64_t outstanding = own_outstanding();
  const size_t room = cqe_ > outstanding ? cqe_ - outstanding : 0;
  const size_t declared = CountDeclared(requests);
  const size_t count = std::min(declared, room);
  const PostResult result =
      PostChain(requests.first(count), receive, pending_, post);
  if (result.posted > 0) {
    counters_.posts.Add(OperationName(receive), result.posted);
    CountTraffic([&](Traffic& traffic) { traffic.posts += result.posted; });
  }
  if (result.error_number != 0)
    return Refuse(receive, result.posted, result.error_number,
                  Explain(result.error_number, receive));
  if (count == requests.size()) return result;
  if (count == declared)
    return Refuse(
        receive, result.posted, EOPNOTSUPP,
        fmt::format("the operation is none of those that the queue pair was "
                    "created for: {}; name it in send_operations, or none",
                    SendOpNames(shape_.send_ops)));
  return Refuse(
      receive, result.posted, ENOMEM,
      fmt::format(
          "completions are not polled: the completion queue takes {} and {} "
          "requests are posted whose completions were not fetched; poll, then "
          "post again",
          cqe_, own_outstanding()));
}

PostResult WorkQueue::RefuseSend(uint32_t posted, int error_number,
                                 std::string message) {
  return Refuse(false, posted, error_number, std::move(message));
}

PostResult WorkQueue::RefuseReceive(uint32_t posted, int error_number,
                                    std::string message) {
  return Refuse(true, posted, error_number, std::move(message));
}

PostResult WorkQueue::Refuse(bool receive, uint32_t posted, int error_number,
                             std::string message) {
  counters_.post_failures.Add(OperationName(receive),
                              rdma::ErrnoName(error_number));
  CountTraffic([](Traffic& traffic) { ++traffic.post_failures; });
  return {posted, error_number, std::move(message), absl::OkStatus()};
}

size_t WorkQueue::CountDeclared(std::span<const ibv_send_wr> requests) const {
  return std::find_if(requests.begin(), requests.end(),
                      [this](const ibv_send_wr& wr) {
                        return !MayPost(shape_.send_ops, wr.opcode);
                      }) -
         requests.begin();
}

WorkQueue::Failure WorkQueue::StateRefusal(bool receive) const {
  if (receive && queues_.receives != nullptr)
    return {EINVAL,
            "the queue pair takes its receives from a shared receive queue: "
            "post to that"};
  if (receive && state_ == IBV_QPS_RESET)
    return {EINVAL,
            "receives are taken from INIT on; the queue pair is in RESET"};
  if (!receive && (state_ == IBV_QPS_RESET || state_ == IBV_QPS_INIT ||
                   state_ == IBV_QPS_RTR))
    return {EINVAL,
            fmt::format("sends are taken from RTS on; the queue pair is in {}",
                        rdma::StateName(state_))};
  return {};
}

std::string WorkQueue::Explain(int error_number, bool receive) const {
  const char* operation = OperationName(receive);
  if (error_number == ENOMEM)
    return fmt::format(
        "{0} queue full: it takes {1} requests; {2} are posted whose "
        "completions were not fetched. Poll, then post again, or create the "
        "queue pair with a larger max_{3}_wr",
        operation, receive ? shape_.recv_slots() : shape_.send_slots(),
        receive ? pending_.receives() + ready_receives_
                : pending_.sends() + ready_sends_,
        receive ? "recv" : "send");
  if (error_number == EINVAL)
    return fmt::format(
        "the device refused the {} request: more scatter/gather entries than "
        "the queue pair takes, or an operation that it does not have",
        operation);
  return fmt::format("ibv_post_{}: {}", receive ? "recv" : "send",
                     rdma::ErrnoName(error_number));
}

absl::StatusOr<std::vector<Completion>> WorkQueue::Poll(uint32_t max_entries) {
  if (backlog() < max_entries) PURSER_RETURN_IF_ERROR(Collect());
  return Fetch(max_entries);
}

absl::Status WorkQueue::Arm() {
  {
    std::lock_guard lock(mutex_);
    if (!closed_.ok()) return closed_;
  }
  return queues_.completions->ArmAndDrain().status();
}

absl::Status WorkQueue::Collect() {
  {
    std::lock_guard lock(mutex_);
    if (!closed_.ok()) return closed_;
  }
  return queues_.completions->Drain().status();
}

absl::StatusOr<std::vector<Completion>> WorkQueue::Fetch(uint32_t max_entries) {
  std::lock_guard lock(mutex_);
  if (!closed_.ok()) return closed_;
  const size_t count = std::min<size_t>(max_entries, ready_.size() - fetched_);
  const auto first = ready_.begin() + static_cast<ptrdiff_t>(fetched_);
  std::vector<Completion> completions(first,
                                      first + static_cast<ptrdiff_t>(count));
  fetched_ += static_cast<uint32_t>(count);
  if (fetched_ * 2 >= ready_.size()) {
    ready_.erase(ready_.begin(),
                 ready_.begin() + static_cast<ptrdiff_t>(fetched_));
    fetched_ = 0;
  }
  CountFetched(completions);
  std::map<ibv_wc_status, uint64_t> by_status;
  for (const Completion& completion : completions)
    ++by_status[completion.wc.status];
  for (const auto& [status, number] : by_status) {
    counters_.completions.Add(CompletionStatusName(status), number);
    CountTraffic([&](Traffic& traffic) {
      traffic.completions += number;
      if (status != IBV_WC_SUCCESS) traffic.completion_errors += number;
    });
  }
  return completions;
}

bool WorkQueue::Deliver(const ibv_wc& wc) {
  std::lock_guard lock(mutex_);
  const std::optional<Completion> completion = Complete(wc);
  if (!completion.has_value()) return false;  // posted before a RESET
  ready_.push_back(*completion);
  if (!completion->shared_receive)
    ++(completion->receive ? ready_receives_ : ready_sends_);
  if (!closed_.ok()) DropCompletions();
  return queues_.events->has_subscribers();
}

std::optional<Completion> WorkQueue::Complete(const ibv_wc& wc) {
  const bool shared =
      queues_.receives != nullptr && PendingRequests::IsReceive(wc.wr_id);
  const std::optional<PendingRequests::Request> request =
      shared ? queues_.receives->Complete(wc.wr_id) : pending_.Take(wc.wr_id);
  if (!request.has_value()) return std::nullopt;
  Completion completion{wc, request->receive, shared};
  completion.wc.wr_id = request->wr_id;
  return completion;
}

void WorkQueue::CountFetched(std::span<const Completion> completions) {
  uint32_t shared = 0;
  for (const Completion& completion : completions) {
    if (completion.shared_receive)
      ++shared;
    else
      --(completion.receive ? ready_receives_ : ready_sends_);
  }
  if (shared > 0) queues_.receives->Fetched(shared);
}

void WorkQueue::DropCompletions() {
  CountFetched(std::span(ready_).subspan(fetched_));
  std::vector<Completion>().swap(ready_);
  fetched_ = 0;
}

Wakeups WorkQueue::StateChanged(ibv_qp_state state) {
  {
    std::lock_guard lock(mutex_);
    state_ = state;
    if (state != IBV_QPS_RESET || !closed_.ok()) return {};
  }
  absl::StatusOr<Wakeups> wakeups = queues_.completions->Drain();
  std::lock_guard lock(mutex_);
  DropCompletions();
  pending_.Clear();
  return wakeups.ok() ? *std::move(wakeups) : Wakeups();
}

void WorkQueue::Close(absl::Status why) {
  {
    std::lock_guard lock(mutex_);
    if (closed_.ok()) closed_ = std::move(why);
    DropCompletions();
  }
  queues_.events->Close();
}

void WorkQueue::GiveBack() {
  std::lock_guard lock(mutex_);
  if (ready_.empty()) ready_.shrink_to_fit();
}

uint64_t WorkQueue::outstanding_sends() const {
  std::lock_guard lock(mutex_);
  return pending_.sends() + ready_sends_;
}

uint64_t WorkQueue::outstanding_receives() const {
  std::lock_guard lock(mutex_);
  return pending_.receives() + ready_receives_;
}

uint64_t WorkQueue::backlog() const {
  std::lock_guard lock(mutex_);
  return ready_.size() - fetched_;
}

}  // namespace purser::sidecar
