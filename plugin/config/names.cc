// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/names.h"

#include <algorithm>

#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlnum(char c) { return IsLower(c) || IsUpper(c) || IsDigit(c); }

bool IsDnsLabel(std::string_view label) {
  auto edge = [](char c) { return IsLower(c) || IsDigit(c); };
  return !label.empty() && edge(label.front()) && edge(label.back()) &&
         std::all_of(label.begin(), label.end(),
                     [&](char c) { return edge(c) || c == '-'; });
}

constexpr size_t kLongestSubdomain = 253;

bool IsDnsSubdomain(std::string_view text) {
  if (text.empty() || text.size() > kLongestSubdomain) return false;
  while (true) {
    const size_t dot = text.find('.');
    if (!IsDnsLabel(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

std::string VariablePart(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (IsLower(c)) {
      c = static_cast<char>(c - 'a' + 'A');
    } else if (!IsAlnum(c)) {
      c = '_';
    }
  }
  return out;
}

std::string PoolVariable(std::string_view prefix, std::string_view name,
                         std::string_view what) {
  return prefix == kDefaultResourcePrefix
             ? fmt::format("PURSER_POOL_{}_{}", VariablePart(name), what)
             : fmt::format("PURSER_POOL_{}_{}_{}", VariablePart(prefix),
                           VariablePart(name), what);
}

}  // namespace

absl::Status CheckResourcePrefix(std::string_view prefix) {
  if (!IsDnsSubdomain(prefix)) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is no DNS subdomain: lower-case letters, digits and '-' in "
        "parts joined by '.', such as rdma or example.com",
        prefix));
  }
  // As Kubernetes' IsExtendedResourceName() has it: what is not its own, and
  // may have "requests." before it, for quotas.
  constexpr std::string_view kQuota = "requests.";
  if (prefix.ends_with("kubernetes.io") || prefix.starts_with(kQuota)) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" belongs to Kubernetes, which takes no extended resource under "
        "it; use rdma or a domain of your own",
        prefix));
  }
  if (const size_t most = kLongestSubdomain - kQuota.size();
      prefix.size() > most) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is longer than {} characters, the most that Kubernetes takes "
        "before an extended resource's name",
        prefix, most));
  }
  return absl::OkStatus();
}

absl::Status CheckResourceName(std::string_view name) {
  const bool good = !name.empty() && name.size() <= 63 &&
                    IsAlnum(name.front()) && IsAlnum(name.back()) &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return IsAlnum(c) || c == '-' || c == '_' || c == '.';
                    });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "\"{}\" is no resource name: 1 to 63 letters, digits, '-', '_' and '.', "
      "with a letter or digit at both ends, such as hca (the prefix is a key "
      "of its own: resourcePrefix)",
      name));
}

std::string QueueMemoryResourceName(uint32_t unit_mib) {
  return unit_mib == 1 ? "rdma/wqe-mib"
                       : fmt::format("rdma/wqe-{}mib", unit_mib);
}

std::string QueuePairResourceName(uint32_t unit) {
  return unit == 1 ? "rdma/qp" : fmt::format("rdma/qp-{}", unit);
}

bool IsCapacityResource(std::string_view full_name) {
  constexpr std::string_view kMemory = "rdma/wqe-", kMib = "mib",
                             kPairs = "rdma/qp-";
  auto is_number = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), IsDigit);
  };
  if (full_name == "rdma/qp") return true;
  if (full_name.starts_with(kPairs))
    return is_number(full_name.substr(kPairs.size()));
  return full_name.starts_with(kMemory) && full_name.ends_with(kMib) &&
         full_name.size() >= kMemory.size() + kMib.size() &&
         is_number(full_name.substr(
             kMemory.size(), full_name.size() - kMemory.size() - kMib.size()));
}

std::string PoolDevicesVariable(std::string_view prefix,
                                std::string_view name) {
  return PoolVariable(prefix, name, "DEVICES");
}

std::string PoolGidIndexVariable(std::string_view prefix,
                                 std::string_view name) {
  return PoolVariable(prefix, name, "GID_INDEX");
}

std::string SriovVariable(std::string_view prefix, std::string_view name) {
  std::string out = fmt::format("PCIDEVICE_{}_{}", prefix, name);
  for (char& c : out) {
    if (c == '.') c = '_';
    if (IsLower(c)) c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

}  // namespace purser::plugin
