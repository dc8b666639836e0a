// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
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
  // By device and process.
  std::map<std::pair<size_t, size_t>, MappedRings> Sum() const;

 private:
  // Which ring of the node: two mappings of the same are equal.
  struct Ring {
    size_t device = 0;
    uint64_t offset = 0;
    // Where an offset is not of the whole device: whose and where.
    size_t container = 0;
    uint64_t start = 0;
    bool operator==(const Ring&) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Ring& ring) {
      return H::combine(std::move(hash), ring.device, ring.offset,
                        ring.container, ring.start);
    }
  };
  struct Holder {
    size_t process = 0;
    bool without_objects = false;
    pid_t pid = 0;
    uint64_t bytes = 0;
  };
  using Rings = std::vector<std::pair<Ring, Holder>>;

  // The rings of a process, its index still open.
  absl::Status Read(pid_t pid, bool has_objects, Rings& rings);
  void Take(size_t process, const Rings& rings);
  // A number for each container, and one for all that is outside.
  size_t ContainerNumber(size_t process);

  const std::vector<Device>& devices_;
  const Processes& processes_;
  ProcessTable& table_;
  SourceReport& report_;
  absl::flat_hash_map<Ring, Holder> holders_;
  std::set<pid_t> added_;
  std::map<PodCgroup, size_t> containers_;
};

}  // namespace purser::node_view
