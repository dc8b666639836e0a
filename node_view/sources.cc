// SPDX-License-Identifier: Apache-2.0
#include "node_view/sources.h"

#include <algorithm>
#include <utility>

namespace purser::node_view {
namespace {

constexpr const char* kNotRead = "not_read";

// As a label.
const char* ReasonOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
      return "not_permitted";
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnimplemented:
      return "absent";
    default:
      return "failed";
  }
}

}  // namespace

SourceReport::SourceReport() {
  for (const char* source :
       {kNetlink, kProcesses, kMappings, kVmallocinfo, kRawContext,
        kContainerNames, kPodResources, kReservedMemory})
    states_.push_back({source, kNotRead, "what it adds to could not be read"});
}

SourceState& SourceReport::StateOf(const char* source) {
  return *std::find_if(
      states_.begin(), states_.end(),
      [source](const SourceState& state) { return state.name == source; });
}

void SourceReport::Used(const char* source) {
  SourceState& state = StateOf(source);
  if (state.reason == kNotRead) state = {state.name, "", ""};
}

void SourceReport::NotNeeded(const char* source) {
  SourceState& state = StateOf(source);
  if (state.reason == kNotRead) state = {state.name, "not_needed", ""};
}

void SourceReport::Without(const char* source, const absl::Status& why) {
  Without(source, ReasonOf(why), std::string(why.message()));
}

void SourceReport::Without(const char* source, const char* reason,
                           std::string detail) {
  SourceState& state = StateOf(source);
  if (!state.reason.empty() && state.reason != kNotRead) return;
  state.reason = reason;
  state.detail = std::move(detail);
}

}  // namespace purser::node_view
