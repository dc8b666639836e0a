// SPDX-License-Identifier: Apache-2.0
#include "plugin/kubelet_client.h"

#include <utility>

#include "deviceplugin/v1beta1/api.grpc.pb.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {

KubeletClient::KubeletClient(std::string kubelet_socket)
    : kubelet_socket_(std::move(kubelet_socket)) {}

absl::Status KubeletClient::Register(const std::string& resource_name,
                                     const std::string& endpoint,
                                     std::chrono::milliseconds deadline) {
  // A channel a call, sharing no connection: gRPC would otherwise remember the
  // back-off of the kubelet before its restart.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = v1beta1::Registration::NewStub(
      grpc::CreateCustomChannel("unix:" + kubelet_socket_,
                                grpc::InsecureChannelCredentials(), arguments));
  v1beta1::RegisterRequest request;
  request.set_version(kDevicePluginVersion);
  request.set_endpoint(endpoint);
  request.set_resource_name(resource_name);
  request.mutable_options();
  v1beta1::Empty response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  {
    std::lock_guard lock(mutex_);
    if (cancelled_) return absl::CancelledError("stopping");
    under_way_ = &context;
  }
  const grpc::Status status = stub->Register(&context, request, &response);
  {
    std::lock_guard lock(mutex_);
    under_way_ = nullptr;
  }
  if (status.ok()) return absl::OkStatus();
  return absl::Status(
      static_cast<absl::StatusCode>(status.error_code()),
      fmt::format("register {} with the kubelet at {}: {}", resource_name,
                  kubelet_socket_, status.error_message()));
}

void KubeletClient::Cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (under_way_ != nullptr) under_way_->TryCancel();
}

}  // namespace purser::plugin
