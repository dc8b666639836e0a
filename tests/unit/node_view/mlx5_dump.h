// SPDX-License-Identifier: Apache-2.0
//
// mlx5's raw dump of a queue pair, made as mlx5_ifc.h has it: the segments that
// the firmware puts around the context, and in the context what is read of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purser::node_view {

inline constexpr uint32_t kDumpedQpn = 0x4a, kDumpedRemoteQpn = 0x4b;

struct Mlx5DumpFields {
  uint32_t log_rq_size = 0, log_rq_stride = 0, log_sq_size = 0;
  bool no_sq = false;
  uint32_t pd = 7;
  size_t context_offset = 24;  // within the segment's payload
};

inline std::vector<std::byte> Mlx5Dump(Mlx5DumpFields fields,
                                       uint32_t qpn = kDumpedQpn) {
  std::vector<uint32_t> dwords = {
      // Info segment.
      4u << 16 | 0xfffb, 1, 2, 3,
      // Command segment: it names the queue pair, too.
      5u << 16 | 0xfffe, 0x1000u << 16, qpn, 0, 1u << 16};
  const size_t context_dwords = 64;
  const size_t length = 4 + fields.context_offset / 4 + context_dwords;
  dwords.push_back(static_cast<uint32_t>(length) << 16 | 0x1000);
  dwords.insert(dwords.end(), {0, qpn, 0});
  dwords.resize(dwords.size() + fields.context_offset / 4);
  const size_t context = dwords.size();
  dwords.resize(context + context_dwords);
  dwords[context + 0] = 3u << 28 | 3u << 11;  // RTS, RC, migrated
  dwords[context + 1] = fields.pd;
  dwords[context + 2] =
      5u << 29 | fields.log_rq_size << 19 | fields.log_rq_stride << 16 |
      (fields.no_sq ? 1u << 15 : 0) | fields.log_sq_size << 11;
  dwords[context + 3] = 9;  // UAR page
  dwords[context + 5] = kDumpedRemoteQpn;
  dwords.push_back(1u << 16 | 0xfffa);  // terminate
  std::vector<std::byte> bytes;
  for (const uint32_t dword : dwords)
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<std::byte>(dword >> shift));
  return bytes;
}

}  // namespace purser::node_view
