// SPDX-License-Identifier: Apache-2.0
#include "sidecar/grpc_status.h"

#include <string>

#include "google/rpc/status.pb.h"
#include "sidecar/messages.h"

namespace purser::sidecar {
namespace {

constexpr size_t kMaxMessage = 1500;

std::string Cut(std::string message) {
  if (message.size() <= kMaxMessage) return message;
  size_t end = kMaxMessage;
  // Not in the middle of a UTF-8 sequence.
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xc0) == 0x80)
    --end;
  message.resize(end);
  return message + " …";
}

grpc::StatusCode CodeOf(const Refusal& refusal) {
  switch (refusal.reason) {
    case RefusalReason::kBudget:
    case RefusalReason::kQueuePairCount:
    case RefusalReason::kPressure:
    case RefusalReason::kClassShare:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case RefusalReason::kDeviceLimit:
      return refusal.limit == "max_qp" ? grpc::StatusCode::RESOURCE_EXHAUSTED
                                       : grpc::StatusCode::OUT_OF_RANGE;
    case RefusalReason::kInvalid:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case RefusalReason::kCreateFailed:
      if (refusal.limit == "ENOMEM" || refusal.limit == "ENOSPC")
        return grpc::StatusCode::RESOURCE_EXHAUSTED;
      if (refusal.limit == "EINVAL" || refusal.limit == "EOPNOTSUPP")
        return grpc::StatusCode::INVALID_ARGUMENT;
      return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::INTERNAL;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  // absl's codes are gRPC's (absl/status/status.h).
  return {static_cast<grpc::StatusCode>(status.code()),
          Cut(std::string(status.message()))};
}

grpc::Status ToGrpcStatus(const Refusal& refusal) {
  google::rpc::Status details;
  details.set_code(CodeOf(refusal));
  details.set_message(Cut(refusal.message));
  details.add_details()->PackFrom(RefusalMessage(refusal));
  return {CodeOf(refusal), details.message(), details.SerializeAsString()};
}

}  // namespace purser::sidecar
