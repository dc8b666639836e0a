// SPDX-License-Identifier: Apache-2.0
//
// How near a memory cgroup is to its limits, and how much its tasks, or the
// whole node's, wait for memory (PSI).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/cgroup.h"

namespace purser::base {

// Pressure stall information: the percentage of the last 10 s in which some, or
// all, tasks that were not idle waited for memory
// (Documentation/accounting/psi.rst).
struct MemoryStall {
  double some_avg10 = 0, full_avg10 = 0;
};

// Of <proc>/pressure/memory (the node) or a cgroup's memory.pressure. NotFound:
// a kernel without PSI. Unavailable: one booted with psi=0.
absl::StatusOr<MemoryStall> ReadMemoryStall(const std::filesystem::path& file);

struct CgroupUsage {
  // What the kubelet counts: current less inactive_file, which the kernel takes
  // back first.
  uint64_t working_set_bytes = 0;
  // The smaller of max and high; nullopt: neither is set.
  std::optional<uint64_t> limit_bytes;
  std::string limit_origin;  // the file that holds it
  // Counts, ever. A limit was reached; no memory could be found for a task, or
  // one was killed for it.
  uint64_t limit_hits = 0, out_of_memory = 0;
  std::optional<MemoryStall> stall;  // nullopt: not told by this kernel
};

// Of the cgroup that CgroupReader::Memory() found. Files that version 1 or an
// older kernel does not have count as nothing.
absl::StatusOr<CgroupUsage> ReadCgroupUsage(const CgroupMemory& memory);

}  // namespace purser::base
