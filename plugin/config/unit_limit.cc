// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/unit_limit.h"

#include <algorithm>

namespace purser::plugin {

size_t LargestMessageBytes(uint32_t count) {
  // Each unit: tag and length of the Device, then tag, length and text of id
  // and health. All lengths are below 128: one byte each.
  size_t bytes = 0;
  uint64_t first = 0, next = 10;
  for (size_t digits = 1; first < count; ++digits) {
    const uint64_t units = std::min<uint64_t>(count, next) - first;
    bytes += units * (2 + 2 + digits + 2 + kUnhealthyWord.size());
    first = next;
    next *= 10;
  }
  return bytes;
}

uint32_t LargestUnitCount() {
  uint32_t fits = 0, too_many = kKubeletMaxMessageBytes;
  while (too_many - fits > 1) {
    const uint32_t middle = fits + (too_many - fits) / 2;
    (LargestMessageBytes(middle) <= kKubeletMaxMessageBytes ? fits : too_many) =
        middle;
  }
  return fits;
}

}  // namespace purser::plugin
