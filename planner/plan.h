// SPDX-License-Identifier: Apache-2.0
//
// What a workload takes on a device: per queue pair, group, class, pod and
// node. Pure arithmetic on the memory model; 100,000 groups in some ten
// milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/device.h"
#include "planner/workload.h"
#include "queue_memory/fit.h"
#include "queue_memory/queue_memory.h"

namespace purser::planner {

inline constexpr uint64_t kUnitBytes = 1 << 20;  // of rdma/wqe-mib

struct Totals {
  uint64_t queue_pairs = 0;
  queue_memory::Charge queues;  // what budgets and the ledger count
  uint64_t context = 0;   // kernel objects, adapter context: an estimate, node
  uint64_t textbook = 0;  // work queues alone, wr x (64 + 16 sge)

  // Bytes that no cgroup is charged for.
  uint64_t node() const { return queues.node + context; }
};

struct GroupPlan {
  // Of one queue pair, with its completion queue where that is its own. The
  // refusal says why the device makes none: then all else is zero.
  queue_memory::QueueMemory each;
  uint32_t cqe = 0;  // of a completion queue of its own; 0: it has none
  Totals all;
};

// What completion queues of requests `asked` for, which rings that really hold
// `held` post to, are to hold together: they never overrun, and have a fifth
// more than was asked for.
constexpr uint64_t EntriesFor(uint64_t asked, uint64_t held) {
  return std::max({queue_memory::WithHeadroom(asked), held, uint64_t{1}});
}

// Of shared queues that are alike.
struct QueuesPlan {
  queue_memory::QueueMemory each;
  uint32_t count = 0;    // more than asked where one cannot hold enough
  uint32_t entries = 0;  // to create each with
  // Completion queues: requests whose completions may lie in them at one time,
  // by what was asked for and by what the rings really hold.
  uint64_t asked = 0, held = 0;
  Totals all;

  // Completions that all of them hold, and that they are to hold.
  uint64_t room() const { return uint64_t{count} * each.completion_ring.slots; }
  uint64_t needed() const { return EntriesFor(asked, held); }
};

struct Refusal {
  std::string where;  // "w.yaml:12:5: groups[2]"; of flags ""
  std::string text;   // what refuses it, the numbers, what to do
};

struct ClassTotals {
  std::string name;
  Totals pod;
};

struct Plan {
  Device device;
  queue_memory::Exactness exactness = queue_memory::Exactness::kExact;
  std::vector<GroupPlan> groups;  // as the workload's, as the next two
  std::vector<QueuesPlan> completion_queues;
  std::vector<QueuesPlan> shared_receive_queues;
  std::vector<ClassTotals> classes;  // of own queues; empty: there are none
  Totals pod, node;
  uint32_t pods_per_node = 1;
  std::vector<Refusal> refusals;  // the figures are without what is refused
  std::vector<std::string> warnings;

  // rdma/wqe-mib of one pod.
  uint64_t units() const;
  // The figures are of all that is asked: no group and no queue is refused.
  bool complete() const;
};

// InvalidArgument where a sum exceeds 2^63-1 bytes.
absl::StatusOr<Plan> MakePlan(const Workload& workload, const Device& device);

// Bytes in whole MiB, rounded up.
constexpr uint64_t Mebibytes(uint64_t bytes) {
  return bytes / kUnitBytes + (bytes % kUnitBytes == 0 ? 0 : 1);
}

}  // namespace purser::planner
