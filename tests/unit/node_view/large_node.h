// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/unit/node_view/node.h"

namespace purser::node_view {

// A node with 16 pods that hold `queue_pairs` on one device together, and a
// process beside them whose memory has many mappings of other things.
inline void FillNode(FakeNode& node, queue_memory::Provider provider,
                     uint32_t queue_pairs) {
  constexpr uint32_t kPods = 16;
  node.AddDevice("dev0", provider);
  uint32_t qpn = 16;
  uint64_t offset = 0;
  for (uint32_t pod = 0; pod < kPods; ++pod) {
    const auto pid = static_cast<int>(1000 + pod);
    node.AddPodProcess(pid, "pod-" + std::to_string(pod),
                       "0123456789abcdef"[pod]);
    node.AddContext("dev0", pod, 1000 + pod);
    std::vector<fakes::FakeRing> rings = {{.bytes = 4096, .offset = offset}};
    for (uint32_t i = 0; i < queue_pairs / kPods; ++i) {
      node.kernel.Add(
          "dev0",
          {.id = ++qpn,
           .pid = 1000 + pod,
           .protection_domain = pod,
           .remote_qpn = qpn + 1,
           .driver =
               provider == queue_memory::Provider::kBnxtRe
                   ? std::vector<
                         std::pair<std::string, uint32_t>>{{"sq_max_wqe", 385},
                                                           {"sq_max_sge", 4},
                                                           {"sq_wqe_size", 128},
                                                           {"rq_max_wqe", 257},
                                                           {"rq_max_sge", 1},
                                                           {"rq_wqe_size", 128}}
                   : std::vector<std::pair<std::string, uint32_t>>{}});
      for (int ring = 0; ring < 2; ++ring)
        rings.push_back({.bytes = 266240, .offset = offset += 0x100000});
    }
    offset += 0x100000;
    if (provider == queue_memory::Provider::kRxe)
      node.proc.SetRings(pid, rings);
    node.kubelet.Give("ns", "pod-" + std::to_string(pod), "app", "rdma/wqe-mib",
                      64);
  }
}

}  // namespace purser::node_view
