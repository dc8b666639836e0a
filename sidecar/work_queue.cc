// SPDX-License-Identifier: Apache-2.0
#include "sidecar/work_queue.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <type_traits>
#include <utility>

#include "rdma/queue_pair_states.h"
#include "sidecar/send_operations.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr std::array kStatusNames = {"SUCCESS",
                                     "LOC_LEN_ERR",
                                     "LOC_QP_OP_ERR",
                                     "LOC_EEC_OP_ERR",
                                     "LOC_PROT_ERR",
                                     "WR_FLUSH_ERR",
                                     "MW_BIND_ERR",
                                     "BAD_RESP_ERR",
                                     "LOC_ACCESS_ERR",
                                     "REM_INV_REQ_ERR",
                                     "REM_ACCESS_ERR",
                                     "REM_OP_ERR",
                                     "RETRY_EXC_ERR",
                                     "RNR_RETRY_EXC_ERR",
                                     "LOC_RDD_VIOL_ERR",
                                     "REM_INV_RD_REQ_ERR",
                                     "REM_ABORT_ERR",
                                     "INV_EECN_ERR",
                                     "INV_EEC_STATE_ERR",
                                     "FATAL_ERR",
                                     "RESP_TIMEOUT_ERR",
                                     "GENERAL_ERR",
                                     "TM_ERR",
                                     "TM_RNDV_INCOMPLETE"};
static_assert(kStatusNames.size() == IBV_WC_TM_RNDV_INCOMPLETE + 1);

constexpr size_t kPollBatch = 32;

const char* OperationName(bool receive) { return receive ? "receive" : "send"; }

// Up to `max_entries` completions of the device, handed to `take` one by one.
// What ibv_poll_cq returned if it failed, else how many there were.
template <typename Take>
int64_t PollDevice(rdma::Verbs& verbs, ibv_cq* cq, uint64_t max_entries,
                   Take take) {
  std::array<ibv_wc, kPollBatch> batch;
  uint64_t polled = 0;
  while (polled < max_entries) {
    const int wanted =
        static_cast<int>(std::min<uint64_t>(kPollBatch, max_entries - polled));
    const int count = verbs.PollCq(cq, wanted, batch.data());
    if (count < 0 && polled == 0) return count;
    for (int i = 0; i < count; ++i) take(batch[i]);
    if (count < wanted) return polled + std::max(count, 0);
    polled += count;
  }
  return polled;
}

}  // namespace

const char* CompletionStatusName(ibv_wc_status status) {
  return static_cast<size_t>(status) < kStatusNames.size()
             ? kStatusNames[status]
             : "UNKNOWN";
}

WorkQueue::WorkQueue(rdma::Verbs& verbs, ibv_qp* qp, ibv_cq* cq,
                     std::shared_ptr<QueuePairEvents> events, Capacity capacity,
                     Counters& counters)
    : verbs_(verbs),
      qp_(qp),
      cq_(cq),
      events_(std::move(events)),
      capacity_(capacity),
      counters_(counters) {}

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

  const size_t room = capacity_.cqe - pending_.total();
  const size_t declared = CountDeclared(requests);
  const size_t count = std::min(declared, room);
  for (size_t i = 0; i < count; ++i) {
    requests[i].wr_id = pending_.Add({requests[i].wr_id, receive});
    requests[i].next = i + 1 < count ? &requests[i + 1] : nullptr;
    if constexpr (std::is_same_v<Request, ibv_send_wr>)
      requests[i].send_flags |= IBV_SEND_SIGNALED;
  }
  Request* bad = nullptr;
  const int error = count == 0 ? 0 : post(requests.data(), &bad);
  const uint32_t posted = error == 0       ? count
                          : bad == nullptr ? 0
                                           : bad - requests.data();
  for (size_t i = posted; i < count; ++i) pending_.Take(requests[i].wr_id);
  if (posted > 0) counters_.posts.Add(OperationName(receive), posted);
  if (error != 0)
    return Refuse(receive, posted, error, Explain(error, receive));
  if (count == requests.size()) return {.posted = posted};
  if (count == declared)
    return Refuse(
        receive, posted, EOPNOTSUPP,
        fmt::format("the operation is none of those that the queue pair was "
                    "created for: {}; name it in send_operations, or none",
                    SendOpNames(capacity_.send_ops)));
  return Refuse(
      receive, posted, ENOMEM,
      fmt::format(
          "completions are not polled: the completion queue takes {} and {} "
          "requests are posted whose completions were not fetched; poll, then "
          "post again",
          capacity_.cqe, pending_.total()));
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
  return {posted, error_number, std::move(message), absl::OkStatus()};
}

size_t WorkQueue::CountDeclared(std::span<const ibv_send_wr> requests) const {
  return std::find_if(requests.begin(), requests.end(),
                      [this](const ibv_send_wr& wr) {
                        return !MayPost(capacity_.send_ops, wr.opcode);
                      }) -
         requests.begin();
}

WorkQueue::Failure WorkQueue::StateRefusal(bool receive) const {
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
        operation, receive ? capacity_.recv_slots : capacity_.send_slots,
        receive ? pending_.receives() : pending_.sends(),
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
  std::lock_guard lock(mutex_);
  return PollLocked(max_entries);
}

absl::StatusOr<std::vector<Completion>> WorkQueue::ArmAndPoll(
    uint32_t max_entries) {
  std::lock_guard lock(mutex_);
  if (!closed_.ok()) return closed_;
  if (int error = verbs_.ReqNotifyCq(cq_, false); error != 0)
    return rdma::StatusOf(error, "ibv_req_notify_cq");
  return PollLocked(max_entries);
}

absl::StatusOr<std::vector<Completion>> WorkQueue::PollLocked(
    uint32_t max_entries) {
  if (!closed_.ok()) return closed_;
  std::vector<Completion> completions;
  std::array<uint64_t, kStatusNames.size() + 1> by_status{};
  const int64_t polled =
      PollDevice(verbs_, cq_, max_entries, [&](const ibv_wc& wc) {
        const auto request = pending_.Take(wc.wr_id);
        if (!request.has_value()) return;  // posted before a RESET
        completions.push_back({wc, request->receive});
        completions.back().wc.wr_id = request->wr_id;
        ++by_status[std::min<size_t>(wc.status, kStatusNames.size())];
      });
  if (polled < 0)
    return absl::InternalError(fmt::format("ibv_poll_cq: {}", polled));
  for (size_t status = 0; status < by_status.size(); ++status) {
    if (by_status[status] > 0)
      counters_.completions.Add(
          CompletionStatusName(static_cast<ibv_wc_status>(status)),
          by_status[status]);
  }
  return completions;
}

void WorkQueue::StateChanged(ibv_qp_state state) {
  std::lock_guard lock(mutex_);
  state_ = state;
  if (state != IBV_QPS_RESET || !closed_.ok()) return;
  PollDevice(verbs_, cq_, UINT64_MAX, [](const ibv_wc&) {});
  pending_.Clear();
}

void WorkQueue::Close(absl::Status why) {
  {
    std::lock_guard lock(mutex_);
    if (closed_.ok()) closed_ = std::move(why);
  }
  events_->Close();
}

uint64_t WorkQueue::outstanding_sends() const {
  std::lock_guard lock(mutex_);
  return pending_.sends();
}

uint64_t WorkQueue::outstanding_receives() const {
  std::lock_guard lock(mutex_);
  return pending_.receives();
}

}  // namespace purser::sidecar
