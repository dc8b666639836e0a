// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include "base/status_macros.h"
#include "rdma/statistics.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {

planner::Machine ReadMachine(const std::filesystem::path& cgroup_root,
                             const std::filesystem::path& proc_root,
                             const char* ring_allocator) {
  const base::ProcReader proc(proc_root);
  return {.memlock = proc.Memlock(),
          .cgroup = base::CgroupReader(cgroup_root, proc_root).Memory(),
          .node = proc.Memory(),
          .huge_pages = proc.FindHugePages(),
          .page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE)),
          .ring_allocator = ring_allocator == nullptr ? "" : ring_allocator};
}

std::string KernelRelease() {
  utsname kernel{};
  return uname(&kernel) == 0 ? kernel.release : "";
}

absl::StatusOr<std::vector<planner::Counter>> ReadCounters(
    const std::filesystem::path& sysfs_root, const std::string& device) {
  PURSER_ASSIGN_OR_RETURN(const std::vector<rdma::Statistic> statistics,
                          rdma::DriverStatistics(sysfs_root, device));
  std::vector<planner::Counter> counters;
  for (const rdma::Statistic& each : statistics)
    counters.push_back({.name = each.port_num == 0
                                    ? fmt::format("{} {}", device, each.name)
                                    : fmt::format("{} port {} {}", device,
                                                  each.port_num, each.name),
                        .value = each.value});
  return counters;
}

}  // namespace purser::cli
