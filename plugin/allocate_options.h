// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace purser::plugin {

// Which devices a container's units are of, where the choice is free.
enum class Placement {
  kSpread,  // shares: of that with the most left. Devices: of many HCAs
  kPacked,  // shares: of that with the fewest that suffice. Devices: of few
};

// What a container is given with a pool's units, and how they are chosen.
struct AllocateOptions {
  Placement placement = Placement::kSpread;
  // Whether the kubelet is told the NUMA node of units where it is known.
  bool topology = true;
  // Nodes beside uverbs, where the device has them and can use them.
  bool umad = true;     // management datagrams: ibstat, perfquery
  bool issm = false;    // for a subnet manager; InfiniBand only
  bool rdma_cm = true;  // connection manager; not on EFA
  bool operator==(const AllocateOptions&) const = default;
};

}  // namespace purser::plugin
