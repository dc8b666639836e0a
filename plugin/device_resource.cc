// SPDX-License-Identifier: Apache-2.0
#include "plugin/device_resource.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/quantity.h"
#include "plugin/config/unit_limit.h"
#include "plugin/device_access.h"
#include "plugin/pool_resource.h"
#include "plugin/preferred_units.h"
#include "plugin/sriov_variables.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

// Tags, lengths, the longer word of health and a NUMA node, of one unit; and
// the number at the end of a share's id.
constexpr size_t kBytesBesideId = 2 + 2 + 2 + kUnhealthyWord.size() + 6;
constexpr size_t kBytesOfNumber = 7;

std::string SharePrefix(const Device& device) {
  return StableName(device.sysfs) + "-";
}

// Shares that a message of the kubelet's has room for, of each of the devices.
uint32_t MostShares(const std::vector<const Device*>& members) {
  size_t longest = 0;
  for (const Device* device : members)
    longest = std::max(longest, SharePrefix(*device).size());
  const size_t each = kBytesBesideId + longest + kBytesOfNumber;
  return static_cast<uint32_t>(kKubeletMaxMessageBytes / each / members.size());
}

std::string Reason(const Device& device) {
  return fmt::format("{}: {}", device.sysfs.name, device.reason);
}

// What units of a device have in common with others where it matters which of
// them go together: their device, or the physical function that it is of.
std::string HcaOf(const PoolConfig& pool, const Device& device) {
  const bool whole = pool.unit == PoolUnit::kDevice;
  return whole && !device.sysfs.function.pf_address.empty()
             ? device.sysfs.function.pf_address
             : StableName(device.sysfs);
}

}  // namespace

DeviceResource::DeviceResource(PoolConfig config, const CdiSpecs* cdi)
    : config_(std::move(config)), name_(config_.full_name()), cdi_(cdi) {}

uint32_t DeviceResource::Shares(const Devices& members) const {
  return std::min(config_.rdma_hca_max.value_or(SharesOfGidTables(members)),
                  MostShares(members));
}

Advertisement DeviceResource::Advertise(const Snapshot& snapshot) const {
  Advertisement advertisement;
  const Devices members = snapshot.members(name_);
  if (members.empty()) return advertisement;
  const bool shares = config_.unit == PoolUnit::kDeviceShare;
  const uint32_t each = shares ? Shares(members) : 1;
  const auto units = static_cast<uint32_t>(members.size()) * each;
  for (const Device* device : members) {
    const bool healthy = device->healthy() || !config_.checks_health();
    const std::string reason = healthy ? "" : Reason(*device);
    const int numa_node = TopologyOf(config_, {device}, snapshot, units);
    if (!shares) {
      advertisement.named.push_back({.id = UnitId(config_, device->sysfs),
                                     .healthy = healthy,
                                     .reason = reason,
                                     .numa_node = numa_node});
    } else if (each > 0) {
      advertisement.ranges.push_back({.prefix = SharePrefix(*device),
                                      .count = each,
                                      .healthy = healthy,
                                      .reason = reason,
                                      .numa_node = numa_node});
    }
  }
  return advertisement;
}

std::string DeviceResource::Note(const Snapshot& snapshot) const {
  if (snapshot.members(name_).empty()) return NoUnitsReason(name_, snapshot);
  return std::string(Fits(snapshot).message());
}

absl::Status DeviceResource::Fits(const Snapshot& snapshot) const {
  const Devices members = snapshot.members(name_);
  if (members.empty() || config_.unit != PoolUnit::kDeviceShare)
    return absl::OkStatus();
  const uint32_t wanted =
      config_.rdma_hca_max.value_or(SharesOfGidTables(members));
  const uint32_t most = MostShares(members);
  if (wanted <= most) return absl::OkStatus();
  const std::string text = fmt::format(
      "{} shares of each of {} devices make a message of more than the {} "
      "bytes that the kubelet takes; the largest rdmaHcaMax that fits is {}",
      wanted, members.size(), base::FormatCount(kKubeletMaxMessageBytes), most);
  return config_.rdma_hca_max_given ? absl::InvalidArgumentError(text)
                                    : absl::OutOfRangeError(text);
}

size_t DeviceResource::IndexOf(const std::string& id,
                               const Devices& members) const {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const Device* device) {
        return config_.unit == PoolUnit::kDeviceShare
                   ? id.substr(0, id.rfind('-') + 1) == SharePrefix(*device)
                   : id == UnitId(config_, device->sysfs);
      });
  return static_cast<size_t>(found - members.begin());
}

absl::StatusOr<v1beta1::ContainerAllocateResponse> DeviceResource::Allocate(
    std::span<const std::string> ids, const Snapshot& snapshot) const {
  const Devices members = snapshot.members(name_);
  std::vector<bool> wanted(members.size() + 1);
  for (const std::string& id : ids) wanted[IndexOf(id, members)] = true;
  Devices allotted;
  for (size_t i = 0; i < members.size(); ++i)
    if (wanted[i]) allotted.push_back(members[i]);
  v1beta1::ContainerAllocateResponse response;
  GrantAccess(config_, allotted, snapshot, cdi_, &response);
  if (config_.reach != Reach::kEveryDevice)
    SetSriovVariables(config_, allotted, snapshot, &response);
  return response;
}

std::vector<std::string> DeviceResource::Prefer(
    std::span<const std::string> available,
    std::span<const std::string> must_include, size_t size,
    const Snapshot& snapshot) const {
  const Devices members = snapshot.members(name_);
  std::map<std::string, HcaUnits> hcas;
  const std::vector<std::string> must(must_include.begin(), must_include.end());
  auto units_of = [&](const std::string& id) -> HcaUnits* {
    const size_t index = IndexOf(id, members);
    if (index == members.size()) return nullptr;
    HcaUnits& hca = hcas[HcaOf(config_, *members[index])];
    hca.numa_node = members[index]->sysfs.numa_node;
    return &hca;
  };
  for (const std::string& id : must)
    if (HcaUnits* hca = units_of(id)) hca->must_include.push_back(id);
  for (const std::string& id : available) {
    if (std::find(must.begin(), must.end(), id) != must.end()) continue;
    if (HcaUnits* hca = units_of(id)) hca->available.push_back(id);
  }
  std::vector<HcaUnits> units;
  for (auto& [address, hca] : hcas) units.push_back(std::move(hca));
  const bool apart = config_.unit == PoolUnit::kDevice &&
                     config_.allocate.placement == Placement::kSpread;
  return PreferUnits(std::move(units), size, config_.allocate.placement,
                     apart ? Company::kApart : Company::kTogether);
}

}  // namespace purser::plugin
