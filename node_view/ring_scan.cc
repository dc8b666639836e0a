// SPDX-License-Identifier: Apache-2.0
#include "node_view/ring_scan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "node_view/queue_sizes.h"

namespace purser::node_view {

RingScan::RingScan(const std::vector<Device>& devices,
                   const Processes& processes, ProcessTable& table,
                   SourceReport& report)
    : devices_(devices),
      processes_(processes),
      table_(table),
      report_(report) {}

size_t RingScan::ContainerNumber(size_t process) {
  const std::optional<PodCgroup>& cgroup = table_[process].cgroup;
  if (!cgroup) return 0;
  return containers_.try_emplace(*cgroup, containers_.size() + 1).first->second;
}

absl::Status RingScan::Read(pid_t pid, bool has_objects, Rings& rings) {
  const absl::Status status =
      processes_.ForEachRing(pid, [&](const RingMapping& mapping) {
        const auto device = std::find_if(
            devices_.begin(), devices_.end(), [&](const Device& candidate) {
              return candidate.uverbs == mapping.uverbs;
            });
        if (device == devices_.end() || !MapsItsRings(device->provider)) return;
        const bool of_device = OffsetsAreOfTheDevice(device->provider);
        rings.push_back(
            {{.device = static_cast<size_t>(device - devices_.begin()),
              .offset = mapping.offset,
              .start = of_device ? 0 : mapping.start},
             {.without_objects = !has_objects,
              .pid = pid,
              .bytes = mapping.bytes()}});
      });
  if (absl::IsNotFound(status)) return absl::OkStatus();  // ended
  if (status.ok()) {
    report_.Used(kMappings);
  } else {
    report_.Without(kMappings, status);
  }
  return status;
}

void RingScan::Take(size_t process, const Rings& rings) {
  const size_t container = ContainerNumber(process);
  for (auto [ring, holder] : rings) {
    holder.process = process;
    if (!OffsetsAreOfTheDevice(devices_[ring.device].provider))
      ring.container = container;
    const auto [place, is_new] = holders_.try_emplace(ring, holder);
    Holder& before = place->second;
    if (std::tie(holder.without_objects, holder.pid) <
        std::tie(before.without_objects, before.pid))
      before = holder;
  }
}

bool RingScan::AddHolder(size_t process) {
  const pid_t pid = table_[process].pid;
  if (!added_.insert(pid).second) return true;
  Rings rings;
  if (!Read(pid, true, rings).ok()) return false;
  Take(process, rings);
  return true;
}

bool RingScan::AddOthers() {
  const absl::StatusOr<std::vector<pid_t>> pids = processes_.All();
  if (!pids.ok()) {
    report_.Without(kMappings, pids.status());
    return false;
  }
  bool all = true;
  for (const pid_t pid : *pids) {
    if (!added_.insert(pid).second) continue;
    Rings rings;
    all &= Read(pid, false, rings).ok();
    if (rings.empty()) continue;  // as most, which need no description
    const size_t process = table_.Find(pid);
    if (process >= ProcessTable::kFirstProcess) Take(process, rings);
  }
  return all;
}

std::map<std::pair<size_t, size_t>, MappedRings> RingScan::Sum() const {
  std::map<std::pair<size_t, size_t>, MappedRings> held;
  for (const auto& [ring, holder] : holders_) {
    MappedRings& mapped = held[{ring.device, holder.process}];
    ++mapped.count;
    mapped.kernel_bytes +=
        KernelBytesOfRing(devices_[ring.device], holder.bytes);
  }
  return held;
}

}  // namespace purser::node_view
