// SPDX-License-Identifier: Apache-2.0
#include "node_view/kernel_rings.h"

#include "node_view/lines.h"

namespace purser::node_view {
namespace {

using queue_memory::Provider;

// The functions that allocate rings: drivers/infiniband/sw/rxe/rxe_queue.c,
// drivers/infiniband/sw/siw/siw_verbs.c. The second is not tried.
Provider OwnerOf(std::string_view function) {
  if (function == "rxe_queue_init") return Provider::kRxe;
  if (function == "siw_create_qp" || function == "siw_create_cq" ||
      function == "siw_create_srq")
    return Provider::kSiw;
  return Provider::kUnknown;
}

}  // namespace

std::optional<KernelRings> ParseVmallocArea(std::string_view line,
                                            uint64_t page_size) {
  TakeWord(&line);  // addresses; zeros without CAP_SYSLOG
  const std::string_view size = TakeWord(&line);
  std::string_view function = TakeWord(&line);
  function = function.substr(0, function.find('+'));
  KernelRings rings{.provider = OwnerOf(function)};
  if (rings.provider == Provider::kUnknown ||
      !ParseNumber(size, 10, &rings.bytes) || rings.bytes < page_size)
    return std::nullopt;
  rings.bytes -= page_size;
  return rings;
}

}  // namespace purser::node_view
