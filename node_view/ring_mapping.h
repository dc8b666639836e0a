// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace purser::node_view {

// A piece of an RDMA device's character device that a process has mapped. Of a
// driver whose rings are kernel memory (soft-RoCE, soft-iWARP) each is one
// ring; of others they are doorbell pages.
struct RingMapping {
  uint64_t start = 0, end = 0;  // addresses in the process
  uint64_t offset = 0;          // which ring
  std::string_view uverbs;      // "uverbs0"
  uint64_t bytes() const { return end - start; }
};

// Of one line of /proc/PID/maps:
// "7f2b34a00000-7f2b34e01000 rw-s 00003000 00:06 211 /dev/infiniband/uverbs0".
// nullopt: of something else. The path is as the process sees it, so that one
// who may make device nodes can hide a mapping under another name; the total in
// vmallocinfo (kernel_rings.h) then shows that there is one.
std::optional<RingMapping> ParseRingMapping(std::string_view line);

}  // namespace purser::node_view
