// SPDX-License-Identifier: Apache-2.0
#include "plugin/device_plugin_service.h"

#include <chrono>
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

// Seconds. The kubelet waits for an Allocate while it starts a pod.
const prometheus::Histogram::BucketBoundaries kBuckets = {
    0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1};

absl::Status NotKnownYet(const std::string& resource) {
  return absl::FailedPreconditionError(
      resource + ": the node's devices are not known yet");
}

}  // namespace

DevicePluginService::DevicePluginService(const Resource& resource,
                                         std::shared_ptr<ListStreams> streams)
    : resource_(resource),
      streams_(std::move(streams)),
      allocate_durations_(kBuckets) {}

std::shared_ptr<const Snapshot> DevicePluginService::snapshot() {
  std::lock_guard lock(mutex_);
  return snapshot_;
}

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
    v1beta1::DevicePluginOptions* response) {
  response->set_get_preferred_allocation_available(resource_.has_preference());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* DevicePluginService::ListAndWatch(
    Context* /*context*/, const grpc::ByteBuffer* /*request*/) {
  return streams_->Open();
}

grpc::ServerUnaryReactor* DevicePluginService::GetPreferredAllocation(
    Context* context, const v1beta1::PreferredAllocationRequest* request,
    v1beta1::PreferredAllocationResponse* response) {
  const absl::Status status = Prefer(*request, response);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

absl::Status DevicePluginService::Prefer(
    const v1beta1::PreferredAllocationRequest& request,
    v1beta1::PreferredAllocationResponse* response) {
  if (!resource_.has_preference()) {
    return absl::UnimplementedError(resource_.name() +
                                    ": all its units are alike");
  }
  const std::shared_ptr<const Snapshot> now = snapshot();
  if (now == nullptr) return NotKnownYet(resource_.name());
  for (const auto& container : request.container_requests()) {
    const std::vector<std::string> available(
        container.available_deviceids().begin(),
        container.available_deviceids().end());
    const std::vector<std::string> must_include(
        container.must_include_deviceids().begin(),
        container.must_include_deviceids().end());
    if (container.allocation_size() < 0)
      return absl::InvalidArgumentError(resource_.name() + ": a negative size");
    auto* preferred = response->add_container_responses();
    for (const std::string& id : resource_.Prefer(
             available, must_include,
             static_cast<size_t>(container.allocation_size()), *now))
      preferred->add_deviceids(id);
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* DevicePluginService::Allocate(
    Context* context, const v1beta1::AllocateRequest* request,
    v1beta1::AllocateResponse* response) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const absl::Status status = AllocateAll(*request, response);
  allocate_durations_.Observe(
      std::chrono::duration<double>(Clock::now() - begin).count());
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
  const std::shared_ptr<const Snapshot> now = snapshot();
  if (now == nullptr) return NotKnownYet(resource_.name());
  if (request.container_requests().empty())
    return absl::InvalidArgumentError(resource_.name() + ": no container");
  const Advertisement advertisement = resource_.Advertise(*now);
  for (const auto& container : request.container_requests()) {
    const std::vector<std::string> ids(container.devices_ids().begin(),
                                       container.devices_ids().end());
    if (absl::Status s = CheckUnits(advertisement, ids); !s.ok()) {
      return absl::Status(s.code(), fmt::format("{}: {}", resource_.name(),
                                                std::string(s.message())));
    }
    PURSER_ASSIGN_OR_RETURN(*response->add_container_responses(),
                            resource_.Allocate(ids, *now));
    base::LogInfo("allocated",
                  {{"resource", resource_.name()}, {"units", ids.size()}});
  }
  return absl::OkStatus();
}

}  // namespace purser::plugin
