// SPDX-License-Identifier: Apache-2.0
#include "plugin/held_units.h"

#include <chrono>
#include <memory>
#include <utility>

#include "base/logging.h"
#include "node_view/pod_resources_client.h"

namespace purser::plugin {
namespace {

constexpr std::chrono::milliseconds kDeadline{500};

HeldUnits UnitsIn(const ::v1::ListPodResourcesResponse& response) {
  HeldUnits held;
  for (const ::v1::PodResources& pod : response.pod_resources()) {
    for (const ::v1::ContainerResources& container : pod.containers()) {
      for (const ::v1::ContainerDevices& devices : container.devices())
        held[devices.resource_name()].insert(devices.device_ids().begin(),
                                             devices.device_ids().end());
    }
  }
  return held;
}

}  // namespace

AskHeldUnits HeldUnitsOfKubelet(const std::string& socket) {
  struct State {
    node_view::PodResourcesClient client;
    bool failed = false;
  };
  auto state = std::make_shared<State>(
      State{.client = node_view::PodResourcesClient(socket)});
  return [state]() -> absl::StatusOr<HeldUnits> {
    const auto response = state->client.List(kDeadline);
    const bool failed_before = std::exchange(state->failed, !response.ok());
    if (response.ok()) return UnitsIn(*response);
    if (!failed_before) {
      base::LogWarn(
          "the kubelet cannot be asked which units containers have (mount its "
          "pod-resources directory for that)",
          {{"error", response.status()}});
    }
    return response.status();
  };
}

}  // namespace purser::plugin
