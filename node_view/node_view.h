// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "node_view/device.h"
#include "node_view/kernel_objects.h"
#include "node_view/pod_resources_client.h"
#include "node_view/processes.h"
#include "node_view/sources.h"
#include "node_view/view.h"
#include "rdma/resource_netlink.h"

namespace purser::node_view {

struct Options {
  std::string proc_root = "/proc";             // of the host's pid namespace
  std::string cgroup_root = "/sys/fs/cgroup";  // the host's
  std::string container_log_dir = "/var/log/containers";
  std::string pod_resources_socket =
      "/var/lib/kubelet/pod-resources/kubelet.sock";
  uint32_t page_size = 4096;
  // The node's allocatable memory where somebody says it; else it is read from
  // the cgroup of all pods.
  std::optional<uint64_t> allocatable_memory_bytes;
};

// What the view asks of its owner, at each reading.
struct Surroundings {
  std::function<absl::StatusOr<std::vector<Device>>()> devices;
  std::function<absl::StatusOr<std::unique_ptr<rdma::NetlinkTransport>>()>
      open_netlink;
  // Whether a resource is ours, and the bytes that a unit of it stands for.
  std::function<bool(const std::string& resource)> is_ours;
  std::function<uint64_t(const std::string& resource)> unit_bytes;
  // Advertised queue memory that no pod's limit covers.
  std::function<uint64_t()> advertised_node_charged_bytes;
};

// Reads who holds which RDMA queues on this node, from the kernel and the
// kubelet alone. Each source is used where it may be; what cannot be is said in
// the view. One thread; keeps only the sizes that it had to ask for one by one.
class NodeView {
 public:
  NodeView(Options options, Surroundings surroundings);

  // Ends soon, with what it has, once a stop is asked for.
  View Read(const std::stop_token& stop = {});

 private:
  struct Reading;

  void ReadObjects(Reading& reading, const std::stop_token& stop);
  void ReadRings(Reading& reading);
  void Settle(Reading& reading);
  void ReadVmallocinfo(Reading& reading);
  void ReadAllocated(Reading& reading);
  void ReadReserved(Reading& reading);
  void MakeHoldings(Reading& reading);

  const Options options_;
  const Surroundings surroundings_;
  const Processes processes_;
  PodResourcesClient pod_resources_;
  RawSizes raw_sizes_;
};

}  // namespace purser::node_view
