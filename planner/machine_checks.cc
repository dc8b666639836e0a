// SPDX-License-Identifier: Apache-2.0
#include "planner/machine_checks.h"

#include <algorithm>
#include <bit>

#include "base/quantity.h"
#include "queue_memory/arithmetic.h"
#include "queue_memory/registry.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::FormatBytes;
using base::FormatCount;
using queue_memory::Provider;

uint64_t PinnedRings(const Plan& plan) {
  return queue_memory::TraitsOf(plan.device.provider).pins_rings
             ? plan.pod.queues.container
             : 0;
}

Finding Unread(const char* check, const absl::Status& status) {
  return {Level::kWarning, check, std::string(status.message()), "not checked"};
}

Finding Memlock(const Plan& plan, const Demand& demand,
                const Machine& machine) {
  constexpr const char* kCheck = "memlock";
  if (!machine.memlock.ok()) return Unread(kCheck, machine.memlock.status());
  const uint64_t rings = PinnedRings(plan);
  const uint64_t buffers = PinnedBytes(demand.buffers, machine.page_bytes);
  const std::string needs = fmt::format(
      "rings pin {}, buffers {}", FormatBytes(rings), FormatBytes(buffers));
  if (!machine.memlock->binds())
    return {Level::kOk, kCheck,
            fmt::format("{}; {}", needs,
                        machine.memlock->ipc_lock ? "IPC_LOCK lifts the limit"
                                                  : "there is no limit"),
            ""};
  const uint64_t limit = *machine.memlock->soft_bytes;
  const std::string found =
      fmt::format("{}; RLIMIT_MEMLOCK is {}", needs, FormatBytes(limit));
  if (rings + buffers > limit)
    return {Level::kFailure, kCheck, found,
            "creation ends in ENOMEM: give the container the capability "
            "IPC_LOCK, or raise memlock in the container runtime; a pod spec "
            "has no field for it"};
  return {Level::kOk, kCheck, found, ""};
}

Finding CgroupMemory(const Plan& plan, const Demand& demand,
                     const Machine& machine) {
  constexpr const char* kCheck = "cgroup_memory";
  if (!machine.cgroup.ok()) return Unread(kCheck, machine.cgroup.status());
  const uint64_t queues = plan.pod.queues.container;
  const uint64_t buffers = demand.huge_pages ? 0 : BytesOf(demand.buffers);
  const std::string needs =
      fmt::format("queues take {} of the container's, buffers {}",
                  FormatBytes(queues), FormatBytes(buffers));
  if (!machine.cgroup->max_bytes.has_value())
    return {Level::kOk, kCheck, needs + "; it has no memory limit", ""};
  const uint64_t limit = *machine.cgroup->max_bytes;
  const uint64_t used = std::min(machine.cgroup->current_bytes, limit);
  const std::string found =
      fmt::format("{}; {} of {} are left", needs, FormatBytes(limit - used),
                  FormatBytes(limit));
  const uint64_t needed = queues + buffers;
  if (needed > limit - used)
    return {Level::kFailure, kCheck, found,
            fmt::format("the container would be OOM-killed: raise its memory "
                        "limit by {}Mi at least",
                        Mebibytes(needed - (limit - used)))};
  if (needed > limit / 2)
    return {Level::kWarning, kCheck, found,
            "more than half of the limit; pinned memory cannot be reclaimed"};
  return {Level::kOk, kCheck, found, ""};
}

bool RingsInHugePages(const Plan& plan, const Machine& machine) {
  return plan.device.provider == Provider::kMlx5 &&
         machine.ring_allocator.find("HUGE") != std::string::npos;
}

// All that pods take of the node's memory, whoever is charged. Huge pages are
// set aside beforehand, and are no part of what is available.
uint64_t NodeBytes(const Totals& queues, uint64_t pods, const Plan& plan,
                   const Demand& demand, const Machine& machine) {
  const uint64_t rings =
      RingsInHugePages(plan, machine) ? 0 : queues.queues.container;
  const uint64_t buffers = demand.huge_pages ? 0 : BytesOf(demand.buffers);
  return queue_memory::SaturatingAdd(
      rings + queues.node(), queue_memory::SaturatingMultiply(buffers, pods));
}

Finding NodeMemory(const Plan& plan, const Demand& demand,
                   const Machine& machine) {
  constexpr const char* kCheck = "node_memory";
  if (!machine.node.ok()) return Unread(kCheck, machine.node.status());
  const uint64_t unseen = plan.node.node();
  const uint64_t pod = NodeBytes(plan.pod, 1, plan, demand, machine);
  const uint64_t all =
      NodeBytes(plan.node, plan.pods_per_node, plan, demand, machine);
  const uint64_t total = machine.node->total_bytes;
  const uint64_t available = machine.node->available_bytes;
  const std::string found = fmt::format(
      "queues and buffers take {} of a pod, {} of all its pods, of which {} "
      "are charged to nobody; {} of {} are available",
      FormatBytes(pod), FormatBytes(all), FormatBytes(unseen),
      FormatBytes(available), FormatBytes(total));
  const std::string reserve =
      fmt::format("add {}Mi to the kubelet's systemReserved, or fewer pods",
                  Mebibytes(unseen));
  const std::string fewer =
      "fewer pods, shallower queues or fewer buffers, or a larger node";
  if (unseen > available)
    return {Level::kFailure, kCheck, found,
            "the node runs out of memory without an eviction: " + reserve};
  if (pod > available || all > total)
    return {Level::kFailure, kCheck, found,
            "the node has not so much memory: " + fewer};
  // Some of the pods may run, so that what they take is not available.
  if (all > available)
    return {Level::kWarning, kCheck, found,
            "not all of them have room, but for those that run: " + fewer};
  if (unseen > available / 2) return {Level::kWarning, kCheck, found, reserve};
  return {Level::kOk, kCheck, found, ""};
}

Finding Budget(const Plan& plan, const Demand& demand) {
  constexpr const char* kCheck = "budget";
  const uint64_t needed = plan.pod.queues.total();
  if (!demand.budget.has_value())
    return {
        Level::kOk, kCheck,
        fmt::format("queues take {}; no budget is given", FormatBytes(needed)),
        fmt::format("request rdma/wqe-mib: {}, or say --budget", plan.units())};
  const std::string found =
      fmt::format("queues take {} of a budget of {}", FormatBytes(needed),
                  FormatBytes(*demand.budget));
  if (needed > *demand.budget)
    return {Level::kFailure, kCheck, found,
            fmt::format("request rdma/wqe-mib: {}, or see what fits by `purser "
                        "plan --fit {}`",
                        plan.units(), *demand.budget)};
  return {Level::kOk, kCheck, found, ""};
}

// What the device refuses has no size, so that nothing is well with the rest.
Finding Partial(const Plan& plan, Finding finding) {
  if (plan.complete()) return finding;
  finding.level = std::max(finding.level, Level::kWarning);
  finding.found += "; what the device refuses is not counted";
  return finding;
}

Finding Regions(const Plan& plan, const Demand& demand) {
  constexpr const char* kCheck = "max_mr";
  const uint64_t count = CountOf(demand.buffers);
  const Device& device = plan.device;
  const uint64_t most = device.counts.max_mr;
  const std::string found = fmt::format(
      "{} memory regions; {}", FormatCount(count),
      most == 0 ? fmt::format("how many {} has is known of an opened device "
                              "alone",
                              device.name)
                : fmt::format("{} {} {}", device.name,
                              Has(device, device.told_counts.max_mr),
                              FormatCount(most)));
  if (most != 0 && count > most)
    return {Level::kFailure, kCheck, found,
            "register few large buffers instead of many small ones"};
  return {Level::kOk, kCheck, found, ""};
}

Finding Alignment(const Demand& demand, const Machine& machine) {
  constexpr const char* kCheck = "page_alignment";
  const auto unaligned = std::find_if(
      demand.buffers.begin(), demand.buffers.end(), [&](const auto& each) {
        return each.alignment % machine.page_bytes != 0;
      });
  if (demand.buffers.empty())
    return {Level::kOk, kCheck, "no buffers are told of by --buffer", ""};
  if (unaligned == demand.buffers.end())
    return {Level::kOk, kCheck, "all buffers begin with a page", ""};
  return {Level::kWarning, kCheck,
          fmt::format("buffers of {} are aligned to {} bytes, so they share "
                      "their first and last page with other data, which is "
                      "pinned and kept from forked children with them",
                      FormatBytes(unaligned->bytes), unaligned->alignment),
          fmt::format("allocate by mmap, or posix_memalign with {}",
                      machine.page_bytes)};
}

// Devices of more than ten years ago.
bool IsOld(Provider provider) {
  return provider == Provider::kMlx4 || provider == Provider::kOcrdma ||
         provider == Provider::kCxgb4;
}

Finding PageCrossing(const Plan& plan, const Demand& demand,
                     const Machine& machine) {
  constexpr const char* kCheck = "page_crossing";
  const uint64_t page = machine.page_bytes;
  const auto crosses = [page](const Buffers& each) {
    return each.bytes > page ||
           std::min(each.alignment, page) < std::bit_ceil(each.bytes);
  };
  const auto crossing =
      std::find_if(demand.buffers.begin(), demand.buffers.end(), crosses);
  if (crossing == demand.buffers.end())
    return {Level::kOk, kCheck, "no buffer crosses the end of a page", ""};
  const std::string found =
      fmt::format("one SGE of a buffer of {} may cross the end of a page",
                  FormatBytes(crossing->bytes));
  if (!IsOld(plan.device.provider))
    return {Level::kOk, kCheck,
            fmt::format("{}, which {} takes", found, plan.device.name), ""};
  return {Level::kWarning, kCheck, found,
          "old devices are slow with it or refuse it: align each message to "
          "its size, or give each page an SGE of its own"};
}

Finding HugePages(const Plan& plan, const Demand& demand,
                  const Machine& machine) {
  constexpr const char* kCheck = "huge_pages";
  const bool rings = RingsInHugePages(plan, machine);
  if (!rings && !demand.huge_pages)
    return {Level::kOk, kCheck, "none asked for", ""};
  if (!machine.huge_pages.ok())
    return Unread(kCheck, machine.huge_pages.status());
  const uint64_t size = machine.huge_pages->page_bytes;
  const uint64_t needed =
      (rings ? queue_memory::RoundUp(plan.pod.queues.container, size) : 0) +
      (demand.huge_pages ? PinnedBytes(demand.buffers, size) : 0);
  const uint64_t pages = needed / size;
  const std::string found = fmt::format(
      "{} pages of {} are needed{}, {} are free", FormatCount(pages),
      FormatBytes(size),
      rings ? fmt::format(" (MLX_QP_ALLOC_TYPE={})", machine.ring_allocator)
            : "",
      FormatCount(machine.huge_pages->free_pages));
  if (pages <= machine.huge_pages->free_pages)
    return {Level::kOk, kCheck, found, ""};
  const bool required =
      demand.huge_pages || !machine.ring_allocator.starts_with("PREFER");
  return {required ? Level::kFailure : Level::kWarning, kCheck, found,
          "set vm.nr_hugepages on the node, and request hugepages-2Mi: they "
          "are outside of `memory`"};
}

}  // namespace

Findings MemoryFindings(const Plan& plan, const Demand& demand,
                        const Machine& machine) {
  return {Partial(plan, Memlock(plan, demand, machine)),
          Partial(plan, CgroupMemory(plan, demand, machine)),
          Partial(plan, NodeMemory(plan, demand, machine))};
}

Findings MachineFindings(const Plan& plan, const Demand& demand,
                         const Machine& machine) {
  Findings findings = {Regions(plan, demand)};
  const Findings memory = MemoryFindings(plan, demand, machine);
  findings.insert(findings.end(), memory.begin(), memory.end());
  for (const Finding& finding :
       {Alignment(demand, machine), PageCrossing(plan, demand, machine),
        HugePages(plan, demand, machine), Partial(plan, Budget(plan, demand))})
    findings.push_back(finding);
  return findings;
}

}  // namespace purser::planner
