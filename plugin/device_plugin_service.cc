// SPDX-License-Identifier: Apache-2.0
#include "plugin/device_plugin_service.h"

#include <utility>
#include <vector>

#include "base/logging.h"
#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

// The one place where our status becomes gRPC's; the codes are the same.
grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

}  // namespace

DevicePluginService::DevicePluginService(const Resource& resource,
                                         std::shared_ptr<ListStreams> streams)
    : resource_(resource), streams_(std::move(streams)) {}

void DevicePluginService::Update(std::shared_ptr<const Snapshot> snapshot) {
  Advertisement advertisement = resource_.Advertise(*snapshot);
  {
    // First what Allocate answers from, then what the kubelet may ask for.
    std::lock_guard lock(mutex_);
    snapshot_ = std::move(snapshot);
  }
  const std::optional<Advertisement> before = streams_->advertisement();
  if (before == advertisement) return;
  base::LogInfo("advertising", {{"resource", resource_.name()},
                                {"capacity", advertisement.capacity()},
                                {"allocatable", advertisement.allocatable()}});
  streams_->Update(std::move(advertisement));
}

grpc::ServerUnaryReactor* DevicePluginService::GetDevicePluginOptions(
    Context* context, const v1beta1::Empty* /*request*/,
    v1beta1::DevicePluginOptions* /*response*/) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* DevicePluginService::ListAndWatch(
    Context* /*context*/, const grpc::ByteBuffer* /*request*/) {
  return streams_->Open();
}

grpc::ServerUnaryReactor* DevicePluginService::Allocate(
    Context* context, const v1beta1::AllocateRequest* request,
    v1beta1::AllocateResponse* response) {
  const absl::Status status = AllocateAll(*request, response);
  if (status.ok()) {
    ++allocations_;
  } else {
    ++refused_allocations_;
    base::LogWarn("Allocate refused",
                  {{"resource", resource_.name()}, {"error", status}});
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

absl::Status DevicePluginService::AllocateAll(
    const v1beta1::AllocateRequest& request,
    v1beta1::AllocateResponse* response) {
  std::shared_ptr<const Snapshot> snapshot;
  {
    std::lock_guard lock(mutex_);
    snapshot = snapshot_;
  }
  if (snapshot == nullptr) {
    return absl::FailedPreconditionError(
        resource_.name() + ": the node's devices are not known yet");
  }
  if (request.container_requests().empty())
    return absl::InvalidArgumentError(resource_.name() + ": no container");
  const Advertisement advertisement = resource_.Advertise(*snapshot);
  for (const auto& container : request.container_requests()) {
    const std::vector<std::string> ids(container.devices_ids().begin(),
                                       container.devices_ids().end());
    if (absl::Status s = CheckUnits(advertisement, ids); !s.ok()) {
      return absl::Status(s.code(), fmt::format("{}: {}", resource_.name(),
                                                std::string(s.message())));
    }
    PURSER_ASSIGN_OR_RETURN(*response->add_container_responses(),
                            resource_.Allocate(ids, *snapshot));
    base::LogInfo("allocated",
                  {{"resource", resource_.name()}, {"units", ids.size()}});
  }
  return absl::OkStatus();
}

}  // namespace purser::plugin
