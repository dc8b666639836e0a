// SPDX-License-Identifier: Apache-2.0
#include "sidecar/limits_watch.h"

#include <utility>

#include "base/logging.h"
#include "base/quantity.h"

namespace purser::sidecar {
namespace {

std::string Of(uint64_t part, uint64_t whole) {
  return base::FormatBytes(part) + " of " + base::FormatBytes(whole);
}

double Fraction(uint64_t part, uint64_t whole) {
  return whole == 0 ? 1
                    : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

LimitsWatch::LimitsWatch(LimitSources sources, Admission& admission,
                         Counters& counters, OnPressure on_pressure,
                         GiveBack give_back, Options options)
    : sources_(std::move(sources)),
      admission_(admission),
      counters_(counters),
      on_pressure_(std::move(on_pressure)),
      give_back_(std::move(give_back)),
      options_(options),
      container_(options.container),
      node_(options.node) {
  Look(std::chrono::steady_clock::now());
}

LimitsWatch::~LimitsWatch() = default;

void LimitsWatch::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!wakeup_.wait_for(lock, stop, options_.look_every, [&] {
      return stop.stop_requested();
    }) && !stop.stop_requested())
      Look(std::chrono::steady_clock::now());
  });
}

void LimitsWatch::Look(TimePoint now) {
  LookAtBudget();
  LookAtContainer(now);
  LookAtNode(now);
  using enum PressureState;
  if (container_.pressure().state == kCritical ||
      node_.pressure().state == kCritical)
    give_back_();
}

void LimitsWatch::LookAtBudget() {
  absl::StatusOr<Budget> budget = sources_.budget();
  const std::shared_ptr<const Budget> before = admission_.budget();
  absl::Status readable = budget.status();
  // A bound that cannot be read any more is not gone.
  if (budget.ok() && budget->gaps() != before->gaps() &&
      !budget->gaps().empty())
    readable = absl::UnavailableError(budget->gaps().front());
  Report(
      "the budget as it was stays in force: what it is made of cannot be "
      "read",
      readable, budget_fault_);
  if (!readable.ok() || *budget == *before) return;
  LogBudget("budget changed", *budget);
  admission_.SetBudget(*std::move(budget));
  const uint64_t overcommitted = admission_.OvercommittedBytes();
  if (overcommitted == 0) return;
  base::LogWarn(
      "more is in use than the budget now allows: it stays, and nothing grows "
      "until enough is released",
      {{"overcommitted_bytes", overcommitted},
       {"size", base::FormatBytes(overcommitted)}});
}

void LimitsWatch::LookAtContainer(TimePoint now) {
  const absl::StatusOr<base::CgroupUsage> usage = sources_.container();
  Report("the pressure on the container's memory cannot be read",
         usage.status(), container_fault_);
  if (!usage.ok()) return;
  PressureReading reading{.stall = usage->stall};
  if (usage->limit_bytes) {
    reading.used = Fraction(usage->working_set_bytes, *usage->limit_bytes);
    reading.figures = Of(usage->working_set_bytes, *usage->limit_bytes) + ", " +
                      usage->limit_origin;
  }
  if (container_before_) {
    reading.limit_hit = usage->limit_hits > container_before_->limit_hits;
    reading.out_of_memory =
        usage->out_of_memory > container_before_->out_of_memory;
  }
  container_before_ = *usage;
  Feel(PressureScope::kContainer, container_, reading, now);
}

void LimitsWatch::LookAtNode(TimePoint now) {
  const absl::StatusOr<LimitSources::Node> node = sources_.node();
  Report("the pressure on the node's memory cannot be read", node.status(),
         node_fault_);
  if (!node.ok()) return;
  Feel(PressureScope::kNode, node_,
       {.used = 1 - Fraction(node->available_bytes, node->total_bytes),
        .figures = Of(node->available_bytes, node->total_bytes) + " available",
        .stall = node->stall},
       now);
}

void LimitsWatch::Feel(PressureScope scope, PressureTracker& tracker,
                       const PressureReading& reading, TimePoint now) {
  const bool changed = tracker.Update(reading, now);
  const Pressure& pressure = tracker.pressure();
  admission_.SetPressure(scope, pressure);
  if (!changed) return;
  counters_.pressure_changes.Add(PressureScopeName(scope),
                                 PressureStateName(pressure.state));
  const auto log =
      pressure.state == PressureState::kNormal ? base::LogInfo : base::LogWarn;
  log("memory pressure", {{"scope", PressureScopeName(scope)},
                          {"state", PressureStateName(pressure.state)},
                          {"why", pressure.why}});
  on_pressure_(scope, pressure);
}

void LimitsWatch::Report(const char* what, const absl::Status& status,
                         Fault& fault) {
  std::string text = status.ok() ? "" : status.ToString();
  if (text == fault) return;
  fault = std::move(text);
  if (!fault.empty()) base::LogWarn(what, {{"error", status}});
}

}  // namespace purser::sidecar
