// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

// A port has up to 256 GIDs on hardware (1024 on soft-RoCE); those of its
// netdevs fill the table from below.
inline constexpr int kMostGidsRead = 256;

// `port` is the port's directory. Reads the first `at_least` entries, and goes
// on until several in a row are empty.
GidTable ReadGidTable(const std::filesystem::path& port,
                      int at_least = kMostGidsRead);
// How many entries the table has, empty ones included.
uint32_t GidTableLength(const std::filesystem::path& port);

}  // namespace purser::rdma
