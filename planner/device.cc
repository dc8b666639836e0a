// SPDX-License-Identifier: Apache-2.0
#include "planner/device.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "base/suggest.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using queue_memory::DeviceLimits;

struct NamedLimit {
  std::string_view name;
  uint32_t& (*field)(DeviceLimits&);
};

struct NamedCount {
  std::string_view name;
  uint64_t Device::*field;
};

// Of the device, not the model.
constexpr NamedCount kCounts[] = {{"maxQp", &Device::max_qp},
                                  {"maxCq", &Device::max_cq},
                                  {"maxMr", &Device::max_mr},
                                  {"maxSrq", &Device::max_srq}};
constexpr NamedLimit kLimits[] = {
    {"maxQpWr", [](auto& l) -> uint32_t& { return l.max_qp_wr; }},
    {"maxSge", [](auto& l) -> uint32_t& { return l.max_sge; }},
    {"maxCqe", [](auto& l) -> uint32_t& { return l.max_cqe; }},
    {"maxSrqWr", [](auto& l) -> uint32_t& { return l.max_srq_wr; }},
    {"maxSrqSge", [](auto& l) -> uint32_t& { return l.max_srq_sge; }},
    {"maxRecvWr", [](auto& l) -> uint32_t& { return l.max_recv_wr; }},
    {"maxRecvSge", [](auto& l) -> uint32_t& { return l.max_recv_sge; }},
    {"maxInlineData", [](auto& l) -> uint32_t& { return l.max_inline_data; }},
    {"maxSqDescSz", [](auto& l) -> uint32_t& { return l.max_sq_desc_sz; }},
    {"maxRqDescSz", [](auto& l) -> uint32_t& { return l.max_rq_desc_sz; }},
    {"maxSendWqebb", [](auto& l) -> uint32_t& { return l.max_send_wqebb; }},
    {"cqeSize", [](auto& l) -> uint32_t& { return l.cqe_size; }},
    {"pageSize", [](auto& l) -> uint32_t& { return l.page_size; }},
    {"irdmaMaxQuanta", [](auto& l) -> uint32_t& { return l.irdma.max_quanta; }},
    {"efaMaxLlqSize", [](auto& l) -> uint32_t& { return l.efa.max_llq_size; }},
    {"efaMinSqWr", [](auto& l) -> uint32_t& { return l.efa.min_sq_wr; }},
    {"efaSubCqs", [](auto& l) -> uint32_t& { return l.efa.sub_cqs; }},
    {"qedrSendElements",
     [](auto& l) -> uint32_t& { return l.qedr.send_elements; }},
    {"qedrReceiveElements",
     [](auto& l) -> uint32_t& { return l.qedr.receive_elements; }},
};

constexpr auto kLimitNames = [] {
  std::array<std::string_view, std::size(kCounts) + std::size(kLimits)> names;
  size_t i = 0;
  for (const NamedCount& count : kCounts) names[i++] = count.name;
  for (const NamedLimit& limit : kLimits) names[i++] = limit.name;
  return names;
}();

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

Device DeviceOf(const queue_memory::DeviceProfile& profile) {
  return {.name = profile.name,
          .what = profile.what,
          .provider = profile.provider,
          .limits = profile.limits};
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
  device->limits.writes_back_real_slots =
      profile->limits.writes_back_real_slots;
  device->limits.cqe_size = profile->limits.cqe_size;
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

absl::Status SetLimit(std::string_view name, uint32_t value, Device* device) {
  for (const NamedCount& count : kCounts) {
    if (count.name != name) continue;
    device->*count.field = value;
    return absl::OkStatus();
  }
  for (const NamedLimit& limit : kLimits) {
    if (limit.name != name) continue;
    limit.field(device->limits) = value;
    return absl::OkStatus();
  }
  return NoSuch("limit", name, kLimitNames);
}

}  // namespace purser::planner
