// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace purser::plugin {

// Something that tells that the node's devices may have changed. It says no
// more than that: what has changed is read from sysfs, whoever told. One
// thread.
class EventSource {
 public:
  virtual ~EventSource() = default;
  // Readable when there is an event.
  virtual int fd() const = 0;
  // Takes what is there, without waiting; how many of the events are about what
  // matters here. An error: nothing more will come.
  virtual absl::StatusOr<uint64_t> Take() = 0;
};

}  // namespace purser::plugin
