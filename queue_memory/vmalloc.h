// SPDX-License-Identifier: Apache-2.0
//
// What Linux's vmalloc costs beside the area itself: mm/vmalloc.c
// __vmalloc_area_node. For rings that the kernel allocates by vmalloc_user; the
// node view reckons with it, too.
#pragma once

#include "queue_memory/arithmetic.h"

namespace purser::queue_memory {

// The array of an area's pages is a vmalloc area itself when it does not fit
// one page, and then has an array of its own. Below that it is a small kmalloc,
// which is not counted.
constexpr uint64_t PageArrayBytes(uint64_t area_bytes, uint32_t page_size) {
  constexpr uint32_t kPagePointer = 8;
  uint64_t sum = 0;
  uint64_t array = area_bytes / page_size * kPagePointer;
  while (array > page_size) {
    const uint64_t area = RoundUpToPages(array, page_size);
    sum += area;
    array = area / page_size * kPagePointer;
  }
  return sum;
}

}  // namespace purser::queue_memory
