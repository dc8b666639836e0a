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
                                     Counters& counters)
    : facts_(std::move(facts)),
      parts_(std::move(parts)),
      work_queue_(facts_.device->verbs(), parts_.qp.get(), parts_.cq.get(),
                  parts_.events,
                  {.send_slots = std::max(facts_.memory.send_ring.slots,
                                          facts_.cap.max_send_wr),
                   .recv_slots = std::max(facts_.memory.receive_ring.slots,
                                          facts_.cap.max_recv_wr),
                   .cqe = static_cast<uint32_t>(parts_.cq->cqe),
                   .send_ops = facts_.send_ops},
                  counters) {}

BrokeredQueuePair::~BrokeredQueuePair() {
  Destroy(absl::CancelledError("the sidecar is stopping"));
}

absl::Status BrokeredQueuePair::Modify(ibv_qp_attr attr, int attr_mask) {
  std::lock_guard lock(mutex_);
  if (!ended_.ok()) return ended_;
  PURSER_ASSIGN_OR_RETURN(const ibv_qp_state from, QueryState());
  SetState(from);
  PURSER_RETURN_IF_ERROR(
      rdma::CheckModify(facts_.type, from, attr.qp_state, attr_mask));
  parts_.events->ForgetFailure();
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
  work_queue_.StateChanged(attr.qp_state);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Completion>> BrokeredQueuePair::Poll(
    uint32_t max_entries) {
  return AfterPoll(work_queue_.Poll(max_entries));
}

absl::StatusOr<std::vector<Completion>> BrokeredQueuePair::ArmAndPoll(
    uint32_t max_entries) {
  return AfterPoll(work_queue_.ArmAndPoll(max_entries));
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
  return parts_.events->failed() ? IBV_QPS_ERR : state_.load();
}

ibv_qp_state BrokeredQueuePair::CurrentState() {
  if (parts_.events->failed() || work_queue_.outstanding_sends() > 0)
    RefreshState();
  return KnownState();
}

void BrokeredQueuePair::RefreshState() {
  std::lock_guard lock(mutex_);
  if (parts_.qp == nullptr) return;
  // Before the query, so that a failure after it is not forgotten.
  const bool failed = parts_.events->failed();
  parts_.events->ForgetFailure();
  if (absl::StatusOr<ibv_qp_state> now = QueryState(); now.ok())
    SetState(*now);
  else if (failed)
    parts_.events->FailureEvent();
}

absl::StatusOr<ibv_qp_state> BrokeredQueuePair::QueryState() {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  PURSER_RETURN_IF_ERROR(facts_.device->verbs().QueryQp(parts_.qp.get(), &attr,
                                                        IBV_QP_STATE, &init));
  return attr.qp_state;
}

void BrokeredQueuePair::SetState(ibv_qp_state state) {
  if (state_.exchange(state) != state) work_queue_.StateChanged(state);
}

uint64_t BrokeredQueuePair::Destroy(const absl::Status& why) {
  work_queue_.Close(why);
  std::lock_guard lock(mutex_);
  if (!ended_.ok()) return 0;
  ended_ = why;
  parts_.qp.reset();
  parts_.cq.reset();
  const uint64_t returned = parts_.lease.charge().total();
  parts_.lease = Lease();
  parts_.live = LiveCount();
  parts_.opened.reset();
  return returned;
}

}  // namespace purser::sidecar
