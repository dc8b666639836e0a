// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "node_view/view.h"

namespace purser::node_view {

// Names of the sources, as labels; docs/node-view.md has what each needs.
inline constexpr const char* kNetlink = "netlink";
inline constexpr const char* kProcesses = "processes";
inline constexpr const char* kMappings = "mappings";
inline constexpr const char* kVmallocinfo = "vmallocinfo";
inline constexpr const char* kRawContext = "raw_context";
inline constexpr const char* kContainerNames = "container_names";
inline constexpr const char* kPodResources = "pod_resources";
inline constexpr const char* kReservedMemory = "reserved_memory";

// How each source fared in one reading: the first fault counts.
class SourceReport {
 public:
  SourceReport();
  void Used(const char* source);
  void NotNeeded(const char* source);
  void Without(const char* source, const absl::Status& why);
  void Without(const char* source, const char* reason, std::string detail);
  std::vector<SourceState> Take() { return std::move(states_); }

 private:
  SourceState& StateOf(const char* source);

  std::vector<SourceState> states_;  // in the order of the names above
};

}  // namespace purser::node_view
