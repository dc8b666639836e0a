// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rdma/discovery.h"

namespace purser::plugin {

// Which RDMA devices a pool takes: OR within a list, AND between the lists, an
// empty list takes all. Named as the shared RDMA plugin names them, where the
// meaning is equal; `devices` are RDMA device names.
struct Selectors {
  std::vector<std::string> devices;  // globs: "mlx5_*", "rxe0"
  std::vector<std::string> drivers;  // "mlx5_core", "rdma_rxe"
  std::vector<std::string> if_names;
  std::vector<std::string> link_types;  // "ether", "infiniband"
  std::vector<std::string> vendors;     // "15b3"
  std::vector<std::string> device_ids;  // "1017"
};

bool Matches(const Selectors& selectors, const rdma::SysfsDevice& device);

// "ether", "infiniband", as ip-link shows them; "" unknown.
std::string LinkType(rdma::LinkLayer link_layer);

}  // namespace purser::plugin
