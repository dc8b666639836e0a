// SPDX-License-Identifier: Apache-2.0
//
// What a pod is going to create: groups of connections, and the completion and
// shared receive queues that they share. Plain values, read from YAML or made
// from flags; docs/planning.md describes the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/yaml_mark.h"
#include "planner/device.h"
#include "queue_memory/cliffs.h"
#include "queue_memory/queue_memory.h"

namespace purser::planner {

// A queue pair's number has 24 bits, so no device has more of them, and no
// queue has that many entries. With these bounds no figure of one object comes
// near 64 bits; sums are checked.
inline constexpr uint32_t kMostQueuePairs = 1u << 24;
inline constexpr uint32_t kMostDepth = 1u << 24;
inline constexpr uint32_t kMostSge = 1u << 16;
inline constexpr uint32_t kMostInlineData = 1u << 20;  // bytes
inline constexpr uint32_t kMostCqe = INT32_MAX;  // ibv_create_cq takes an int
inline constexpr uint32_t kMostPodsPerNode = 1000;
inline constexpr size_t kLongestWorkload = 64 << 20;  // bytes of YAML

// Completion queues that groups share, each for the same part of them.
struct CompletionQueues {
  std::string name;
  uint32_t count = 1;
  // Of each; 0: one completion for all that can be posted, and at least a fifth
  // more than the depths asked for.
  uint32_t cqe = 0;
  base::YamlMark mark;
};

struct SharedReceiveQueues {
  std::string name;
  uint32_t count = 1;
  queue_memory::SharedReceiveQueueRequest request{.max_wr = 0, .max_sge = 1};
  base::YamlMark mark;
};

// Queue pairs that are alike.
struct Group {
  std::string name;
  std::string class_name;  // "": none
  uint32_t count = 1;
  queue_memory::QueuePairRequest request{.max_send_wr = 128,
                                         .max_send_sge = 1,
                                         .max_recv_wr = 128,
                                         .max_recv_sge = 1};
  // Index into the workload's; absent: a completion queue of its own for each
  // queue pair, or receives of its own.
  std::optional<size_t> completion_queues;
  std::optional<size_t> shared_receive_queues;
  base::YamlMark mark;
  base::YamlMark argument_marks[queue_memory::kArgumentCount];
};

struct Workload {
  std::string source;  // what messages call it; "": made from flags
  std::string name;
  uint32_t pods_per_node = 1;
  std::optional<Device> device;  // nullopt: not said
  std::vector<CompletionQueues> completion_queues;
  std::vector<SharedReceiveQueues> shared_receive_queues;
  std::vector<Group> groups;
};

// InvalidArgument with all faults, one a line: "SOURCE:LINE:COLUMN: groups[2]:
// what is wrong".
absl::StatusOr<Workload> ReadWorkload(const std::string& source,
                                      std::string_view text);

// Of a shared receive queue there is no receive side of the queue pairs, nor
// has a queue pair one that sends alone.
bool HasReceiveSide(const Group& group);

}  // namespace purser::planner
