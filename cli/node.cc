// SPDX-License-Identifier: Apache-2.0
#include "cli/node.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "node_view/allocations.h"
#include "node_view/node_view.h"
#include "rdma/discovery.h"
#include "rdma/resource_netlink.h"

namespace purser::cli {
namespace {

constexpr std::chrono::milliseconds kNetlinkTimeout{2000};

node_view::NodeView MakeNodeView(const NodeCommand& command,
                                 const Environment& environment) {
  const auto page_size = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  node_view::Surroundings surroundings{
      .devices = [sysfs_root = command.sysfs_root, page_size]()
          -> absl::StatusOr<std::vector<node_view::Device>> {
        const auto found = rdma::Discovery(sysfs_root).Devices();
        if (!found.ok()) return found.status();
        std::vector<node_view::Device> devices;
        for (const rdma::SysfsDevice& device : *found)
          devices.push_back(node_view::DeviceOf(device, page_size));
        return devices;
      },
      .open_netlink = environment.open_netlink,
      .is_ours =
          [prefix =
               command.resource_prefix + "/"](const std::string& resource) {
            return prefix == "/" || resource.starts_with(prefix);
          },
      .unit_bytes = node_view::QueueMemoryUnitBytes,
      // The plugin's to say; here nothing is advertised.
      .advertised_node_charged_bytes = [] { return uint64_t{0}; }};
  if (surroundings.open_netlink == nullptr)
    surroundings.open_netlink = [] {
      return rdma::OpenRdmaNetlink(kNetlinkTimeout);
    };
  return {{.proc_root = command.proc_root,
           .cgroup_root = command.cgroup_root,
           .container_log_dir = command.container_log_dir,
           .pod_resources_socket = command.pod_resources_socket,
           .page_size = page_size},
          std::move(surroundings)};
}

void AddHolding(const node_view::Holding& from, v1::NodeView& message) {
  v1::NodeHolding& to = *message.add_holdings();
  to.set_device(from.device);
  to.set_namespace_(from.owner.namespace_name);
  to.set_pod(from.owner.pod);
  to.set_container(from.owner.container);
  for (const auto& [type_and_state, count] : from.queue_pairs) {
    v1::NodeQueuePairs& queue_pairs = *to.add_queue_pairs();
    queue_pairs.set_type(type_and_state.first);
    queue_pairs.set_state(type_and_state.second);
    queue_pairs.set_count(count);
  }
  to.set_completion_queues(from.completion_queues);
  to.set_shared_receive_queues(from.shared_receive_queues);
  to.mutable_container_charged()->set_exact(from.bytes.container.exact);
  to.mutable_container_charged()->set_estimated(from.bytes.container.estimated);
  to.mutable_node_charged()->set_exact(from.bytes.node.exact);
  to.mutable_node_charged()->set_estimated(from.bytes.node.estimated);
  for (const node_view::ProcessName& process : from.processes) {
    v1::NodeProcess& added = *to.add_processes();
    added.set_pid(process.pid);
    added.set_name(base::EscapeText(process.name));
  }
}

}  // namespace

v1::NodeView NodeViewMessage(const node_view::View& view) {
  v1::NodeView message;
  for (const node_view::Holding& holding : view.holdings)
    AddHolding(holding, message);
  for (const node_view::Allocation& from : view.allocations) {
    v1::NodeAllocation& to = *message.add_allocations();
    to.set_namespace_(from.holder.namespace_name);
    to.set_pod(from.holder.pod);
    to.set_container(from.holder.container);
    to.set_resource(from.resource);
    to.set_units(from.units);
  }
  if (view.undeclared_bytes)
    message.mutable_undeclared()->mutable_bytes()->insert(
        view.undeclared_bytes->begin(), view.undeclared_bytes->end());
  for (const auto& [provider, total] : view.kernel_rings) {
    v1::NodeKernelRings& rings = *message.add_kernel_rings();
    rings.set_driver(queue_memory::ProviderName(provider));
    rings.set_bytes(total.bytes);
    rings.set_unattributed_bytes(total.unattributed());
  }
  if (view.reserved_memory_bytes)
    message.set_reserved_memory_bytes(*view.reserved_memory_bytes);
  for (const node_view::SourceState& source : view.sources) {
    v1::NodeSource& to = *message.add_sources();
    to.set_name(source.name);
    to.set_used(source.reason.empty());
    to.set_reason(source.reason);
    to.set_detail(source.detail);
  }
  return message;
}

int Node(const NodeCommand& command, Environment& environment) {
  const node_view::View view = MakeNodeView(command, environment).Read();
  environment.out << (command.output == Output::kJson
                          ? Json(NodeViewMessage(view))
                          : RenderNode(view));
  return SaysWhoHolds(view) ? kOk : kFailure;
}

}  // namespace purser::cli
