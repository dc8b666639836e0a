// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "node_view/device.h"
#include "node_view/process_table.h"
#include "node_view/sources.h"

namespace purser::node_view {

// Rings that a process holds on a device, as it has mapped them.
struct MappedRings {
  uint64_t count = 0;
  uint64_t kernel_bytes = 0;  // with the arrays of their pages
};

// What processes have mapped of the devices whose rings are kernel memory. A
// forked child repeats its parent's mappings: each ring is counted once, for
// the process that has objects of its own, else for that with the lowest pid.
class RingScan {
 public:
  RingScan(const std::vector<Device>& devices, const Processes& processes,
           ProcessTable& table, SourceReport& report);

  // A process that has objects. False: its mappings may not be read.
  bool AddHolder(size_t process);
  // Every other process of the node. False: some may not be read.
  bool AddOthers();
  // By device and process. Call once, at the end.
  std::map<std::pair<size_t, size_t>, MappedRings> Sum();

 private:
  struct Ring {
    size_t device = 0;
    uint64_t offset = 0;
    // Where an offset is not of the whole device: whose and where.
    size_t container = 0;
    uint64_t start = 0;
    bool without_objects = false;
    pid_t pid = 0;
    size_t process = 0;
    uint64_t bytes = 0;
  };

  // The rings of a process, their owner still open.
  absl::Status Read(pid_t pid, bool has_objects, std::vector<Ring>& rings);
  void Take(size_t process, std::vector<Ring> rings);
  // A number for each container, and one for all that is outside.
  size_t ContainerNumber(size_t process);

  const std::vector<Device>& devices_;
  const Processes& processes_;
  ProcessTable& table_;
  SourceReport& report_;
  std::vector<Ring> rings_;
  std::set<pid_t> added_;
  std::map<PodCgroup, size_t> containers_;
};

}  // namespace purser::node_view
