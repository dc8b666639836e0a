// SPDX-License-Identifier: Apache-2.0
#include "plugin/registration_service.h"

#include <utility>

#include "plugin/kubelet_client.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

constexpr const char* kPluginType = "DevicePlugin";

}  // namespace

RegistrationService::RegistrationService(std::string resource,
                                         std::function<void()> changed)
    : resource_(std::move(resource)), changed_(std::move(changed)) {}

RegistrationService::State RegistrationService::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

void RegistrationService::Reset() {
  std::lock_guard lock(mutex_);
  state_.heard_at.reset();
  state_.outcome.reset();
}

grpc::ServerUnaryReactor* RegistrationService::GetInfo(
    Context* context, const pluginregistration::InfoRequest* /*request*/,
    pluginregistration::PluginInfo* response) {
  response->set_type(kPluginType);
  response->set_name(resource_);
  response->add_supported_versions(kDevicePluginVersion);
  {
    std::lock_guard lock(mutex_);
    state_.heard_at = std::chrono::steady_clock::now();
  }
  changed_();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* RegistrationService::NotifyRegistrationStatus(
    Context* context, const pluginregistration::RegistrationStatus* request,
    pluginregistration::RegistrationStatusResponse* /*response*/) {
  {
    std::lock_guard lock(mutex_);
    state_.heard_at = std::chrono::steady_clock::now();
    ++(request->plugin_registered() ? state_.registered : state_.failed);
    state_.outcome = request->plugin_registered()
                         ? absl::OkStatus()
                         : absl::UnknownError(fmt::format(
                               "the kubelet found {} in its plugins_registry "
                               "and did not register it: {}",
                               resource_, request->error()));
  }
  changed_();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace purser::plugin
