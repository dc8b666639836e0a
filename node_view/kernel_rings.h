// SPDX-License-Identifier: Apache-2.0
//
// What drivers whose rings are kernel memory have allocated altogether: no
// process can hide from it, and it names none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "queue_memory/queue_memory.h"

namespace purser::node_view {

struct KernelRings {
  queue_memory::Provider provider = queue_memory::Provider::kUnknown;
  uint64_t bytes = 0;  // without the guard pages
};

// Of one line of /proc/vmallocinfo: "0xffff…-0xffff…  139264
// rxe_queue_init+0x9a/0x150 [rdma_rxe] pages=33 vmalloc N0=33". nullopt: an
// area that is no queue.
std::optional<KernelRings> ParseVmallocArea(std::string_view line,
                                            uint64_t page_size);

}  // namespace purser::node_view
