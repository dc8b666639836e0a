// SPDX-License-Identifier: Apache-2.0
#include "sidecar/classes.h"

#include <algorithm>
#include <set>

#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

// Of shares that were written as decimals.
constexpr double kRounding = 1e-9;

absl::Status CheckNames(const ClassesConfig& config) {
  std::set<std::string> names;
  for (const ClassConfig& of : config.classes) {
    if (of.name.empty())
      return absl::InvalidArgumentError("a class has no name");
    if (!names.insert(of.name).second)
      return absl::InvalidArgumentError(
          fmt::format("class {} is defined twice", of.name));
    if (of.floor > of.max_share)
      return absl::InvalidArgumentError(fmt::format(
          "class {}: floor {:.4g} % is more than its maxShare {:.4g} %",
          of.name, of.floor * 100, of.max_share * 100));
  }
  names.clear();
  for (const ClientGuarantee& guarantee : config.guarantees) {
    if (guarantee.client.empty())
      return absl::InvalidArgumentError("a guarantee names no client");
    if (!names.insert(guarantee.client).second)
      return absl::InvalidArgumentError(
          fmt::format("client {} has two guarantees", guarantee.client));
  }
  return absl::OkStatus();
}

absl::Status CheckSum(const ClassesConfig& config) {
  double sum = 0;
  std::string parts;
  const auto add = [&](const std::string& whose, double share) {
    if (share <= 0) return;
    sum += share;
    parts += fmt::format("{}{} {:.4g} %", parts.empty() ? "" : " + ", whose,
                         share * 100);
  };
  for (const ClassConfig& of : config.classes)
    add("class " + of.name, of.floor);
  for (const ClientGuarantee& of : config.guarantees)
    add("client " + of.client, of.share);
  if (sum <= 1 + kRounding) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("floors and guarantees promise {:.4g} % of the budget ({}): "
                  "lower them to 100 % together",
                  sum * 100, parts));
}

}  // namespace

const ClassConfig* ClassesConfig::Find(const std::string& name) const {
  const std::string& wanted = name.empty() ? kDefaultClass : name;
  const auto found =
      std::find_if(classes.begin(), classes.end(),
                   [&](const ClassConfig& of) { return of.name == wanted; });
  return found == classes.end() ? nullptr : &*found;
}

std::string ClassesConfig::Names() const {
  std::string names;
  for (const ClassConfig& of : classes)
    names += (names.empty() ? "" : ", ") + of.name;
  return names;
}

absl::Status Complete(ClassesConfig& config) {
  if (config.Find(kDefaultClass) == nullptr)
    config.classes.push_back({.name = kDefaultClass});
  if (absl::Status status = CheckNames(config); !status.ok()) return status;
  return CheckSum(config);
}

}  // namespace purser::sidecar
