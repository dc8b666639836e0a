// SPDX-License-Identifier: Apache-2.0
//
// Who was allotted what, as the kubelet has it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "node_view/container_names.h"
#include "podresources/v1/api.pb.h"

namespace purser::node_view {

struct Allocation {
  ContainerName holder;
  std::string resource;  // "rdma/hca"
  uint64_t units = 0;
};

// Of the resources that `counts` says yes to, by holder and resource.
std::vector<Allocation> ReadAllocations(
    const ::v1::ListPodResourcesResponse& response,
    const std::function<bool(const std::string& resource)>& counts);

// Bytes that one unit of a resource of queue memory stands for, by its name:
// "rdma/wqe-mib" 1 MiB, "rdma/wqe-16mib" 16 MiB; 0: another resource.
uint64_t QueueMemoryUnitBytes(std::string_view resource);

}  // namespace purser::node_view
