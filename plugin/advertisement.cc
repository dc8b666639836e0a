// SPDX-License-Identifier: Apache-2.0
#include "plugin/advertisement.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "deviceplugin/v1beta1/api.pb.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

constexpr std::string_view kHealthy = "Healthy";
constexpr std::string_view kUnhealthy = "Unhealthy";

// Tag byte of a length-delimited field whose number is below 16.
constexpr uint32_t LengthDelimitedTag(int field) {
  return static_cast<uint32_t>(field) << 3 | 2;
}

// The canonical decimal form only: "07" and "+7" are ids we never gave out.
std::optional<uint32_t> ParseId(const std::string& id) {
  uint32_t number = 0;
  const char* end = id.data() + id.size();
  auto [parsed_to, error] = std::from_chars(id.data(), end, number);
  if (error != std::errc() || parsed_to != end) return std::nullopt;
  if (id.size() > 1 && id[0] == '0') return std::nullopt;
  return number;
}

const UnitRange* FindRange(const Advertisement& advertisement,
                           uint32_t number) {
  for (const UnitRange& range : advertisement.ranges) {
    if (number >= range.first && number - range.first < range.count)
      return &range;
  }
  return nullptr;
}

}  // namespace

uint32_t Advertisement::capacity() const {
  uint32_t sum = 0;
  for (const UnitRange& range : ranges) sum += range.count;
  return sum;
}

uint32_t Advertisement::allocatable() const {
  uint32_t sum = 0;
  for (const UnitRange& range : ranges) sum += range.healthy ? range.count : 0;
  return sum;
}

std::string SerializeListAndWatch(const Advertisement& advertisement) {
  std::string message;
  message.reserve(LargestMessageBytes(advertisement.capacity()));
  {
    google::protobuf::io::StringOutputStream sink(&message);
    google::protobuf::io::CodedOutputStream out(&sink);
    v1beta1::Device device;
    for (const UnitRange& range : advertisement.ranges) {
      device.set_health(std::string(range.healthy ? kHealthy : kUnhealthy));
      for (uint32_t i = 0; i < range.count; ++i) {
        device.set_id(std::to_string(range.first + i));
        out.WriteTag(LengthDelimitedTag(
            v1beta1::ListAndWatchResponse::kDevicesFieldNumber));
        out.WriteVarint32(static_cast<uint32_t>(device.ByteSizeLong()));
        device.SerializeWithCachedSizes(&out);
      }
    }
  }
  return message;
}

absl::Status CheckUnits(const Advertisement& advertisement,
                        std::span<const std::string> ids) {
  if (ids.empty())
    return absl::InvalidArgumentError("asked for no unit at all");
  std::unordered_set<uint32_t> seen;
  for (const std::string& id : ids) {
    const std::optional<uint32_t> number = ParseId(id);
    const UnitRange* range =
        number ? FindRange(advertisement, *number) : nullptr;
    if (range == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("id \"{}\" is not among the {} units advertised",
                      id.substr(0, 63), advertisement.capacity()));
    }
    if (!seen.insert(*number).second)
      return absl::InvalidArgumentError(
          fmt::format("id \"{}\" is named twice", id));
    if (!range->healthy)
      return absl::FailedPreconditionError(
          fmt::format("id \"{}\" is unhealthy: {}", id, range->reason));
  }
  return absl::OkStatus();
}

size_t LargestMessageBytes(uint32_t count) {
  // Each unit: tag and length of the Device, then tag, length and text of id
  // and health. All lengths are below 128: one byte each.
  size_t bytes = 0;
  uint64_t first = 0, next = 10;
  for (size_t digits = 1; first < count; ++digits) {
    const uint64_t units = std::min<uint64_t>(count, next) - first;
    bytes += units * (2 + 2 + digits + 2 + kUnhealthy.size());
    first = next;
    next *= 10;
  }
  return bytes;
}

uint32_t LargestUnitCount() {
  uint32_t fits = 0, too_many = kKubeletMaxMessageBytes;
  while (too_many - fits > 1) {
    const uint32_t middle = fits + (too_many - fits) / 2;
    (LargestMessageBytes(middle) <= kKubeletMaxMessageBytes ? fits : too_many) =
        middle;
  }
  return fits;
}

}  // namespace purser::plugin
