// SPDX-License-Identifier: Apache-2.0
#include "plugin/selectors.h"

#include <gtest/gtest.h>

namespace purser::plugin {
namespace {

rdma::SysfsDevice Rxe() {
  rdma::SysfsDevice device;
  device.name = "rxe0";
  device.driver = "rdma_rxe";
  device.parent_netdev = "eth0";
  rdma::PortStatus port;
  port.port_num = 1;
  port.link_layer = rdma::LinkLayer::kEthernet;
  port.netdevs = {"eth0", "eth0.100"};
  device.ports = {port};
  return device;
}

rdma::SysfsDevice Mlx5() {
  rdma::SysfsDevice device;
  device.name = "mlx5_0";
  device.driver = "mlx5_core";
  device.vendor_id = "15b3";
  device.device_id = "1017";
  rdma::PortStatus port;
  port.port_num = 1;
  port.link_layer = rdma::LinkLayer::kInfiniband;
  port.netdevs = {"ib0"};
  device.ports = {port};
  return device;
}

struct Case {
  const char* what;
  Selectors selectors;
  bool takes_rxe, takes_mlx5;
};

TEST(Selectors, OrWithinAListAndBetweenLists) {
  const Case cases[] = {
      {"empty takes all", {}, true, true},
      {"name", {.devices = {"rxe0"}}, true, false},
      {"glob", {.devices = {"mlx5_*"}}, false, true},
      {"glob list", {.devices = {"mlx5_*", "rxe?"}}, true, true},
      {"name is matched whole", {.devices = {"rxe"}}, false, false},
      {"driver", {.drivers = {"rdma_rxe"}}, true, false},
      {"netdev", {.if_names = {"ib0"}}, false, true},
      {"parent netdev", {.if_names = {"eth0"}}, true, false},
      {"VLAN on the port", {.if_names = {"eth0.100"}}, true, false},
      {"link", {.link_types = {"infiniband"}}, false, true},
      {"both links", {.link_types = {"infiniband", "ether"}}, true, true},
      {"vendor", {.vendors = {"15b3"}}, false, true},
      {"device id", {.device_ids = {"1017", "1018"}}, false, true},
      {"and",
       {.drivers = {"mlx5_core"}, .link_types = {"ether"}},
       false,
       false},
      {"and", {.vendors = {"15b3"}, .device_ids = {"1017"}}, false, true},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Matches(c.selectors, Rxe()), c.takes_rxe) << c.what;
    EXPECT_EQ(Matches(c.selectors, Mlx5()), c.takes_mlx5) << c.what;
  }
}

}  // namespace
}  // namespace purser::plugin
