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

absl::Status RingScan::Read(pid_t pid, bool has_objects,
                            std::vector<Ring>& rings) {
  const absl::Status status =
      processes_.ForEachRing(pid, [&](const RingMapping& mapping) {
        const auto device = std::find_if(
            devices_.begin(), devices_.end(), [&](const Device& candidate) {
              return candidate.uverbs == mapping.uverbs;
            });
        if (device == devices_.end() || !MapsItsRings(device->provider)) return;
        rings.push_back(
            {.device = static_cast<size_t>(device - devices_.begin()),
             .offset = mapping.offset,
             .start =
                 OffsetsAreOfTheDevice(device->provider) ? 0 : mapping.start,
             .without_objects = !has_objects,
             .pid = pid,
             .bytes = mapping.bytes()});
      });
  if (absl::IsNotFound(status)) return absl::OkStatus();  // ended
  if (status.ok()) {
    report_.Used(kMappings);
  } else {
    report_.Without(kMappings, status);
  }
  return status;
}

void RingScan::Take(size_t process, std::vector<Ring> rings) {
  for (Ring& ring : rings) {
    ring.process = process;
    if (!OffsetsAreOfTheDevice(devices_[ring.device].provider))
      ring.container = ContainerNumber(process);
  }
  rings_.insert(rings_.end(), rings.begin(), rings.end());
}

bool RingScan::AddHolder(size_t process) {
  const pid_t pid = table_[process].pid;
  if (!added_.insert(pid).second) return true;
  std::vector<Ring> rings;
  if (!Read(pid, true, rings).ok()) return false;
  Take(process, std::move(rings));
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
    std::vector<Ring> rings;
    all &= Read(pid, false, rings).ok();
    if (rings.empty()) continue;  // as most, which need no description
    const size_t process = table_.Find(pid);
    if (process >= ProcessTable::kFirstProcess) Take(process, std::move(rings));
  }
  return all;
}

std::map<std::pair<size_t, size_t>, MappedRings> RingScan::Sum() {
  const auto which = [](const Ring& ring) {
    return std::tie(ring.device, ring.offset, ring.container, ring.start);
  };
  std::sort(rings_.begin(), rings_.end(), [&](const Ring& a, const Ring& b) {
    if (which(a) != which(b)) return which(a) < which(b);
    return std::tie(a.without_objects, a.pid) <
           std::tie(b.without_objects, b.pid);
  });
  std::map<std::pair<size_t, size_t>, MappedRings> held;
  const Ring* before = nullptr;
  for (const Ring& ring : rings_) {
    if (before != nullptr && which(*before) == which(ring)) continue;
    before = &ring;
    MappedRings& mapped = held[{ring.device, ring.process}];
    ++mapped.count;
    mapped.kernel_bytes += KernelBytesOfRing(devices_[ring.device], ring.bytes);
  }
  return held;
}

}  // namespace purser::node_view
