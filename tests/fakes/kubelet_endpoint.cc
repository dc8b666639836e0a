// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/kubelet_endpoint.h"

#include <utility>

namespace purser::fakes {
namespace {

constexpr int kMaxMessageBytes = 4 << 20;
constexpr std::chrono::seconds kAllocateDeadline{10};

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

KubeletEndpoint::KubeletEndpoint(
    std::string path, std::unique_ptr<v1beta1::DevicePlugin::Stub> stub)
    : path_(std::move(path)), stub_(std::move(stub)) {}

KubeletEndpoint::~KubeletEndpoint() { Stop(); }

absl::StatusOr<std::unique_ptr<KubeletEndpoint>> KubeletEndpoint::Dial(
    const std::string& socket_path, std::chrono::milliseconds deadline) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel = grpc::CreateCustomChannel(
      "unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments);
  std::unique_ptr<KubeletEndpoint> endpoint(new KubeletEndpoint(
      socket_path, v1beta1::DevicePlugin::NewStub(channel)));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  const grpc::Status status = endpoint->stub_->GetDevicePluginOptions(
      &context, v1beta1::Empty(), &endpoint->options_);
  if (!status.ok()) return FromGrpc(status);
  return endpoint;
}

void KubeletEndpoint::Watch(OnList on_list, OnEnd on_end) {
  reader_ = std::thread(
      [this, on_list = std::move(on_list), on_end = std::move(on_end)] {
        const auto reader = stub_->ListAndWatch(&context_, v1beta1::Empty());
        v1beta1::ListAndWatchResponse list;
        while (reader->Read(&list)) on_list(list);
        on_end(reader->Finish());
      });
}

void KubeletEndpoint::Stop() {
  context_.TryCancel();
  if (reader_.joinable()) reader_.join();
}

std::vector<std::string> KubeletEndpoint::Prefer(
    const std::vector<std::string>& available, int size) {
  if (!options_.get_preferred_allocation_available()) return {};
  v1beta1::PreferredAllocationRequest request;
  auto* container = request.add_container_requests();
  for (const std::string& id : available)
    container->add_available_deviceids(id);
  container->set_allocation_size(size);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAllocateDeadline);
  v1beta1::PreferredAllocationResponse response;
  if (!stub_->GetPreferredAllocation(&context, request, &response).ok() ||
      response.container_responses().empty())
    return {};
  const auto& preferred = response.container_responses(0).deviceids();
  return {preferred.begin(), preferred.end()};
}

absl::StatusOr<v1beta1::AllocateResponse> KubeletEndpoint::Allocate(
    const v1beta1::AllocateRequest& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAllocateDeadline);
  v1beta1::AllocateResponse response;
  const grpc::Status status = stub_->Allocate(&context, request, &response);
  if (!status.ok()) return FromGrpc(status);
  return response;
}

}  // namespace purser::fakes
