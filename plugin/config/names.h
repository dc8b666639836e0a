// SPDX-License-Identifier: Apache-2.0
//
// Names derived from a resource's name ("rdma/hca").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace purser::plugin {

inline constexpr std::string_view kDefaultResourcePrefix = "rdma";
inline constexpr std::string_view kQueueMemoryVariable =
    "PURSER_QUEUE_MEMORY_BYTES";
inline constexpr std::string_view kQueuePairsVariable = "PURSER_QUEUE_PAIRS";

// "rdma/wqe-mib"; where a unit is more than 1 MiB, "rdma/wqe-16mib": a name
// stands for the same amount on every node.
std::string QueueMemoryResourceName(uint32_t unit_mib);
// "rdma/qp", "rdma/qp-64".
std::string QueuePairResourceName(uint32_t unit);
// Whether it is one of the above, with whatever unit.
bool IsCapacityResource(std::string_view full_name);

// InvalidArgument says what Kubernetes demands: the prefix a DNS subdomain that
// is not one of Kubernetes' own, the name a label of at most 63 characters.
absl::Status CheckResourcePrefix(std::string_view prefix);
absl::Status CheckResourceName(std::string_view name);

// The variable that lists a pool's devices: ("rdma", "hca-fast") ->
// "PURSER_POOL_HCA_FAST_DEVICES", ("example.com", "hca") ->
// "PURSER_POOL_EXAMPLE_COM_HCA_DEVICES".
std::string PoolDevicesVariable(std::string_view prefix, std::string_view name);
// That with the GID to connect with on each: "PURSER_POOL_HCA_FAST_GID_INDEX".
std::string PoolGidIndexVariable(std::string_view prefix,
                                 std::string_view name);

// The SR-IOV plugin's variable that lists PCI addresses: ("intel.com", "vf-a")
// -> "PCIDEVICE_INTEL_COM_VF-A"; like that plugin it leaves a '-' as it is.
std::string SriovVariable(std::string_view prefix, std::string_view name);

}  // namespace purser::plugin
