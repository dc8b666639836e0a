// SPDX-License-Identifier: Apache-2.0
#include "node_view/reserved_memory.h"

#include <array>
#include <string>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "node_view/lines.h"
#include "spdlog/fmt/fmt.h"

namespace purser::node_view {
namespace {

// Below the kubelet's --cgroup-root, which is mostly the root.
constexpr std::array kPodsCgroups = {"kubepods", "kubepods.slice",
                                     "kubelet/kubepods",
                                     "kubelet.slice/kubelet-kubepods.slice"};

}  // namespace

absl::StatusOr<uint64_t> ReservedByPodsCgroup(
    const std::filesystem::path& cgroup_root, uint64_t node_memory_bytes) {
  for (const char* cgroup : kPodsCgroups) {
    for (const auto& file :
         {cgroup_root / cgroup / "memory.max",
          cgroup_root / "memory" / cgroup / "memory.limit_in_bytes"}) {
      const absl::StatusOr<std::string> text = base::ReadFile(file.string());
      if (absl::IsNotFound(text.status())) continue;
      PURSER_RETURN_IF_ERROR(text.status());
      const absl::string_view value = absl::StripAsciiWhitespace(*text);
      uint64_t limit = 0;
      if (value == "max")
        return absl::NotFoundError(
            fmt::format("{} has no limit: the kubelet does not enforce what it "
                        "reserves (enforceNodeAllocatable)",
                        file.string()));
      if (!ParseNumber({value.data(), value.size()}, 10, &limit))
        return absl::DataLossError(
            fmt::format("{} holds no number", file.string()));
      return limit < node_memory_bytes ? node_memory_bytes - limit : 0;
    }
  }
  return absl::NotFoundError(
      fmt::format("there is no cgroup of all pods in {}: mount the host's",
                  cgroup_root.string()));
}

}  // namespace purser::node_view
