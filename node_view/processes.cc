// SPDX-License-Identifier: Apache-2.0
#include "node_view/processes.h"

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "node_view/lines.h"
#include "spdlog/fmt/fmt.h"

namespace purser::node_view {

Processes::Processes(std::filesystem::path proc_root)
    : proc_root_(std::move(proc_root)) {}

std::string Processes::PathOf(pid_t pid, const char* file) const {
  return fmt::format("{}/{}/{}", proc_root_.string(), pid, file);
}

absl::StatusOr<Process> Processes::Describe(pid_t pid) const {
  Process process;
  const absl::Status status = ForEachLineOfFile(
      PathOf(pid, "status"), [&process](std::string_view line) {
        constexpr std::string_view kName = "Name:", kTgid = "Tgid:";
        std::string_view rest =
            line.substr(std::min(line.find(':') + 1, line.size()));
        uint64_t number = 0;
        if (line.starts_with(kName)) {
          process.name = rest.substr(std::min<size_t>(1, rest.size()));
        } else if (line.starts_with(kTgid) &&
                   ParseNumber(TakeWord(&rest), 10, &number)) {
          process.pid = static_cast<pid_t>(number);
        }
      });
  PURSER_RETURN_IF_ERROR(status);
  if (process.pid <= 0)
    return absl::DataLossError(fmt::format(
        "{} has no Tgid; mount the kernel's own /proc", PathOf(pid, "status")));
  std::string cgroup;
  PURSER_RETURN_IF_ERROR(ForEachLineOfFile(
      PathOf(pid, "cgroup"), [&cgroup](std::string_view line) {
        cgroup.append(line).push_back('\n');
      }));
  process.cgroup = ParsePodCgroup(cgroup);
  return process;
}

absl::Status Processes::ForEachRing(
    pid_t pid, absl::FunctionRef<void(const RingMapping&)> visit) const {
  return ForEachLineOfFile(PathOf(pid, "maps"), [visit](std::string_view line) {
    if (const std::optional<RingMapping> ring = ParseRingMapping(line))
      visit(*ring);
  });
}

absl::StatusOr<std::vector<pid_t>> Processes::All() const {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(
      opendir(proc_root_.c_str()), closedir);
  if (directory == nullptr)
    return absl::ErrnoToStatus(errno, "list " + proc_root_.string());
  std::vector<pid_t> pids;
  while (const dirent* entry = readdir(directory.get())) {
    uint64_t pid = 0;
    if (ParseNumber(entry->d_name, 10, &pid) && pid <= INT32_MAX)
      pids.push_back(static_cast<pid_t>(pid));
  }
  return pids;
}

}  // namespace purser::node_view
