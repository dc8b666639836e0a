// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/registration_mode.h"

#include "spdlog/fmt/fmt.h"

namespace purser::plugin {

absl::StatusOr<RegistrationMode> ParseRegistrationMode(std::string_view text) {
  if (text == "auto") return RegistrationMode::kAuto;
  if (text == "kubelet-socket") return RegistrationMode::kKubeletSocket;
  if (text == "plugins-registry") return RegistrationMode::kPluginsRegistry;
  return absl::InvalidArgumentError(fmt::format(
      "\"{}\" is none of auto, kubelet-socket and plugins-registry", text));
}

}  // namespace purser::plugin
