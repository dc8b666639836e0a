// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "planner/finding.h"
#include "planner/plan.h"

namespace purser::planner {

// Lines of the pre-flight: limits of one kind are one.
enum class Rule : uint8_t {
  kTransport,
  kDepth,
  kSge,
  kInline,
  kEntry,
  kRing,
  kCqe,
  kSharedReceives,
};
inline constexpr size_t kRuleCount = 8;

// What of a workload breaks each rule of the device that it was planned for:
// the first in words, and how many.
class BrokenRules {
 public:
  BrokenRules(const Workload& workload, const Plan& plan);

  // A failure, or ok with what is `within` the rule.
  Finding Tell(Rule rule, const std::string& within) const;

 private:
  // A rule is described once, since words cost more than the count.
  void Note(queue_memory::Limit limit, absl::FunctionRef<Refusal()> describe);

  struct Entry {
    std::string first;
    const char* error = "";  // that it ends in
    uint64_t count = 0;
  };
  std::array<Entry, kRuleCount> rules_;
};

}  // namespace purser::planner
