// SPDX-License-Identifier: Apache-2.0
#include "cli/names.h"

#include <arpa/inet.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "base/quantity.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

// The enum's value name without its prefix; a value of a newer sidecar by its
// number.
template <typename Enum>
std::string ShortName(const std::string& name, const std::string& prefix,
                      Enum value) {
  if (!name.starts_with(prefix))
    return fmt::format("{}", static_cast<int>(value));
  return name.substr(prefix.size());
}

}  // namespace

std::string TypeName(v1::QueuePairType type) {
  return ShortName(v1::QueuePairType_Name(type), "QUEUE_PAIR_TYPE_", type);
}

std::string StateName(v1::QueuePairState state) {
  return ShortName(v1::QueuePairState_Name(state), "QUEUE_PAIR_STATE_", state);
}

std::string SourceName(v1::BudgetSource source) {
  return absl::AsciiStrToLower(
      ShortName(v1::BudgetSource_Name(source), "BUDGET_SOURCE_", source));
}

std::string ScopeName(v1::PressureScope scope) {
  return scope == v1::PRESSURE_SCOPE_NODE ? "node" : "container";
}

std::string PressureName(v1::PressureState state) {
  switch (state) {
    case v1::PRESSURE_STATE_TIGHT:
      return "tight";
    case v1::PRESSURE_STATE_CRITICAL:
      return "critical";
    default:
      return "normal";
  }
}

std::string GidText(const std::string& gid) {
  char text[INET6_ADDRSTRLEN];
  if (gid.size() == sizeof(in6_addr) &&
      inet_ntop(AF_INET6, gid.data(), text, sizeof(text)) != nullptr)
    return text;
  return absl::BytesToHexString(gid);
}

uint64_t Total(const v1::ChargedBytes& bytes) {
  return bytes.container_bytes() + bytes.node_bytes();
}

std::string Bytes(uint64_t bytes) {
  return fmt::format("{} bytes ({})", base::FormatCount(bytes),
                     base::FormatBytes(bytes));
}

std::string Count(uint64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", base::FormatCount(count), noun,
                     count == 1 ? "" : "s");
}

}  // namespace purser::cli
