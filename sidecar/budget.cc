// SPDX-License-Identifier: Apache-2.0
#include "sidecar/budget.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "absl/strings/str_join.h"
#include "base/logging.h"
#include "base/quantity.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr uint64_t kMiB = 1 << 20;

constexpr std::string_view kWaysToGive =
    "request rdma/wqe-mib in the resources of the sidecar's container "
    "(resources: {limits: {rdma/wqe-mib: 64}} for 64 MiB; the device plugin "
    "then sets PURSER_QUEUE_MEMORY_BYTES), or "
    "start the sidecar with --budget, e.g. --budget 64Mi, or set budget: 64Mi "
    "in its config file";

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  auto [parsed_to, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || parsed_to != end) return std::nullopt;
  return number;
}

// "64 MiB (67,108,864 bytes)".
std::string Both(uint64_t bytes) {
  return fmt::format("{} ({} bytes)", base::FormatBytes(bytes),
                     base::FormatCount(bytes));
}

std::string InUnits(uint64_t bytes) {
  if (bytes % kMiB != 0) return "";
  return fmt::format(", {} units of rdma/wqe-mib",
                     base::FormatCount(bytes / kMiB));
}

std::string FractionName(double fraction) {
  return fraction == 0.5 ? "half" : fmt::format("{:.4g}", fraction);
}

const Bound* Smallest(const std::vector<Bound>& bounds, bool container_only) {
  const Bound* smallest = nullptr;
  for (const Bound& bound : bounds) {
    if (bound.container_only != container_only) continue;
    if (smallest == nullptr || bound.limit_bytes < smallest->limit_bytes)
      smallest = &bound;
  }
  return smallest;
}

// What the sources said, source by source.
struct Findings {
  std::vector<Bound> bounds;
  std::optional<QueuePairBound> queue_pairs;
  std::vector<std::string> faults;  // figures that were given and are wrong
  std::vector<std::string> gaps;    // sources that could not be read
  std::vector<std::string> absent;  // sources that gave nothing, for messages
};

void FindExplicit(const BudgetInputs& inputs, Findings& findings) {
  if (!inputs.explicit_bytes.has_value()) {
    findings.absent.push_back("--budget: not given");
    return;
  }
  if (*inputs.explicit_bytes == 0) {
    findings.faults.push_back(fmt::format(
        "{} is 0 bytes, in which no queue pair fits: give a size such as 64Mi, "
        "or leave it out so that the other sources decide",
        inputs.explicit_origin));
    return;
  }
  findings.bounds.push_back({.source = BudgetSource::kExplicit,
                             .limit_bytes = *inputs.explicit_bytes,
                             .origin = inputs.explicit_origin});
}

void FindPlugin(const BudgetInputs& inputs, Findings& findings) {
  if (!inputs.plugin_bytes.has_value()) {
    findings.absent.push_back("PURSER_QUEUE_MEMORY_BYTES: not set");
    return;
  }
  const std::optional<uint64_t> bytes = ParseNumber(*inputs.plugin_bytes);
  if (!bytes.has_value() || *bytes == 0) {
    findings.faults.push_back(fmt::format(
        "environment variable PURSER_QUEUE_MEMORY_BYTES is {}, and must be "
        "a whole number of bytes above 0, e.g. 67108864: the device plugin "
        "sets it, so remove what overrides it in the pod's spec",
        base::QuoteForMessage(*inputs.plugin_bytes)));
    return;
  }
  if (inputs.explicit_bytes.has_value() && *inputs.explicit_bytes > *bytes) {
    findings.faults.push_back(fmt::format(
        "{} {} is more than the {} that the device plugin allocated to this "
        "container (PURSER_QUEUE_MEMORY_BYTES{}): lower it, leave it out, or "
        "request more units",
        inputs.explicit_origin, Both(*inputs.explicit_bytes), Both(*bytes),
        InUnits(*bytes)));
    return;
  }
  findings.bounds.push_back({.source = BudgetSource::kPlugin,
                             .limit_bytes = *bytes,
                             .origin = "PURSER_QUEUE_MEMORY_BYTES"});
}

void FindQueuePairs(const BudgetInputs& inputs, Findings& findings) {
  if (!inputs.plugin_queue_pairs.has_value()) return;
  const std::optional<uint64_t> count = ParseNumber(*inputs.plugin_queue_pairs);
  if (!count.has_value() || *count == 0) {
    findings.faults.push_back(fmt::format(
        "environment variable PURSER_QUEUE_PAIRS is {}, and must be a whole "
        "number of queue pairs above 0, e.g. 100: the device plugin sets it, "
        "so remove what overrides it in the pod's spec",
        base::QuoteForMessage(*inputs.plugin_queue_pairs)));
    return;
  }
  findings.queue_pairs = {.limit = *count, .origin = "PURSER_QUEUE_PAIRS"};
}

void FindCgroup(const BudgetInputs& inputs, Findings& findings) {
  if (!inputs.cgroup.ok()) {
    findings.gaps.push_back(
        fmt::format("the container's memory limit could not be read: {}",
                    inputs.cgroup.status().ToString()));
    findings.absent.push_back(findings.gaps.back());
    return;
  }
  const base::CgroupMemory& cgroup = *inputs.cgroup;
  if (!cgroup.max_bytes.has_value()) {
    findings.absent.push_back(
        fmt::format("memory limit of {}: none", cgroup.path));
    return;
  }
  const auto limit =
      static_cast<uint64_t>(static_cast<long double>(*cgroup.max_bytes) *
                                inputs.memory_limit_fraction +
                            0.5L);
  findings.bounds.push_back(
      {.source = BudgetSource::kCgroup,
       .limit_bytes = limit,
       .container_only = true,
       .fraction = inputs.memory_limit_fraction,
       .origin =
           fmt::format("{} of {}", FractionName(inputs.memory_limit_fraction),
                       cgroup.max_origin)});
}

void FindMemlock(const BudgetInputs& inputs, Findings& findings) {
  if (!inputs.pins_rings) return;
  if (!inputs.memlock.ok()) {
    findings.gaps.push_back(fmt::format("RLIMIT_MEMLOCK could not be read: {}",
                                        inputs.memlock.status().ToString()));
    findings.absent.push_back(findings.gaps.back());
    return;
  }
  if (!inputs.memlock->binds()) {
    findings.absent.push_back("RLIMIT_MEMLOCK: does not bind");
    return;
  }
  findings.bounds.push_back({.source = BudgetSource::kMemlock,
                             .limit_bytes = *inputs.memlock->soft_bytes,
                             .container_only = true,
                             .origin = "RLIMIT_MEMLOCK"});
}

absl::Status NoBudget(bool charges_node, const Findings& findings) {
  if (charges_node) {
    return absl::FailedPreconditionError(fmt::format(
        "no queue-memory budget: a device here takes kernel memory that no "
        "container limit covers, so it must be given: {}. Looked at: {}",
        kWaysToGive, absl::StrJoin(findings.absent, "; ")));
  }
  return absl::FailedPreconditionError(fmt::format(
      "no queue-memory budget: {}, or give the container a memory limit, of "
      "which a part then is the budget. Looked at: {}",
      kWaysToGive, absl::StrJoin(findings.absent, "; ")));
}

}  // namespace

const char* BudgetSourceName(BudgetSource source) {
  switch (source) {
    case BudgetSource::kExplicit:
      return "explicit";
    case BudgetSource::kPlugin:
      return "plugin";
    case BudgetSource::kCgroup:
      return "cgroup";
    case BudgetSource::kMemlock:
      return "memlock";
  }
  return "unknown";
}

const Bound* Budget::total_bound() const { return Smallest(bounds_, false); }
const Bound* Budget::container_bound() const { return Smallest(bounds_, true); }

void LogBudget(const char* event, const Budget& budget) {
  for (const std::string& gap : budget.gaps())
    base::LogWarn("a source of the budget gives none", {{"why", gap}});
  for (const Bound& bound : budget.bounds()) {
    base::LogInfo(event,
                  {{"source", BudgetSourceName(bound.source)},
                   {"bytes", bound.limit_bytes},
                   {"size", base::FormatBytes(bound.limit_bytes)},
                   {"counts", bound.container_only ? "container-charged bytes"
                                                   : "all bytes"},
                   {"origin", bound.origin}});
  }
  if (budget.queue_pairs()) {
    base::LogInfo(event, {{"queue_pairs", budget.queue_pairs()->limit},
                          {"origin", budget.queue_pairs()->origin}});
  }
}

uint64_t OvercommittedBytes(const Budget& budget,
                            const ledger::Balance& balance) {
  uint64_t most = 0;
  for (const Bound& bound : budget.bounds()) {
    const uint64_t held =
        bound.container_only ? balance.held.container : balance.held.total();
    if (held > bound.limit_bytes)
      most = std::max(most, held - bound.limit_bytes);
  }
  return most;
}

absl::StatusOr<Budget> DetermineBudget(const BudgetInputs& inputs) {
  Findings findings;
  FindExplicit(inputs, findings);
  FindPlugin(inputs, findings);
  FindQueuePairs(inputs, findings);
  FindCgroup(inputs, findings);
  FindMemlock(inputs, findings);
  if (!findings.faults.empty())
    return absl::InvalidArgumentError(absl::StrJoin(findings.faults, "\n"));

  Budget budget;
  budget.bounds_ = std::move(findings.bounds);
  const bool covered = inputs.charges_node ? budget.total_bound() != nullptr
                                           : !budget.bounds_.empty();
  if (!covered) return NoBudget(inputs.charges_node, findings);
  budget.queue_pairs_ = std::move(findings.queue_pairs);
  budget.gaps_ = std::move(findings.gaps);
  return budget;
}

}  // namespace purser::sidecar
