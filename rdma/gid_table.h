// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace purser::rdma {

// A port's GIDs as sysfs shows them; for rdma/discovery.
struct GidTable {
  std::map<int, std::string> gids;   // by index; without empty entries
  std::vector<std::string> netdevs;  // without repeats; InfiniBand names none
  // The one to connect with on Ethernet, as PreferredGid() chooses it: RoCE v2
  // before v1, IPv4-mapped before others, then the lowest index. -1: none.
  int preferred_index = -1;
};

// `port` is the port's directory.
GidTable ReadGidTable(const std::filesystem::path& port);

}  // namespace purser::rdma
