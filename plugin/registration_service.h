// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "pluginregistration/v1/api.grpc.pb.h"

namespace purser::plugin {

using RegistrationServiceBase =
    pluginregistration::Registration::WithCallbackMethod_GetInfo<
        pluginregistration::Registration::
            WithCallbackMethod_NotifyRegistrationStatus<
                pluginregistration::Registration::Service>>;

// What the kubelet asks of a socket in its plugins_registry, for one resource.
// The endpoint that it names is the socket itself: as an empty path, since the
// kubelet may see the directory elsewhere. Owned by ResourceServer;
// thread-safe; blocks nowhere.
class RegistrationService : public RegistrationServiceBase {
 public:
  struct State {
    // The last time the kubelet asked for or told something.
    std::optional<std::chrono::steady_clock::time_point> heard_at;
    // What it told last of this socket; nullopt: nothing yet.
    std::optional<absl::Status> outcome;
    uint64_t registered = 0, failed = 0;  // of all sockets
  };

  // `changed` is called, from gRPC's threads, when the kubelet was heard.
  RegistrationService(std::string resource, std::function<void()> changed);

  State state() const;
  // A new socket.
  void Reset();

 private:
  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* GetInfo(
      Context* context, const pluginregistration::InfoRequest* request,
      pluginregistration::PluginInfo* response) override;
  grpc::ServerUnaryReactor* NotifyRegistrationStatus(
      Context* context, const pluginregistration::RegistrationStatus* request,
      pluginregistration::RegistrationStatusResponse* response) override;

  const std::string resource_;
  const std::function<void()> changed_;
  mutable std::mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::plugin
