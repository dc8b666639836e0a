// SPDX-License-Identifier: Apache-2.0
//
// What an opened device can do, in the memory model's terms, and the GIDs of
// its ports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "queue_memory/queue_memory.h"
#include "rdma/handles.h"

namespace purser::rdma {

struct Capabilities {
  ibv_device_attr attr{};
  queue_memory::DeviceLimits
      limits;  // from attr; what verbs does not tell stays 0
};
absl::StatusOr<Capabilities> QueryCapabilities(Verbs& verbs,
                                               const Context& context);

enum class GidType { kInfiniband, kRoceV1, kRoceV2 };
struct Gid {
  ibv_gid gid{};
  int index = 0;
  GidType type = GidType::kInfiniband;
  bool ipv4_mapped = false;
};

// The GID to connect with, looked up now: indices move when addresses come and
// go. On Ethernet RoCE v2 before v1 and IPv4-mapped before others, then the
// lowest index; on InfiniBand index 0. The type is told by sysfs
// gid_attrs/types under `sysfs_root`. NotFound says what the port lacks (e.g.
// an IP address on its netdev).
absl::StatusOr<Gid> PreferredGid(Verbs& verbs, const Context& context,
                                 uint8_t port_num,
                                 const std::string& sysfs_root);

}  // namespace purser::rdma
