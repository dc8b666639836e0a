// SPDX-License-Identifier: Apache-2.0
//
// What the kubelet answers who holds what, and what is reckoned with it.
#include <cstddef>
#include <cstdint>

#include "node_view/allocations.h"
#include "node_view/undeclared.h"
#include "tests/fuzz/fuzz.h"

namespace purser::node_view {
namespace {

void Fuzz(const uint8_t* data, size_t size) {
  ::v1::ListPodResourcesResponse response;
  if (!response.ParseFromArray(data, static_cast<int>(size))) return;
  const std::vector<Allocation> allocations = ReadAllocations(
      response,
      [](const std::string& resource) { return !resource.ends_with('x'); });
  std::vector<Holding> holdings;
  uint64_t held = 0;
  for (const Allocation& allocation : allocations) {
    Holding holding{.device = allocation.resource,
                    .kind = OwnerKind::kContainer,
                    .owner = allocation.holder,
                    .named = true};
    holding.bytes.node.exact = allocation.holder.pod.size() << 20;
    held += holding.bytes.total();
    holdings.push_back(std::move(holding));
  }
  const auto undeclared =
      UndeclaredBytes(holdings, allocations, QueueMemoryUnitBytes);
  fuzz::Require(undeclared.has_value());
  uint64_t sum = 0;
  for (const auto& [device, bytes] : *undeclared) sum += bytes;
  fuzz::Require(sum <= held);
}

}  // namespace
}  // namespace purser::node_view

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  purser::node_view::Fuzz(data, size);
  return 0;
}
