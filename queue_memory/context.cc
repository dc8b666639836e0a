// SPDX-License-Identifier: Apache-2.0
//
// All figures here are estimates: rounded up from the sizes of the structs that
// Linux 6.x allocates with GFP_KERNEL, which no cgroup is charged for, and of
// the contexts that adapters keep in host memory (mlx5: core/pagealloc.c
// alloc_system_page, uncharged as well). Nobody has measured them.
#include "queue_memory/context.h"

#include "queue_memory/arithmetic.h"

namespace purser::queue_memory {
namespace {

struct Estimate {
  uint32_t kernel;   // driver's and core's structs, uverbs object, tracking
  uint32_t adapter;  // its context and what belongs to it
};

constexpr Estimate EstimateOf(Object object) {
  switch (object) {
    case Object::kQueuePair:
      return {.kernel = 4096, .adapter = 1024};
    case Object::kCompletionQueue:
      return {.kernel = 1024, .adapter = 128};
    case Object::kSharedReceiveQueue:
      return {.kernel = 1024, .adapter = 128};
  }
  return {};
}

// The adapter's translation entry of a page of a pinned buffer, and the
// kernel's entry in the list of such pages.
constexpr uint32_t kBytesPerPinnedPage = 8 + 8;

}  // namespace

void AddContext(const ProviderTraits& traits, const DeviceLimits& limits,
                Object object, QueueMemory& memory) {
  if (memory.refusal || traits.provider == Provider::kUnknown) return;
  const Estimate estimate = EstimateOf(object);
  memory.context.node = estimate.kernel;
  if (!traits.has_adapter) return;
  const uint64_t pages =
      RoundUpToPages(memory.buffer_bytes, limits.page_size) >>
      std::countr_zero(limits.page_size);
  memory.context.node += estimate.adapter + pages * kBytesPerPinnedPage;
}

}  // namespace purser::queue_memory
