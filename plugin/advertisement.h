// SPDX-License-Identifier: Apache-2.0
//
// What one resource tells the kubelet: its units, by id, and their health. Ids
// are the decimal numbers from 0: short, and the same after every restart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace purser::plugin {

// Ids first, first + 1, … that share everything but the id. Ranges, not one
// object an id: queue memory has a hundred thousand of them.
struct UnitRange {
  uint32_t first = 0;
  uint32_t count = 0;
  bool healthy = true;
  std::string reason;  // why not healthy; not sent to the kubelet
  bool operator==(const UnitRange&) const = default;
};

struct Advertisement {
  std::vector<UnitRange> ranges;  // by first, without overlap
  uint32_t capacity() const;      // all units
  uint32_t allocatable() const;   // healthy units
  bool operator==(const Advertisement&) const = default;
};

// The wire form of v1beta1.ListAndWatchResponse.
std::string SerializeListAndWatch(const Advertisement& advertisement);

// OK if all ids may be handed to a container. InvalidArgument: no id at all, an
// id twice, or one that was never advertised; FailedPrecondition: an unhealthy
// one, with its reason.
absl::Status CheckUnits(const Advertisement& advertisement,
                        std::span<const std::string> ids);

// The kubelet's gRPC client takes no message above this (kubelet, devicemanager
// client: gRPC's default). A larger ListAndWatch message leaves the resource at
// 0, with a line in the kubelet's log alone.
inline constexpr size_t kKubeletMaxMessageBytes = 4 << 20;

// Bytes of the largest message that units 0 … count - 1 can make: all of them
// unhealthy, which is the longer word.
size_t LargestMessageBytes(uint32_t count);
// The largest count whose message the kubelet takes in any state of health.
uint32_t LargestUnitCount();

}  // namespace purser::plugin
