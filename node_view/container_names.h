// SPDX-License-Identifier: Apache-2.0
//
// Which container has which id, from the names of the links that the kubelet
// keeps in /var/log/containers for log collectors. The links lead nowhere when
// that directory alone is mounted: names can be read, logs cannot.
#pragma once

#include <compare>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace purser::node_view {

struct ContainerName {
  std::string namespace_name, pod, container;
  auto operator<=>(const ContainerName&) const = default;
};

struct NamedContainer {
  std::string id;  // its front alone where the names were too long for a file's
  ContainerName name;
};

// "<pod>_<namespace>_<container>-<id>.log"; nullopt: not the kubelet's.
std::optional<NamedContainer> ParseLogName(std::string_view file_name);

// By id.
using ContainerNames = std::map<std::string, ContainerName>;
absl::StatusOr<ContainerNames> ReadContainerNames(
    const std::filesystem::path& directory);

// nullptr: no such container.
const ContainerName* FindContainer(const ContainerNames& names,
                                   const std::string& id);

}  // namespace purser::node_view
