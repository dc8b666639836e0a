// SPDX-License-Identifier: Apache-2.0
#include "plugin/endpoint_name.h"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

constexpr std::string_view kBegin = "purser-", kEnd = ".sock";
constexpr size_t kLongestResource = 24;

// FNV-1a: the same in every version of the program.
uint32_t Hash(std::string_view text) {
  uint32_t hash = 2166136261;
  for (char c : text) {
    hash ^= static_cast<uint8_t>(c);
    hash *= 16777619;
  }
  return hash;
}

// Takes what follows the last `separator` off `text`, as a number.
template <typename T>
bool TakeNumber(std::string_view& text, char separator, int base, T* out) {
  const size_t at = text.rfind(separator);
  if (at == std::string_view::npos) return false;
  const std::string_view digits = text.substr(at + 1);
  const char* end = digits.data() + digits.size();
  const auto [parsed_to, error] =
      std::from_chars(digits.data(), end, *out, base);
  text.remove_suffix(text.size() - at);
  return error == std::errc() && parsed_to == end;
}

}  // namespace

Identity Identity::Now(std::string installation) {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return {std::move(installation),
          static_cast<uint64_t>(now.tv_sec) * 1000 +
              static_cast<uint64_t>(now.tv_nsec) / 1'000'000};
}

uint32_t InstallationHash(std::string_view installation) {
  return Hash(installation);
}

uint32_t ResourceHash(std::string_view resource) { return Hash(resource); }

std::string ResourcePart(std::string_view resource) {
  std::string part(resource);
  std::replace(part.begin(), part.end(), '/', '_');
  if (part.size() <= kLongestResource) return part;
  return fmt::format("{}_{:08x}", part.substr(0, kLongestResource - 9),
                     Hash(resource));
}

EndpointName EndpointName::Make(std::string_view resource,
                                const Identity& identity, uint32_t serial) {
  return {ResourcePart(resource), InstallationHash(identity.installation),
          identity.started_ms, serial};
}

std::optional<EndpointName> EndpointName::Parse(std::string_view file_name) {
  EndpointName name;
  if (!file_name.starts_with(kBegin) || !file_name.ends_with(kEnd))
    return std::nullopt;
  file_name.remove_prefix(kBegin.size());
  file_name.remove_suffix(std::min(kEnd.size(), file_name.size()));
  if (!TakeNumber(file_name, '.', 10, &name.serial) ||
      !TakeNumber(file_name, '-', 16, &name.started_ms) ||
      !TakeNumber(file_name, '-', 16, &name.installation))
    return std::nullopt;
  name.resource = std::string(file_name);
  return name;
}

std::string EndpointName::text() const {
  return fmt::format("{}{}-{:08x}-{:x}.{}{}", kBegin, resource, installation,
                     started_ms, serial, kEnd);
}

}  // namespace purser::plugin
