// SPDX-License-Identifier: Apache-2.0
#include "planner/device.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <iterator>

#include "base/status_macros.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using queue_memory::DeviceLimits;
using queue_memory::ObjectCounts;
using queue_memory::Provider;

// Of ibv_device_attr, which has signed numbers.
constexpr uint64_t kMost = INT32_MAX;
// A queue pair's number, the index of a memory region's key.
constexpr uint64_t kMost24Bits = 1 << 24;
constexpr uint64_t kMostBytes = 1 << 20;  // of an entry
constexpr uint64_t kMostElements = 1 << 16;

struct Range {
  uint64_t least = 1, most = kMost;
  bool power_of_two = false;
};

struct NamedCount {
  std::string_view name;
  uint64_t ObjectCounts::*field;
  Range range;
};

struct NamedLimit {
  std::string_view name;
  uint32_t& (*field)(DeviceLimits&);
  Range range;
  Provider provider = Provider::kUnknown;  // that alone has it
};

constexpr NamedCount kCounts[] = {
    {"maxQp", &ObjectCounts::max_qp, {.most = kMost24Bits}},
    {"maxCq", &ObjectCounts::max_cq, {}},
    {"maxMr", &ObjectCounts::max_mr, {}},
    {"maxSrq", &ObjectCounts::max_srq, {}}};
constexpr NamedLimit kLimits[] = {
    {"maxQpWr", [](auto& l) -> uint32_t& { return l.max_qp_wr; }, {}},
    {"maxSge",
     [](auto& l) -> uint32_t& { return l.max_sge; },
     {.most = kMostElements}},
    {"maxCqe", [](auto& l) -> uint32_t& { return l.max_cqe; }, {}},
    {"maxSrqWr", [](auto& l) -> uint32_t& { return l.max_srq_wr; }, {}},
    {"maxSrqSge",
     [](auto& l) -> uint32_t& { return l.max_srq_sge; },
     {.most = kMostElements}},
    {"maxRecvWr", [](auto& l) -> uint32_t& { return l.max_recv_wr; }, {}},
    {"maxRecvSge",
     [](auto& l) -> uint32_t& { return l.max_recv_sge; },
     {.most = kMostElements}},
    {"maxInlineData",
     [](auto& l) -> uint32_t& { return l.max_inline_data; },
     {.most = kMostBytes}},
    {"maxSqDescSz",
     [](auto& l) -> uint32_t& { return l.max_sq_desc_sz; },
     {64, kMostBytes},
     Provider::kMlx5},
    {"maxRqDescSz",
     [](auto& l) -> uint32_t& { return l.max_rq_desc_sz; },
     {16, kMostBytes},
     Provider::kMlx5},
    {"maxSendWqebb",
     [](auto& l) -> uint32_t& { return l.max_send_wqebb; },
     {},
     Provider::kMlx5},
    {"cqeSize", [](auto& l) -> uint32_t& { return l.cqe_size; }, {16, 4096}},
    {"pageSize",
     [](auto& l) -> uint32_t& { return l.page_size; },
     {4096, 1 << 30, true}},
    {"irdmaMaxQuanta",
     [](auto& l) -> uint32_t& { return l.irdma.max_quanta; },
     {},
     Provider::kIrdma},
    {"efaMaxLlqSize",
     [](auto& l) -> uint32_t& { return l.efa.max_llq_size; },
     {},
     Provider::kEfa},
    {"efaMinSqWr",
     [](auto& l) -> uint32_t& { return l.efa.min_sq_wr; },
     {},
     Provider::kEfa},
    {"efaSubCqs",
     [](auto& l) -> uint32_t& { return l.efa.sub_cqs; },
     {.most = kMostElements},
     Provider::kEfa},
    {"qedrSendElements",
     [](auto& l) -> uint32_t& { return l.qedr.send_elements; },
     {.most = kMostElements},
     Provider::kQedr},
    {"qedrReceiveElements",
     [](auto& l) -> uint32_t& { return l.qedr.receive_elements; },
     {.most = kMostElements},
     Provider::kQedr},
};

constexpr auto kLimitNames = [] {
  std::array<std::string_view, std::size(kCounts) + std::size(kLimits)> names;
  size_t i = 0;
  for (const NamedCount& count : kCounts) names[i++] = count.name;
  for (const NamedLimit& limit : kLimits) names[i++] = limit.name;
  return names;
}();

absl::Status Within(const Range& range, uint64_t value) {
  if (value >= range.least && value <= range.most &&
      (!range.power_of_two || std::has_single_bit(value)))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("must be {} from {} to {}, not {}",
                  range.power_of_two ? "a power of two" : "a whole number",
                  range.least, range.most, value));
}

// What stands for the rule of `profile`, not of a device.
bool Describes(const std::string& what) {
  const auto& profiles = queue_memory::KnownProfiles();
  return std::any_of(
      profiles.begin(), profiles.end(),
      [&what](const auto& profile) { return what == profile.what; });
}

// The leading number; false where there is none.
bool TakeNumber(std::string_view* text, uint32_t* number) {
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, *number);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(rest - text->data()));
  return true;
}

bool TakePoint(std::string_view* text) {
  if (!text->starts_with('.')) return false;
  text->remove_prefix(1);
  return true;
}

absl::Status NoSuch(std::string_view what, std::string_view name,
                    std::span<const std::string_view> names) {
  return absl::NotFoundError(fmt::format(
      "there is no {} {}{}; there are {}", what, base::QuoteForMessage(name),
      base::DidYouMean(name, names), fmt::join(names, ", ")));
}

ObjectCounts CountsOf(const queue_memory::DeviceProfile& profile) {
  return Overlay(queue_memory::TraitsOf(profile.provider).counts,
                 profile.counts);
}

Device DeviceOf(const queue_memory::DeviceProfile& profile) {
  return {.name = profile.name,
          .what = profile.what,
          .provider = profile.provider,
          .limits = profile.limits,
          .counts = CountsOf(profile)};
}

}  // namespace

absl::StatusOr<Device> DeviceOfProfile(std::string_view name) {
  if (const auto* profile =
          queue_memory::FindProfile(std::string(name).c_str()))
    return DeviceOf(*profile);
  std::vector<std::string_view> names;
  for (const auto& profile : queue_memory::KnownProfiles())
    names.push_back(profile.name);
  return NoSuch("provider", name, names);
}

absl::Status SetKernelVersion(std::string_view text, Device* device) {
  queue_memory::KernelVersion version;
  std::string_view rest = text;
  if (!TakeNumber(&rest, &version.release) || !TakePoint(&rest) ||
      !TakeNumber(&rest, &version.series) ||
      (TakePoint(&rest) && !TakeNumber(&rest, &version.patch)))
    return absl::InvalidArgumentError(
        fmt::format("{} is no version of a kernel; write it as uname -r does, "
                    "such as 6.1 or 6.1.0-31-amd64",
                    base::QuoteForMessage(text)));
  const auto* profile =
      queue_memory::ProfileOfKernel(device->provider, version);
  if (profile == nullptr) return absl::OkStatus();
  device->limits = Overlay(profile->limits, device->told_limits);
  device->counts = Overlay(CountsOf(*profile), device->told_counts);
  if (Describes(device->what)) device->what = profile->what;
  return absl::OkStatus();
}

std::vector<Device> AllDevices() {
  std::vector<Device> devices;
  for (const auto& profile : queue_memory::KnownProfiles())
    devices.push_back(DeviceOf(profile));
  return devices;
}

std::span<const std::string_view> LimitNames() { return kLimitNames; }

void Tell(const DeviceLimits& limits, const ObjectCounts& counts,
          Device* device) {
  device->told_limits = Overlay(device->told_limits, limits);
  device->told_counts = Overlay(device->told_counts, counts);
  device->limits = Overlay(device->limits, limits);
  device->counts = Overlay(device->counts, counts);
}

absl::Status SetLimit(std::string_view name, uint64_t value, Device* device) {
  DeviceLimits limits;
  ObjectCounts counts;
  for (const NamedCount& count : kCounts) {
    if (count.name != name) continue;
    PURSER_RETURN_IF_ERROR(Within(count.range, value));
    counts.*count.field = value;
    Tell(limits, counts, device);
    return absl::OkStatus();
  }
  for (const NamedLimit& limit : kLimits) {
    if (limit.name != name) continue;
    PURSER_RETURN_IF_ERROR(Within(limit.range, value));
    if (limit.provider != Provider::kUnknown &&
        limit.provider != device->provider)
      return absl::InvalidArgumentError(fmt::format(
          "is a limit of {}; {} has none of that kind",
          queue_memory::ProviderName(limit.provider), device->name));
    limit.field(limits) = static_cast<uint32_t>(value);
    Tell(limits, counts, device);
    return absl::OkStatus();
  }
  return NoSuch("limit", name, kLimitNames);
}

const char* Has(const Device& device, uint64_t told) {
  return device.opened || told != 0 ? "has" : "usually has";
}

}  // namespace purser::planner
