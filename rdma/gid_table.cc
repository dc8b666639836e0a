// SPDX-License-Identifier: Apache-2.0
#include "rdma/gid_table.h"

#include <unistd.h>

#include <algorithm>

#include "rdma/sysfs.h"

namespace purser::rdma {
namespace {

// The kernel puts a new GID into the first empty entry, but where addresses
// went there are gaps.
constexpr int kGap = 16;
// Of a port's properties: 16 bits.
constexpr uint32_t kLongestTable = 1 << 16;

// Smaller is better.
int Rank(const std::string& type, const std::string& gid) {
  return (type == "RoCE v2" ? 0 : 2) +
         (gid.starts_with("0000:0000:0000:0000:0000:ffff:") ? 0 : 1);
}

}  // namespace

GidTable ReadGidTable(const std::filesystem::path& port, int at_least) {
  GidTable table;
  int best = 0;
  int last = -1;
  for (int index = 0;
       index < kMostGidsRead && (index < at_least || index <= last + kGap);
       ++index) {
    const std::string number = std::to_string(index);
    const absl::StatusOr<std::string> gid =
        ReadAttribute(port / "gids" / number);
    if (!gid.ok() && IsGone(gid.status())) break;  // the table's end
    if (!gid.ok() || gid->find_first_not_of("0:") == std::string::npos)
      continue;
    last = index;
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

// Entries are numbered without a gap: found by halving, since to list all of
// soft-RoCE's takes longer than everything else about a port.
uint32_t GidTableLength(const std::filesystem::path& port) {
  auto has = [gids = port / "gids"](uint32_t index) {
    return access((gids / std::to_string(index)).c_str(), F_OK) == 0;
  };
  uint32_t above = 1;
  while (above < kLongestTable && has(above - 1)) above *= 2;
  uint32_t first_absent = 0;
  for (uint32_t step = above; step > 0; step /= 2)
    if (has(first_absent + step - 1)) first_absent += step;
  return first_absent;
}

}  // namespace purser::rdma
