// SPDX-License-Identifier: Apache-2.0
#include "client/grpc_status.h"

#include "absl/strings/cord.h"
#include "client/refusal.h"
#include "google/rpc/status.pb.h"

namespace purser::client {
namespace {

constexpr char kRefusalType[] = "type.googleapis.com/purser.v1.Refusal";

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status converted(static_cast<absl::StatusCode>(status.error_code()),
                         status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return converted;
  for (const google::protobuf::Any& detail : details.details()) {
    v1::Refusal refusal;
    if (detail.Is<v1::Refusal>() && detail.UnpackTo(&refusal))
      converted.SetPayload(kRefusalType,
                           absl::Cord(refusal.SerializeAsString()));
  }
  return converted;
}

std::optional<v1::Refusal> RefusalOf(const absl::Status& status) {
  auto payload = status.GetPayload(kRefusalType);
  v1::Refusal refusal;
  if (!payload || !refusal.ParseFromString(std::string(*payload)))
    return std::nullopt;
  return refusal;
}

}  // namespace purser::client
