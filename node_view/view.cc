// SPDX-License-Identifier: Apache-2.0
#include "node_view/view.h"

namespace purser::node_view {

uint64_t Holding::queue_pair_count() const {
  uint64_t count = 0;
  for (const auto& [type_and_state, of_those] : queue_pairs) count += of_those;
  return count;
}

uint64_t View::unreserved_bytes() const {
  if (!reserved_memory_bytes ||
      advertised_node_charged_bytes <= *reserved_memory_bytes)
    return 0;
  return advertised_node_charged_bytes - *reserved_memory_bytes;
}

}  // namespace purser::node_view
