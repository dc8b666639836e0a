// SPDX-License-Identifier: Apache-2.0
//
// Names derived from a resource's name ("rdma/hca").
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace purser::plugin {

inline constexpr std::string_view kDefaultResourcePrefix = "rdma";
inline constexpr std::string_view kQueueMemoryResource = "rdma/wqe-mib";
inline constexpr std::string_view kQueueMemoryVariable =
    "PURSER_QUEUE_MEMORY_BYTES";

// InvalidArgument says what Kubernetes demands: the prefix a DNS subdomain that
// is not one of Kubernetes' own, the name a label of at most 63 characters.
absl::Status CheckResourcePrefix(std::string_view prefix);
absl::Status CheckResourceName(std::string_view name);

// "rdma/hca" -> "purser-rdma_hca.sock". Distinct for distinct resources: a
// prefix has no underscore.
std::string SocketName(std::string_view full_name);

// The variable that lists a pool's devices: ("rdma", "hca-fast") ->
// "PURSER_POOL_HCA_FAST_DEVICES", ("example.com", "hca") ->
// "PURSER_POOL_EXAMPLE_COM_HCA_DEVICES".
std::string PoolDevicesVariable(std::string_view prefix, std::string_view name);

}  // namespace purser::plugin
