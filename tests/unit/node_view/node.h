// SPDX-License-Identifier: Apache-2.0
//
// A node as the node view sees it: the kernel's netlink, /proc, the kubelet and
// its log links, all fakes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "node_view/node_view.h"
#include "tests/fakes/fake_pod_resources.h"
#include "tests/fakes/fake_proc.h"
#include "tests/fakes/fake_rdma_netlink.h"
#include "tests/fakes/file_tree.h"

namespace purser::node_view {

class FakeNode {
 public:
  FakeNode() {
    proc.SetMemory(4 << 20);
    proc.SetVmallocinfo({});
    tree.Directory("containers");
    tree.Write("cgroup/kubepods/memory.max", "3221225472\n");  // of 4 GiB
  }

  void AddDevice(const std::string& name, queue_memory::Provider provider) {
    const std::string uverbs = "uverbs" + std::to_string(devices.size());
    devices.push_back({name, uverbs, provider, {.page_size = 4096}});
    kernel.AddDevice(name);
  }
  // A process in a container whose id is `digit` 64 times.
  void AddPodProcess(int pid, const std::string& pod, char digit) {
    const std::string id(64, digit);
    proc.AddProcess(pid, "app",
                    "0::/kubepods/pod1b4e28ba-2fa1-11d2-883f-00000000000" +
                        std::string(1, digit) + "/" + id + "\n");
    tree.Link("containers/" + pod + "_ns_app-" + id + ".log", "/none");
  }
  // A context, a protection domain and a completion queue.
  void AddContext(const std::string& device, uint32_t context, uint32_t pid,
                  uint32_t cqe = 16) {
    kernel.Add(
        device,
        {.kind = rdma::ResourceKind::kContext, .id = context, .pid = pid});
    kernel.Add(device, {.kind = rdma::ResourceKind::kProtectionDomain,
                        .id = context,
                        .pid = pid,
                        .context = context});
    kernel.Add(device, {.kind = rdma::ResourceKind::kCompletionQueue,
                        .id = context,
                        .pid = pid,
                        .context = context,
                        .cqe = cqe});
  }
  void AddQueuePair(const std::string& device, uint32_t qpn,
                    std::optional<uint32_t> pid, uint32_t protection_domain) {
    kernel.Add(device,
               {.id = qpn, .pid = pid, .protection_domain = protection_domain});
  }

  Options options() {
    return {.proc_root = proc.root(),
            .cgroup_root = tree.path("cgroup"),
            .container_log_dir = tree.path("containers"),
            .pod_resources_socket = tree.path("pod-resources/kubelet.sock")};
  }
  Surroundings surroundings() {
    return {.devices = [this]() -> absl::StatusOr<std::vector<Device>> {
              return devices;
            },
            .open_netlink = [this]()
                -> absl::StatusOr<std::unique_ptr<rdma::NetlinkTransport>> {
              if (!netlink_status.ok()) return netlink_status;
              return kernel.Open();
            },
            .is_ours =
                [](const std::string& resource) {
                  return resource.starts_with("rdma/");
                },
            .unit_bytes = QueueMemoryUnitBytes,
            .advertised_node_charged_bytes =
                [this] { return advertised_node_charged_bytes; }};
  }
  std::unique_ptr<NodeView> MakeView() {
    return std::make_unique<NodeView>(options(), surroundings());
  }

  fakes::FileTree tree;
  fakes::FakeProc proc{tree};
  fakes::FakeRdmaKernel kernel;
  fakes::FakePodResources kubelet{tree.path("pod-resources/kubelet.sock")};
  std::vector<Device> devices;
  absl::Status netlink_status;
  uint64_t advertised_node_charged_bytes = 0;
};

}  // namespace purser::node_view
