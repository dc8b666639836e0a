// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/pool_names.h"

#include <vector>

#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

std::vector<std::string> VariablesOf(const PoolConfig& pool) {
  const std::string &prefix = pool.resource_prefix, &name = pool.resource_name;
  std::vector<std::string> variables = {PoolDevicesVariable(prefix, name),
                                        PoolGidIndexVariable(prefix, name)};
  if (pool.of_sriov_plugin()) {
    variables.push_back(SriovVariable(prefix, name));
    variables.push_back(variables.back() + "_INFO");
  }
  return variables;
}

}  // namespace

std::string PoolNames::Take(const PoolConfig& pool) {
  const std::string name = pool.full_name();
  if (!resources_.insert(name).second)
    return fmt::format("{} is the name of two pools", name);
  return "";
}

std::string PoolNames::TakeVariables(const PoolConfig& pool) {
  std::map<std::string, std::string> shared;  // with which resource
  for (const std::string& variable : VariablesOf(pool)) {
    const auto [other, is_new] = variables_.emplace(variable, pool.full_name());
    if (is_new || other->second == pool.full_name()) continue;
    std::string& all = shared[other->second];
    all += (all.empty() ? "" : ", ") + variable;
  }
  std::string faults;
  for (const auto& [other, variables] : shared)
    faults += fmt::format("{}{} and {} would both set {}; rename one",
                          faults.empty() ? "" : "; ", other, pool.full_name(),
                          variables);
  return faults;
}

}  // namespace purser::plugin
