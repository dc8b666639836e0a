// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace purser::plugin {

// Which ways to the kubelet may be taken. Never both at one time: a kubelet
// that has a plugin twice leaks one of them (docs/adr/0006).
enum class RegistrationMode {
  kAuto,  // its socket; plugins_registry where that does not answer
  kKubeletSocket,
  kPluginsRegistry,
};

// "auto", "kubelet-socket", "plugins-registry".
absl::StatusOr<RegistrationMode> ParseRegistrationMode(std::string_view text);

}  // namespace purser::plugin
