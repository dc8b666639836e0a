// SPDX-License-Identifier: Apache-2.0
#include "node_view/node_view.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/proc.h"
#include "node_view/kernel_rings.h"
#include "node_view/lines.h"
#include "node_view/reserved_memory.h"
#include "node_view/ring_scan.h"
#include "node_view/undeclared.h"

namespace purser::node_view {
namespace {

constexpr std::chrono::milliseconds kKubeletDeadline{500};
constexpr size_t kIdDigitsShown = 12;

// A holding of nothing, of the owner that a process belongs to.
Holding HoldingOf(const Device& device, const ProcessTable& processes,
                  size_t process, const ContainerNames& names) {
  Holding holding{.device = device.name};
  if (process < ProcessTable::kFirstProcess) {
    const bool of_kernel = process == ProcessTable::kKernel;
    holding.kind = of_kernel ? OwnerKind::kKernel : OwnerKind::kUnknown;
    holding.owner.container = of_kernel ? "kernel" : "unknown";
    return holding;
  }
  const std::optional<PodCgroup>& cgroup = processes[process].cgroup;
  if (!cgroup) {
    holding.kind = OwnerKind::kHost;
    holding.owner.container = "host";
    return holding;
  }
  holding.kind = OwnerKind::kContainer;
  const ContainerName* name = FindContainer(names, cgroup->container_id);
  holding.named = name != nullptr;
  holding.owner = holding.named
                      ? *name
                      : ContainerName{.pod = cgroup->pod_uid,
                                      .container = cgroup->container_id.substr(
                                          0, kIdDigitsShown)};
  return holding;
}

void AddTally(const Tally& tally, Holding& holding) {
  for (const auto& [type_and_state, count] : tally.queue_pairs)
    holding.queue_pairs[{QueuePairTypeName(type_and_state.first),
                         QueuePairStateName(type_and_state.second)}] += count;
  holding.completion_queues += tally.completion_queues;
  holding.shared_receive_queues += tally.shared_receive_queues;
  holding.bytes += tally.bytes;
}

// What is mapped of the device, in place of what was told of each object.
QueueBytes BytesByRings(const Device& device, const Tally& tally,
                        const MappedRings& mapped) {
  const uint64_t queue_pairs = tally.queue_pair_count();
  const uint64_t srqs = tally.shared_receive_queues;
  // With shared receive queues some queue pairs have one ring alone.
  const uint64_t least_rings =
      tally.completion_queues + srqs + (srqs == 0 ? 2 : 1) * queue_pairs;
  const Structs structs = StructsOf(device);
  QueueBytes bytes;
  bytes.container.Add(structs.queue_pair * queue_pairs +
                          structs.completion_queue * tally.completion_queues +
                          structs.shared_receive_queue * srqs,
                      true);
  if (mapped.count >= least_rings) {
    bytes.node.Add(mapped.kernel_bytes, true);
  } else {
    // It has given mappings up, or its queues change just now.
    bytes.node.Add(std::max(mapped.kernel_bytes, tally.bytes.node.total()),
                   false);
  }
  return bytes;
}

}  // namespace

// One reading, while it is put together. Indices are those of `devices` and of
// `processes`.
struct NodeView::Reading {
  explicit Reading(const Processes& all) : processes(all) {}

  View view;
  SourceReport report;
  ProcessTable processes;
  std::vector<Device> devices;
  std::vector<bool> listed;  // devices whose objects the kernel listed
  std::map<std::pair<size_t, size_t>, Tally> tallies;  // by device and process
  std::map<std::pair<size_t, size_t>, MappedRings> rings;
  std::set<size_t> unreadable;  // processes whose mappings may not be read
  bool all_rings_seen = false;
};

NodeView::NodeView(Options options, Surroundings surroundings)
    : options_(std::move(options)),
      surroundings_(std::move(surroundings)),
      processes_(options_.proc_root),
      pod_resources_(options_.pod_resources_socket) {}

View NodeView::Read(const std::stop_token& stop) {
  const auto begin = std::chrono::steady_clock::now();
  Reading reading(processes_);
  reading.view.read_at = std::chrono::system_clock::now();
  raw_sizes_.BeginReading();
  ReadObjects(reading, stop);
  ReadRings(reading);
  Settle(reading);
  ReadVmallocinfo(reading);
  MakeHoldings(reading);
  ReadAllocated(reading);
  ReadReserved(reading);
  raw_sizes_.EndReading();
  View view = std::move(reading.view);
  view.sources = reading.report.Take();
  view.took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  return view;
}

void NodeView::ReadObjects(Reading& reading, const std::stop_token& stop) {
  absl::StatusOr<std::vector<Device>> devices = surroundings_.devices();
  if (!devices.ok()) {
    reading.report.Without(kNetlink, devices.status());
    return;
  }
  reading.devices = *std::move(devices);
  reading.listed.resize(reading.devices.size());
  auto transport = surroundings_.open_netlink();
  if (!transport.ok()) {
    reading.report.Without(kNetlink, transport.status());
    return;
  }
  rdma::ResourceNetlink netlink(**transport);
  const auto known = netlink.Devices();
  if (!known.ok()) {
    reading.report.Without(kNetlink, known.status());
    return;
  }
  reading.report.Used(kNetlink);
  KernelObjects objects(netlink, reading.processes, raw_sizes_, reading.report);
  for (size_t i = 0; i < reading.devices.size() && !stop.stop_requested();
       ++i) {
    const auto found = std::find_if(
        known->begin(), known->end(), [&](const rdma::NetlinkDevice& device) {
          return device.name == reading.devices[i].name;
        });
    if (found == known->end()) continue;  // gone, or in another namespace
    auto tallies = objects.Read(reading.devices[i], found->index);
    if (!tallies.ok()) {
      reading.report.Without(kNetlink, tallies.status());
      return;  // what is left in the socket would be taken for an answer
    }
    reading.listed[i] = true;
    for (auto& [process, tally] : *tallies)
      reading.tallies[{i, process}] = std::move(tally);
  }
  reading.report.NotNeeded(kRawContext);
}

void NodeView::ReadRings(Reading& reading) {
  bool any = false, owner_missing = false;
  std::set<size_t> holders;
  for (size_t i = 0; i < reading.devices.size(); ++i) {
    if (!MapsItsRings(reading.devices[i].provider)) continue;
    any = true;
    owner_missing |= !reading.listed[i];
    for (const auto& [where, tally] : reading.tallies) {
      if (where.first != i || where.second == ProcessTable::kKernel) continue;
      owner_missing |= where.second == ProcessTable::kUnknown;
      if (where.second >= ProcessTable::kFirstProcess)
        holders.insert(where.second);
    }
  }
  if (!any) {
    reading.report.NotNeeded(kMappings);
    return;
  }
  RingScan scan(reading.devices, processes_, reading.processes, reading.report);
  for (const size_t holder : holders) {
    if (!scan.AddHolder(holder)) reading.unreadable.insert(holder);
  }
  // Somebody holds what no process was named for.
  if (owner_missing) reading.all_rings_seen = scan.AddOthers();
  reading.report.NotNeeded(kMappings);
  reading.rings = scan.Sum();
}

void NodeView::Settle(Reading& reading) {
  for (const auto& [where, mapped] : reading.rings) reading.tallies[where];
  for (auto& [where, tally] : reading.tallies) {
    const auto& [device_index, process] = where;
    const Device& device = reading.devices[device_index];
    if (!MapsItsRings(device.provider) || process == ProcessTable::kKernel ||
        reading.unreadable.contains(process))
      continue;
    if (process != ProcessTable::kUnknown) {
      tally.bytes = BytesByRings(device, tally, reading.rings[where]);
    } else if (reading.all_rings_seen) {
      // Whoever it is, its rings were found with its process.
      tally.bytes = {};
    }
  }
}

void NodeView::ReadVmallocinfo(Reading& reading) {
  std::map<queue_memory::Provider, KernelRingTotal>& totals =
      reading.view.kernel_rings;
  for (size_t i = 0; i < reading.devices.size(); ++i) {
    if (MapsItsRings(reading.devices[i].provider))
      totals[reading.devices[i].provider];
  }
  if (totals.empty()) {
    reading.report.NotNeeded(kVmallocinfo);
    return;
  }
  const absl::Status status = ForEachLineOfFile(
      options_.proc_root + "/vmallocinfo", [&](std::string_view line) {
        if (const auto area = ParseVmallocArea(line, options_.page_size))
          totals[area->provider].bytes += area->bytes;
      });
  if (!status.ok()) {
    reading.report.Without(kVmallocinfo, status);
    totals.clear();
    return;
  }
  reading.report.Used(kVmallocinfo);
  for (const auto& [where, tally] : reading.tallies) {
    const auto total = totals.find(reading.devices[where.first].provider);
    if (total != totals.end()) total->second.seen += tally.bytes.node.exact;
  }
}

void NodeView::MakeHoldings(Reading& reading) {
  ContainerNames names;
  if (auto read = ReadContainerNames(options_.container_log_dir); read.ok()) {
    names = *std::move(read);
    reading.report.Used(kContainerNames);
  } else {
    reading.report.Without(kContainerNames, read.status());
  }
  bool any_process = false, any_unknown = false;
  // By name: a container's former self may not be gone yet.
  std::map<std::tuple<std::string, OwnerKind, ContainerName>, Holding> holdings;
  for (const auto& [where, tally] : reading.tallies) {
    const auto& [device, process] = where;
    const Holding empty =
        HoldingOf(reading.devices[device], reading.processes, process, names);
    Holding& holding =
        holdings.try_emplace({empty.device, empty.kind, empty.owner}, empty)
            .first->second;
    AddTally(tally, holding);
    any_unknown |= process == ProcessTable::kUnknown;
    if (process < ProcessTable::kFirstProcess) continue;
    any_process = true;
    holding.processes.push_back(
        {reading.processes[process].pid, reading.processes[process].name});
  }
  for (auto& [key, holding] : holdings)
    reading.view.holdings.push_back(std::move(holding));
  if (any_unknown && !any_process) {
    reading.report.Without(
        kProcesses, "not_visible",
        "the kernel names no process of any queue: run in the host's pid "
        "namespace");
  } else {
    reading.report.Used(kProcesses);
  }
}

void NodeView::ReadAllocated(Reading& reading) {
  const auto response = pod_resources_.List(kKubeletDeadline);
  if (!response.ok()) {
    reading.report.Without(kPodResources, response.status());
    return;
  }
  reading.report.Used(kPodResources);
  View& view = reading.view;
  view.allocations = ReadAllocations(*response, surroundings_.is_ours);
  view.allocations_known = true;
  view.undeclared_bytes = UndeclaredBytes(view.holdings, view.allocations,
                                          surroundings_.unit_bytes);
}

void NodeView::ReadReserved(Reading& reading) {
  reading.view.advertised_node_charged_bytes =
      surroundings_.advertised_node_charged_bytes();
  const auto memory = base::ProcReader(options_.proc_root).Memory();
  if (!memory.ok()) {
    reading.report.Without(kReservedMemory, memory.status());
    return;
  }
  const uint64_t total = memory->total_bytes;
  absl::StatusOr<uint64_t> reserved;
  if (options_.allocatable_memory_bytes) {
    reserved = total - std::min(total, *options_.allocatable_memory_bytes);
  } else {
    reserved = ReservedByPodsCgroup(options_.cgroup_root, total);
  }
  if (!reserved.ok()) {
    reading.report.Without(kReservedMemory, reserved.status());
    return;
  }
  reading.report.Used(kReservedMemory);
  reading.view.reserved_memory_bytes = *reserved;
}

}  // namespace purser::node_view
