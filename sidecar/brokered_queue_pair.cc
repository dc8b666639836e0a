// SPDX-License-Identifier: Apache-2.0
#include "sidecar/brokered_queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/status_macros.h"
#include "rdma/queue_pair_states.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

// What ibv_modify_qp says in errnos is about the request or the network, never
// about the sidecar being unavailable.
absl::Status ExplainModifyFailure(const absl::Status& status) {
  const std::string text(status.message());
  switch (rdma::ErrnoOf(status)) {
    case EINVAL:
      return absl::InvalidArgumentError(
          fmt::format("{}: the device refused a value that the state machine "
                      "allows (path_mtu above the port's, a GID index without "
                      "a GID, an access flag that the type does not have)",
                      text));
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ETIMEDOUT:
      return absl::FailedPreconditionError(fmt::format(
          "{}: no route or no neighbour for ah_attr.dgid; check that the peer "
          "is up and that both GIDs are of one network",
          text));
    default:
      return status;
  }
}

}  // namespace

BrokeredQueuePair::BrokeredQueuePair(Facts facts, Parts parts,
                                     Undestroyed& undestroyed,
                                     Counters& counters, TrafficShares shares)
    : facts_(std::move(facts)),
      undestroyed_(undestroyed),
      parts_(std::move(parts)),
      work_queue_(facts_.device->verbs(), parts_.qp.get(),
                  {.completions = parts_.room.queue(),
                   .receives = parts_.receives.queue(),
                   .events = parts_.events},
                  *facts_.shape, parts_.room.entries(), counters,
                  std::move(shares)) {}

BrokeredQueuePair::~BrokeredQueuePair() {
  Destroy(absl::CancelledError("the sidecar is stopping"));
}

absl::Status BrokeredQueuePair::Modify(ibv_qp_attr attr, int attr_mask) {
  Wakeups wakeups;  // without the lock
  std::lock_guard lock(mutex_);
  if (!ended_.ok()) return ended_;
  PURSER_ASSIGN_OR_RETURN(const ibv_qp_state from, QueryState());
  SetState(from);
  PURSER_RETURN_IF_ERROR(
      rdma::CheckModify(facts_.shape->type, from, attr.qp_state, attr_mask));
  events().ForgetFailure();
  if (absl::Status status =
          facts_.device->verbs().ModifyQp(parts_.qp.get(), &attr, attr_mask);
      !status.ok()) {
    if (absl::StatusOr<ibv_qp_state> now = QueryState(); now.ok())
      SetState(*now);
    return ExplainModifyFailure(status);
  }
  if ((attr_mask & IBV_QP_DEST_QPN) != 0) dest_qp_num_ = attr.dest_qp_num;
  if (attr.qp_state == IBV_QPS_RESET) dest_qp_num_ = 0;
  state_ = attr.qp_state;
  wakeups = work_queue_.StateChanged(attr.qp_state);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Completion>> BrokeredQueuePair::Poll(
    uint32_t max_entries) {
  return AfterPoll(work_queue_.Poll(max_entries));
}

absl::StatusOr<std::vector<Completion>> BrokeredQueuePair::Fetch(
    uint32_t max_entries) {
  return AfterPoll(work_queue_.Fetch(max_entries));
}

absl::StatusOr<std::vector<Completion>> BrokeredQueuePair::AfterPoll(
    absl::StatusOr<std::vector<Completion>> completions) {
  if (completions.ok() && state_ != IBV_QPS_ERR &&
      std::any_of(completions->begin(), completions->end(),
                  [](const Completion& completion) {
                    return completion.wc.status != IBV_WC_SUCCESS;
                  }))
    RefreshState();
  return completions;
}

ibv_qp_state BrokeredQueuePair::KnownState() const {
  return work_queue_.events()->failed() ? IBV_QPS_ERR : state_.load();
}

ibv_qp_state BrokeredQueuePair::CurrentState() {
  if (events().failed() || work_queue_.outstanding_sends() > 0) RefreshState();
  return KnownState();
}

void BrokeredQueuePair::RefreshState() {
  std::lock_guard lock(mutex_);
  if (parts_.qp == nullptr) return;
  // Before the query, so that a failure after it is not forgotten.
  const bool failed = events().failed();
  events().ForgetFailure();
  if (absl::StatusOr<ibv_qp_state> now = QueryState(); now.ok())
    SetState(*now);
  else if (failed)
    events().FailureEvent();
}

absl::StatusOr<ibv_qp_state> BrokeredQueuePair::QueryState() {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  PURSER_RETURN_IF_ERROR(facts_.device->verbs().QueryQp(parts_.qp.get(), &attr,
                                                        IBV_QP_STATE, &init));
  return attr.qp_state;
}

// What a query shows that no modify has set is never RESET, with which alone
// completions of others would be taken along.
void BrokeredQueuePair::SetState(ibv_qp_state state) {
  if (state_.exchange(state) != state) (void)work_queue_.StateChanged(state);
}

BrokeredQueuePair::Ended BrokeredQueuePair::Destroy(const absl::Status& why) {
  work_queue_.Close(why);
  Wakeups wakeups;  // without the lock
  std::lock_guard lock(mutex_);
  if (!ended_.ok()) return {};
  ended_ = why;
  // In ERR, receives that it took from a shared queue complete.
  if (parts_.receives.queue() != nullptr) {
    ibv_qp_attr error{.qp_state = IBV_QPS_ERR};
    (void)facts_.device->verbs().ModifyQp(parts_.qp.get(), &error,
                                          IBV_QP_STATE);
  }
  const absl::Status status =
      parts_.room.queue()->DestroyQueuePair(parts_.qp, wakeups);
  if (status.ok()) return {.returned_bytes = Release(parts_)};
  auto kept = std::make_shared<Parts>(std::move(parts_));
  const OpenedDevice& opened = *kept->opened;
  undestroyed_.Add(opened, "qp", status, [parts = std::move(kept)] {
    Wakeups woken;
    absl::Status again =
        parts->room.queue()->DestroyQueuePair(parts->qp, woken);
    if (again.ok()) Release(*parts);
    return again;
  });
  return {.not_yet_destroyed = true};
}

// In reverse order; the bytes that returned.
uint64_t BrokeredQueuePair::Release(Parts& parts) {
  const uint64_t own = parts.lease.charge().total();
  const uint64_t returned = own + parts.room.Release();
  parts.receives = SharedReceiveUse();
  parts.lease = Lease();
  parts.live = LiveCount();
  parts.opened.reset();
  return returned;
}

}  // namespace purser::sidecar
