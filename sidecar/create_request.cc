// SPDX-License-Identifier: Apache-2.0
#include "sidecar/create_request.h"

#include "base/status_macros.h"
#include "sidecar/send_operations.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr size_t kMaxNameLength = 63;

absl::StatusOr<ibv_qp_type> TypeOf(v1::QueuePairType type) {
  switch (type) {
    case v1::QUEUE_PAIR_TYPE_UNSPECIFIED:
    case v1::QUEUE_PAIR_TYPE_RC:
      return IBV_QPT_RC;
    case v1::QUEUE_PAIR_TYPE_UC:
      return IBV_QPT_UC;
    case v1::QUEUE_PAIR_TYPE_UD:
      return IBV_QPT_UD;
    default:
      return absl::InvalidArgumentError(
          fmt::format("type {} is none of QueuePairType", int{type}));
  }
}

ibv_qp_cap CapOf(const v1::Capabilities& cap) {
  return {.max_send_wr = cap.max_send_wr(),
          .max_recv_wr = cap.max_recv_wr(),
          .max_send_sge = cap.max_send_sge(),
          .max_recv_sge = cap.max_recv_sge(),
          .max_inline_data = cap.max_inline_data()};
}

// The declared set; 0 for none in the list.
absl::StatusOr<uint64_t> SendOpsOf(const v1::CreateQueuePairRequest& request) {
  uint64_t declared = 0;
  for (const int opcode : request.send_operations()) {
    const uint64_t op = SendOpOf(static_cast<ibv_wr_opcode>(opcode));
    if (op == 0)
      return absl::InvalidArgumentError(
          fmt::format("send_operations: {} is none of SendOpcode", opcode));
    declared |= op;
  }
  return declared;
}

absl::Status SetCompletions(const v1::CreateQueuePairRequest& request,
                            QueuePairs::CreateRequest& create) {
  const v1::CompletionQueueChoice& choice = request.completion_queue();
  switch (choice.choice_case()) {
    case v1::CompletionQueueChoice::kOwn:
      if (choice.own()) create.completions = CompletionOffer::Kind::kOwn;
      return absl::OkStatus();
    case v1::CompletionQueueChoice::kShared:
      if (request.detached())
        return absl::InvalidArgumentError(
            "a detached queue pair has a completion queue of its own: leave "
            "completion_queue.shared or detached out");
      if (choice.shared().empty() || choice.shared().size() > kMaxNameLength)
        return absl::InvalidArgumentError(fmt::format(
            "completion_queue.shared has {} bytes; it must have 1 to {}",
            choice.shared().size(), kMaxNameLength));
      create.completions = CompletionOffer::Kind::kShared;
      create.completion_queue = choice.shared();
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<QueuePairs::CreateRequest> CreateRequestOf(
    const v1::CreateQueuePairRequest& request, Device& device) {
  QueuePairs::CreateRequest create{
      .client_id = request.client_id(),
      .device = &device,
      .cap = CapOf(request.cap()),
      .class_name = request.class_(),
      .detached = request.detached(),
      .shared_receive_queue_id = request.shared_receive_queue_id()};
  PURSER_ASSIGN_OR_RETURN(create.type, TypeOf(request.type()));
  PURSER_ASSIGN_OR_RETURN(create.send_ops, SendOpsOf(request));
  if (request.has_least()) create.least = CapOf(request.least());
  PURSER_RETURN_IF_ERROR(SetCompletions(request, create));
  return create;
}

}  // namespace purser::sidecar
