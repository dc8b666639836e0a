// SPDX-License-Identifier: Apache-2.0
#include "planner/triage.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "planner/device_checks.h"
#include "planner/refusal.h"
#include "planner/send_operations.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using queue_memory::QueueMemory;
using queue_memory::QueuePairRequest;

struct Known {
  Errno error;
  std::string_view name, number;
  const char* means;
  const char* otherwise;  // what is left where every question is answered well
};

constexpr Known kKnown[] = {
    {Errno::kEinval, "EINVAL", "22",
     "an argument, or several jointly, are more than the device takes",
     "compare what verbs does not check: that the PD and the CQs are of the "
     "same context, that the type fits the SRQ, and each flag of "
     "ibv_qp_init_attr_ex; then the kernel's log (dmesg), where drivers say "
     "more"},
    {Errno::kEnomem, "ENOMEM", "12",
     "most often RLIMIT_MEMLOCK, then the device's own tables (max_qp of all "
     "processes together), then memory",
     "count the node's queue pairs (rdma resource show qp, or Purser's node "
     "view) against max_qp: queue pairs that leak fill the table; and read "
     "rdma.max of the cgroup"},
    {Errno::kEperm, "EPERM", "1",
     "the process may lock no memory at all, or use this queue pair type only "
     "with CAP_NET_RAW",
     "RAW_PACKET needs CAP_NET_RAW; a memlock limit of 0 forbids all pinning"},
    {Errno::kEopnotsupp, "EOPNOTSUPP", "95",
     "the driver does not know the type, an operation or a flag",
     "leave out send_ops_flags, TSO and create flags one after the other"},
    {Errno::kEagain, "EAGAIN", "11",
     "the cgroup's count of RDMA objects (rdma.max) or a table of the device "
     "is full",
     "read rdma.current and rdma.max of the process's cgroup"},
    {Errno::kEnospc, "ENOSPC", "28",
     "a table of the device is full, or a queue is (ibv_wr_complete)",
     "destroy what is not used; poll the completion queue before posting"},
};

const Known& KnownOf(Errno error) {
  return *std::find_if(
      std::begin(kKnown), std::end(kKnown),
      [error](const Known& known) { return known.error == error; });
}

// Of counters that say why something was refused, the part of their name.
constexpr std::string_view kTelling[] = {
    "err", "fail", "out_of", "drop", "discard", "exceeded", "oor"};

bool IsTelling(const std::string& name) {
  return std::any_of(std::begin(kTelling), std::end(kTelling),
                     [&](std::string_view part) {
                       return name.find(part) != std::string::npos;
                     });
}

std::string Capacities(uint32_t wr, uint32_t sge) {
  return fmt::format("{} x {}", wr, sge);
}

std::string Asked(const QueuePairRequest& request) {
  return fmt::format("{}, send {}, inline {}, receive {}{}",
                     TypeName(request.type),
                     Capacities(request.max_send_wr, request.max_send_sge),
                     request.max_inline_data,
                     Capacities(request.max_recv_wr, request.max_recv_sge),
                     request.uses_srq ? " of an SRQ" : "");
}

Finding WrittenBack(const Failure& failure) {
  const Device& device = failure.plan.device;
  const QueuePairRequest& asked = failure.workload.groups[0].request;
  const Refusals refusals = AllRefusals(device, asked);
  const QueueMemory memory = queue_memory::QueuePairMemory(
      device.provider, device.limits, refusals.accepted);
  if (memory.refusal)
    return {Level::kWarning, "written_back",
            "nothing near the request is accepted, so none can be told", ""};
  const std::string granted =
      fmt::format("send {}, inline {}, receive {}",
                  Capacities(memory.cap_send_wr, memory.cap_send_sge),
                  memory.cap_inline_data,
                  Capacities(memory.cap_recv_wr, memory.cap_recv_sge));
  return {Level::kOk, "written_back",
          fmt::format("{} {} is granted as {}",
                      refusals.all.empty() ? "the request" : "the nearest,",
                      Asked(refusals.accepted), granted),
          "create that one and compare its attr.cap: where it differs, the "
          "device has other limits than those above"};
}

Finding Counters(const Failure& failure) {
  constexpr const char* kCheck = "driver_counters";
  if (!failure.counters.ok())
    return {Level::kWarning, kCheck,
            std::string(failure.counters.status().message()),
            "run it where the device is, with --device"};
  std::vector<std::string> telling;
  for (const Counter& counter : *failure.counters)
    if (counter.value > 0 && IsTelling(counter.name))
      telling.push_back(fmt::format("{} {}", counter.name, counter.value));
  if (telling.empty())
    return {Level::kOk, kCheck,
            fmt::format("{} counters, none of failures is above 0",
                        failure.counters->size()),
            ""};
  return {Level::kWarning, kCheck, fmt::format("{}", fmt::join(telling, ", ")),
          "look which of them moves when the creation fails again"};
}

bool AsksForMemory(Errno error) {
  return error == Errno::kEnomem || error == Errno::kEperm ||
         error == Errno::kEagain;
}

// Creation fails by limits, not by what is only unwise.
bool IsAsked(const Finding& finding) {
  return finding.check != "model" && finding.check != "cq_capacity";
}

// A cause that ends in another error is one, too, but not of this failure.
Finding Verdict(const Failure& failure, const Findings& findings) {
  const Known& known = KnownOf(failure.error);
  const Finding* cause = nullptr;
  for (const Finding& finding : findings) {
    if (finding.level != Level::kFailure) continue;
    const bool matches = finding.error.empty() || finding.error == known.name;
    if (matches)
      return {Level::kFailure, "verdict",
              fmt::format("{}, by all that is known here", finding.check),
              finding.advice};
    if (cause == nullptr) cause = &finding;
  }
  if (cause != nullptr)
    return {
        Level::kFailure, "verdict",
        fmt::format("{}, which refuses this request, but by {} where {} "
                    "was asked about",
                    cause->check, cause->error, std::string(known.name)),
        fmt::format("{}; where it was {} nevertheless, an old kernel or "
                    "provider may say so, or: {}",
                    cause->advice, std::string(known.name), known.otherwise)};
  return {Level::kWarning, "verdict", "nothing here refuses this request",
          known.otherwise};
}

}  // namespace

absl::StatusOr<Errno> ErrnoFromName(std::string_view name) {
  std::array<std::string_view, std::size(kKnown)> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kKnown[i].name;
  const std::string upper =
      absl::AsciiStrToUpper(absl::string_view(name.data(), name.size()));
  for (const Known& known : kKnown)
    if (upper == known.name || name == known.number) return known.error;
  return absl::InvalidArgumentError(fmt::format(
      "no explanation for {}{}; there are {}", base::QuoteForMessage(name),
      base::DidYouMean(name, names), fmt::join(names, ", ")));
}

Findings Explain(const Failure& failure) {
  const Known& known = KnownOf(failure.error);
  Findings findings = {
      {Level::kOk, "errno",
       fmt::format("{}: {}", std::string(known.name), known.means), ""},
      {Level::kOk, "request", Asked(failure.workload.groups[0].request), ""}};
  for (const Finding& finding : DeviceFindings(failure.workload, failure.plan))
    if (IsAsked(finding)) findings.push_back(finding);
  if (AsksForMemory(failure.error)) {
    const Findings memory =
        MemoryFindings(failure.plan, failure.demand, failure.machine);
    findings.insert(findings.end(), memory.begin(), memory.end());
  }
  findings.push_back(WrittenBack(failure));
  findings.push_back(Counters(failure));
  findings.push_back(Verdict(failure, findings));
  return findings;
}

}  // namespace purser::planner
