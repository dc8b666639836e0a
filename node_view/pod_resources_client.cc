// SPDX-License-Identifier: Apache-2.0
#include "node_view/pod_resources_client.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cerrno>

#include "spdlog/fmt/fmt.h"

namespace purser::node_view {
namespace {

// As the kubelet's own client has it: 100,000 ids do not fit gRPC's 4 MiB.
constexpr int kMaxMessageBytes = 16 << 20;
constexpr int kMaxBackoffMilliseconds = 1000;

}  // namespace

PodResourcesClient::PodResourcesClient(const std::string& socket)
    : socket_(socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxBackoffMilliseconds);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS,
                   kMaxBackoffMilliseconds);
  stub_ = ::v1::PodResourcesLister::NewStub(grpc::CreateCustomChannel(
      "unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
}

absl::StatusOr<::v1::ListPodResourcesResponse> PodResourcesClient::List(
    std::chrono::milliseconds deadline) {
  // gRPC says the same of a missing socket and of one that refuses.
  if (access(socket_.c_str(), F_OK) != 0)
    return absl::ErrnoToStatus(errno, socket_);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  ::v1::ListPodResourcesResponse response;
  const grpc::Status status =
      stub_->List(&context, ::v1::ListPodResourcesRequest(), &response);
  if (status.ok()) return response;
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      fmt::format("ask the kubelet at {} who holds what: {}",
                                  socket_, status.error_message()));
}

}  // namespace purser::node_view
