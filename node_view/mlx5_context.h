// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "rdma/resource_messages.h"

namespace purser::node_view {

// The rings of a ConnectX queue pair, as the device itself has them.
struct Mlx5Rings {
  uint64_t send_bytes = 0;
  uint64_t receive_bytes = 0;
  uint32_t receive_stride = 0;  // bytes; 0: no receive ring
};

// From mlx5's raw dump of the queue pair `local_qpn`: segments, each headed by
// its length in dwords and its type, one of which holds the queue pair context
// (Linux include/linux/mlx5/mlx5_ifc.h: resource_dump_*_segment, query_qp_out,
// qpc). Not tried on a device: what does not agree in queue pair number,
// transport and peer with what the kernel says of the queue pair is nullopt.
std::optional<Mlx5Rings> ParseMlx5QueuePair(
    rdma::Bytes raw, const rdma::ResourceRecord& queue_pair);

}  // namespace purser::node_view
