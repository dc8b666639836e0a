// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace purser::plugin {

// Of what one unit of a pool is a share.
enum class Sharing {
  kPool,    // all devices of the pool; rdma_hca_max units in all
  kDevice,  // one of them; rdma_hca_max units of each
};

// Which device a container's shares come from where the choice is free.
enum class Placement {
  kSpread,  // the one with the most shares left
  kPacked,  // the one with the fewest that suffice
};

// What a container is given with a pool's units, and how they are chosen.
struct AllocateOptions {
  Sharing sharing = Sharing::kPool;
  Placement placement = Placement::kSpread;
  // Whether the kubelet is told the NUMA node of units where it is known.
  bool topology = true;
  // Nodes beside uverbs, where the device has them and can use them.
  bool umad = true;     // management datagrams: ibstat, perfquery
  bool issm = true;     // for a subnet manager; InfiniBand only
  bool rdma_cm = true;  // connection manager; not on EFA
  // Device nodes by CDI, not by the device plugin API.
  bool cdi = false;
};

}  // namespace purser::plugin
