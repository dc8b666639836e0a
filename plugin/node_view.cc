// SPDX-License-Identifier: Apache-2.0
#include "plugin/node_view.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "node_view/allocations.h"
#include "node_view/device.h"
#include "node_view/node_view.h"
#include "queue_memory/registry.h"

namespace purser::plugin {
namespace {

// Of each answer of the kernel's, so that a stop is bounded.
constexpr std::chrono::milliseconds kNetlinkTimeout{1000};

absl::StatusOr<std::vector<node_view::Device>> DevicesOf(
    const Inventory& inventory, uint32_t page_size) {
  const std::shared_ptr<const Snapshot> snapshot = inventory.snapshot();
  if (snapshot == nullptr)
    return absl::UnavailableError("the node's devices are not known yet");
  std::vector<node_view::Device> devices;
  for (const Device& device : snapshot->devices)
    devices.push_back(node_view::DeviceOf(device.sysfs, page_size));
  return devices;
}

// Queue memory that is advertised on a node of which a device charges nobody
// for it.
uint64_t NodeChargedBytes(const Inventory& inventory,
                          const ServedResources& served) {
  const std::shared_ptr<const Snapshot> snapshot = inventory.snapshot();
  if (snapshot == nullptr ||
      std::none_of(
          snapshot->devices.begin(), snapshot->devices.end(),
          [](const Device& device) {
            return queue_memory::TraitsOf(device.sysfs.provider).charges_node;
          }))
    return 0;
  uint64_t bytes = 0;
  for (const auto& server : served.servers()) {
    if (const auto advertisement = server->streams().advertisement())
      bytes += node_view::QueueMemoryUnitBytes(server->resource_name()) *
               advertisement->capacity();
  }
  return bytes;
}

}  // namespace

std::unique_ptr<node_view::LiveView> MakeNodeView(
    const Config& config, const Inventory& inventory,
    const ServedResources& served) {
  const NodeViewConfig& from = config.node_view;
  const auto page_size = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  node_view::Options options{
      .proc_root = from.proc_root.empty() ? config.proc_root : from.proc_root,
      .cgroup_root = from.cgroup_root,
      .container_log_dir = from.container_log_dir,
      .pod_resources_socket = config.pod_resources_socket(),
      .page_size = page_size,
      .allocatable_memory_bytes = from.allocatable_memory_bytes};
  node_view::Surroundings surroundings{
      .devices = [&inventory,
                  page_size] { return DevicesOf(inventory, page_size); },
      .open_netlink = [] { return rdma::OpenRdmaNetlink(kNetlinkTimeout); },
      .is_ours =
          [&served](const std::string& resource) {
            return served.Find(resource).server != nullptr;
          },
      .unit_bytes = node_view::QueueMemoryUnitBytes,
      .advertised_node_charged_bytes =
          [&inventory, &served] {
            return NodeChargedBytes(inventory, served);
          }};
  return std::make_unique<node_view::LiveView>(
      std::make_unique<node_view::NodeView>(std::move(options),
                                            std::move(surroundings)));
}

}  // namespace purser::plugin
