// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/peer_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

// What both plugins take in a name: letters, digits and '_'; one of them '-'.
bool IsPeerName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
           c == '-';
  });
}

}  // namespace

void PeerNames::Take(base::YamlMap& map, PoolConfig* pool) {
  if (pool->resource_name.empty()) {
    map.Fault("resourceName", "is missing: every resource needs a name");
    return;
  }
  auto refuse = [&](std::string_view key, const absl::Status& status) {
    if (status.ok()) return;
    pool->advertised = false;
    map.Warn(key, fmt::format("{}; the kubelet would refuse it, so it is not "
                              "advertised",
                              std::string(status.message())));
  };
  const absl::Status name = CheckResourceName(pool->resource_name);
  if (!name.ok() && !IsPeerName(pool->resource_name)) {
    map.Fault("resourceName", std::string(name.message()));
    return;
  }
  refuse("resourceName", name);
  refuse("resourcePrefix", CheckResourcePrefix(pool->resource_prefix));
  if (IsCapacityResource(pool->full_name()))
    map.Warn("resourceName",
             fmt::format("{} is what queue memory or queue pairs are called, "
                         "and its units are taken for such; rename it",
                         pool->full_name()));
  if (const std::string fault = names_.Take(*pool); !fault.empty())
    map.Fault("resourceName", fault);
  if (const std::string shared = names_.TakeVariables(*pool); !shared.empty())
    map.Warn("resourceName", shared);
}

}  // namespace purser::plugin
