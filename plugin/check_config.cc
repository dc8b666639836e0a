// SPDX-License-Identifier: Apache-2.0
#include "plugin/check_config.h"

#include <memory>
#include <vector>

#include "base/quantity.h"
#include "base/status_macros.h"
#include "plugin/inventory.h"
#include "plugin/make_resources.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

std::string DescribeResource(const Resource& resource,
                             const Snapshot& snapshot) {
  const Advertisement advertisement = resource.Advertise(snapshot);
  std::string line =
      fmt::format("{:<24} {:>10} units, {} allocatable\n", resource.name(),
                  base::FormatCount(advertisement.capacity()),
                  base::FormatCount(advertisement.allocatable()));
  if (auto pool = snapshot.pools.find(resource.name());
      pool != snapshot.pools.end()) {
    for (size_t index : pool->second) {
      line += fmt::format("    {}\n", snapshot.devices[index].sysfs.name);
    }
  }
  if (const std::string note = resource.Note(snapshot); !note.empty())
    line += fmt::format("    {}\n", note);
  return line;
}

std::string DescribeWarnings(const Config& config) {
  std::string text;
  if (config.form != ConfigForm::kNative)
    text += fmt::format("The file has {} form.\n", ConfigFormName(config.form));
  for (const std::string& warning : config.warnings)
    text += fmt::format("warning: {}\n", warning);
  return text;
}

std::string DescribeDevice(const Device& device) {
  const rdma::SysfsDevice& sysfs = device.sysfs;
  return fmt::format("{:<24} {} ({}){}{}\n", sysfs.name,
                     DeviceHealthName(device.health), PortSummary(sysfs),
                     device.reason.empty() ? "" : ": ", device.reason);
}

}  // namespace

absl::StatusOr<std::string> DescribeAdvertised(const Config& config) {
  PURSER_ASSIGN_OR_RETURN(
      const std::vector<std::unique_ptr<Resource>> resources,
      MakeResources(config));
  const rdma::Discovery discovery(config.sysfs_root, config.dev_root);
  QueuePairLimits limits(rdma::LibibverbsVerbs());
  Inventory inventory(discovery, config.dev_root, config.proc_root,
                      InventoryOptions(config), &limits);
  PURSER_RETURN_IF_ERROR(inventory.Scan());
  const std::shared_ptr<const Snapshot> snapshot = inventory.snapshot();
  PURSER_RETURN_IF_ERROR(CheckOverlaps(config.overlap, snapshot->overlaps));
  for (const std::unique_ptr<Resource>& resource : resources) {
    const absl::Status fits = resource->Fits(*snapshot);
    if (absl::IsInvalidArgument(fits)) return fits;
  }
  std::string text = "Would be advertised on this node now:\n";
  for (const std::unique_ptr<Resource>& resource : resources)
    text += DescribeResource(*resource, *snapshot);
  if (resources.empty()) text += "nothing\n";
  for (const Overlap& overlap : snapshot->overlaps) {
    text += fmt::format("{} is selected by {} and {}: {}\n", overlap.device,
                        overlap.first_pool, overlap.later_pool,
                        config.overlap == OverlapPolicy::kAllow
                            ? "both have it"
                            : "the first has it");
  }
  text += DescribeWarnings(config);
  text += fmt::format("RDMA devices under {}:\n", config.sysfs_root);
  for (const Device& device : snapshot->devices) text += DescribeDevice(device);
  if (snapshot->devices.empty()) text += "none\n";
  return text;
}

}  // namespace purser::plugin
