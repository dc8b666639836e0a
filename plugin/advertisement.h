// SPDX-License-Identifier: Apache-2.0
//
// What one resource tells the kubelet: its units, by id, and their health. Ids
// are the same after every restart: the decimal numbers from 0, which are
// short; where a unit is of one device, where that is on the bus.
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
  std::string prefix;  // of each id
  uint32_t first = 0;
  uint32_t count = 0;
  bool healthy = true;
  std::string reason;  // why not healthy; not sent to the kubelet
  int numa_node = -1;  // -1: the kubelet is told none
  bool operator==(const UnitRange&) const = default;
};

// A unit that is one device.
struct NamedUnit {
  std::string id;  // "0000:3b:00.2"
  bool healthy = true;
  std::string reason;
  int numa_node = -1;
  bool operator==(const NamedUnit&) const = default;
};

struct Advertisement {
  std::vector<UnitRange> ranges;  // by first, without overlap
  std::vector<NamedUnit> named;   // no id is a number
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

}  // namespace purser::plugin
