// SPDX-License-Identifier: Apache-2.0
#include "rdma/gid_table.h"

#include <algorithm>

#include "rdma/sysfs.h"

namespace purser::rdma {
namespace {

// A port has up to 256 GIDs on hardware (1024 on soft-RoCE); those of its
// netdevs fill the table from below.
constexpr int kMaxGidsRead = 256;

// Smaller is better.
int Rank(const std::string& type, const std::string& gid) {
  return (type == "RoCE v2" ? 0 : 2) +
         (gid.starts_with("0000:0000:0000:0000:0000:ffff:") ? 0 : 1);
}

}  // namespace

GidTable ReadGidTable(const std::filesystem::path& port) {
  GidTable table;
  int best = 0;
  for (int index = 0; index < kMaxGidsRead; ++index) {
    const std::string number = std::to_string(index);
    const absl::StatusOr<std::string> gid =
        ReadAttribute(port / "gids" / number);
    if (!gid.ok() && IsGone(gid.status())) break;  // the table's end
    if (!gid.ok() || gid->find_first_not_of("0:") == std::string::npos)
      continue;
    table.gids[index] = *gid;
    const absl::StatusOr<std::string> netdev =
        ReadAttribute(port / "gid_attrs" / "ndevs" / number);
    if (!netdev.ok() || netdev->empty()) continue;  // InfiniBand
    if (std::find(table.netdevs.begin(), table.netdevs.end(), *netdev) ==
        table.netdevs.end())
      table.netdevs.push_back(*netdev);
    const absl::StatusOr<std::string> type =
        ReadAttribute(port / "gid_attrs" / "types" / number);
    if (!type.ok()) continue;
    const int rank = Rank(*type, *gid);
    if (table.preferred_index >= 0 && rank >= best) continue;
    table.preferred_index = index;
    best = rank;
  }
  return table;
}

}  // namespace purser::rdma
