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
#include "plugin/config/unit_limit.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

// Tag byte of a length-delimited field whose number is below 16.
constexpr uint32_t LengthDelimitedTag(int field) {
  return static_cast<uint32_t>(field) << 3 | 2;
}

// The canonical decimal form only: "07" and "+7" are ids we never gave out.
std::optional<uint32_t> ParseId(std::string_view id) {
  uint32_t number = 0;
  const char* end = id.data() + id.size();
  auto [parsed_to, error] = std::from_chars(id.data(), end, number);
  if (error != std::errc() || parsed_to != end) return std::nullopt;
  if (id.size() > 1 && id[0] == '0') return std::nullopt;
  return number;
}

struct Unit {
  bool healthy = false;
  std::string reason;
};

std::optional<Unit> Find(const Advertisement& advertisement,
                         const std::string& id) {
  for (const NamedUnit& unit : advertisement.named)
    if (unit.id == id) return Unit{unit.healthy, unit.reason};
  for (const UnitRange& range : advertisement.ranges) {
    if (!id.starts_with(range.prefix)) continue;
    const std::optional<uint32_t> number =
        ParseId(std::string_view(id).substr(range.prefix.size()));
    if (number && *number >= range.first && *number - range.first < range.count)
      return Unit{range.healthy, range.reason};
  }
  return std::nullopt;
}

// Writes one Device of a ListAndWatchResponse.
void Write(const v1beta1::Device& device,
           google::protobuf::io::CodedOutputStream* out) {
  out->WriteTag(
      LengthDelimitedTag(v1beta1::ListAndWatchResponse::kDevicesFieldNumber));
  out->WriteVarint32(static_cast<uint32_t>(device.ByteSizeLong()));
  device.SerializeWithCachedSizes(out);
}

// All but the id.
void Describe(bool healthy, int numa_node, v1beta1::Device* device) {
  device->set_health(std::string(healthy ? kHealthyWord : kUnhealthyWord));
  device->clear_topology();
  if (numa_node >= 0)
    device->mutable_topology()->add_nodes()->set_id(numa_node);
}

}  // namespace

uint32_t Advertisement::capacity() const {
  uint32_t sum = 0;
  for (const UnitRange& range : ranges) sum += range.count;
  return sum + static_cast<uint32_t>(named.size());
}

uint32_t Advertisement::allocatable() const {
  uint32_t sum = 0;
  for (const UnitRange& range : ranges) sum += range.healthy ? range.count : 0;
  for (const NamedUnit& unit : named) sum += unit.healthy ? 1 : 0;
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
      Describe(range.healthy, range.numa_node, &device);
      for (uint32_t i = 0; i < range.count; ++i) {
        device.set_id(range.prefix + std::to_string(range.first + i));
        Write(device, &out);
      }
    }
    for (const NamedUnit& unit : advertisement.named) {
      Describe(unit.healthy, unit.numa_node, &device);
      device.set_id(unit.id);
      Write(device, &out);
    }
  }
  return message;
}

absl::Status CheckUnits(const Advertisement& advertisement,
                        std::span<const std::string> ids) {
  if (ids.empty())
    return absl::InvalidArgumentError("asked for no unit at all");
  std::unordered_set<std::string> seen;
  for (const std::string& id : ids) {
    const std::optional<Unit> unit = Find(advertisement, id);
    if (!unit) {
      return absl::InvalidArgumentError(
          fmt::format("id \"{}\" is not among the {} units advertised",
                      id.substr(0, 63), advertisement.capacity()));
    }
    if (!seen.insert(id).second)
      return absl::InvalidArgumentError(
          fmt::format("id \"{}\" is named twice", id));
    if (!unit->healthy)
      return absl::FailedPreconditionError(
          fmt::format("id \"{}\" is unhealthy: {}", id, unit->reason));
  }
  return absl::OkStatus();
}

}  // namespace purser::plugin
