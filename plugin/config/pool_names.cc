// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/pool_names.h"

#include "spdlog/fmt/fmt.h"

namespace purser::plugin {

std::string PoolNames::Take(const PoolConfig& pool) {
  const std::string name = pool.full_name();
  if (!resources_.insert(name).second)
    return fmt::format("{} is the name of two pools", name);
  return "";
}

std::string PoolNames::TakeVariable(const PoolConfig& pool) {
  const std::string variable =
      PoolDevicesVariable(pool.resource_prefix, pool.resource_name);
  const auto [other, is_new] = variables_.emplace(variable, pool.full_name());
  return is_new ? ""
                : fmt::format("{} and {} would both set {}; rename one",
                              other->second, pool.full_name(), variable);
}

}  // namespace purser::plugin
