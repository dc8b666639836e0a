// SPDX-License-Identifier: Apache-2.0
#include "rdma/statistics.h"

#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "rdma/sysfs.h"
#include "spdlog/fmt/fmt.h"

namespace purser::rdma {
namespace {

// A setting among the counters: how long, in ms, each read is kept.
constexpr char kLifespan[] = "lifespan";

absl::Status Read(const std::filesystem::path& directory, int port_num,
                  std::vector<Statistic>* statistics) {
  const auto names = ListDirectory(directory);
  if (!names.ok())
    return IsGone(names.status()) ? absl::OkStatus() : names.status();
  for (const std::string& name : *names) {
    if (name == kLifespan) continue;
    const auto text = ReadAttribute(directory / name);
    Statistic statistic{.port_num = port_num, .name = name};
    if (text.ok() && absl::SimpleAtoi(*text, &statistic.value))
      statistics->push_back(std::move(statistic));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Statistic>> DriverStatistics(
    const std::filesystem::path& sysfs_root, const std::string& device) {
  const std::filesystem::path root =
      sysfs_root / "class" / "infiniband" / device;
  const auto ports = ListDirectory(root / "ports");
  if (!ports.ok() && IsGone(ports.status()))
    return absl::NotFoundError(
        fmt::format("there is no {}, so no device {} on this machine",
                    root.string(), device));
  PURSER_RETURN_IF_ERROR(ports.status());
  std::vector<Statistic> statistics;
  PURSER_RETURN_IF_ERROR(Read(root / "hw_counters", 0, &statistics));
  for (const std::string& port : *ports) {
    int port_num = 0;
    if (!absl::SimpleAtoi(port, &port_num)) continue;
    PURSER_RETURN_IF_ERROR(
        Read(root / "ports" / port / "hw_counters", port_num, &statistics));
  }
  return statistics;
}

}  // namespace purser::rdma
