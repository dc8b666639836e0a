// SPDX-License-Identifier: Apache-2.0
//
// What the node's RDMA queues are and who holds them, at one moment. Plain
// data: made by NodeView, shown by metrics and by `purser node`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node_view/allocations.h"
#include "node_view/container_names.h"
#include "queue_memory/queue_memory.h"

namespace purser::node_view {

enum class OwnerKind {
  kContainer,
  kHost,     // a process outside pods
  kKernel,   // the kernel's own; counted, its memory is not known
  kUnknown,  // a process that cannot be seen from here
};

// Bytes by how they are known.
struct Amount {
  uint64_t exact = 0, estimated = 0;
  uint64_t total() const { return exact + estimated; }
  void Add(uint64_t bytes, bool is_exact) {
    (is_exact ? exact : estimated) += bytes;
  }
  Amount& operator+=(const Amount& other) {
    exact += other.exact;
    estimated += other.estimated;
    return *this;
  }
};

// By who is charged.
struct QueueBytes {
  Amount container, node;
  uint64_t total() const { return container.total() + node.total(); }
  void Add(queue_memory::Charge charge, bool is_exact) {
    container.Add(charge.container, is_exact);
    node.Add(charge.node, is_exact);
  }
  QueueBytes& operator+=(const QueueBytes& other) {
    container += other.container;
    node += other.node;
    return *this;
  }
};

struct ProcessName {
  pid_t pid = 0;
  std::string name;
};

// What one owner has on one device.
struct Holding {
  std::string device;
  OwnerKind kind = OwnerKind::kUnknown;
  // Of a container: its names; while those are not known, the pod's UID and the
  // front of the container's id, without a namespace. Else "host", "kernel" or
  // "unknown" in place of the container's name, without a pod.
  ContainerName owner;
  bool named = false;  // the names are known
  std::map<std::pair<std::string, std::string>, uint64_t>
      queue_pairs;  // by type and state
  uint64_t completion_queues = 0, shared_receive_queues = 0;
  QueueBytes bytes;
  std::vector<ProcessName> processes;

  uint64_t queue_pair_count() const;
};

struct KernelRingTotal {
  uint64_t bytes = 0;
  uint64_t seen = 0;  // with processes
  // The kernel's own, and what is hidden.
  uint64_t unattributed() const { return bytes > seen ? bytes - seen : 0; }
};

// One of the places that the view is read from.
struct SourceState {
  std::string name;    // "netlink", "mappings", …
  std::string reason;  // why it is not used, for machines; "": it is used
  std::string detail;  // the same for people
};

struct View {
  std::chrono::system_clock::time_point read_at;
  std::chrono::microseconds took{0};
  std::vector<Holding> holdings;        // by device and owner
  std::vector<Allocation> allocations;  // by holder and resource
  bool allocations_known = false;
  // Beyond what their holders were allotted, by device; nullopt: it cannot be
  // told.
  std::optional<std::map<std::string, uint64_t>> undeclared_bytes;
  // Rings that drivers took of the kernel's memory, by provider.
  std::map<queue_memory::Provider, KernelRingTotal> kernel_rings;
  // The node's memory that is kept from pods; nullopt: not known.
  std::optional<uint64_t> reserved_memory_bytes;
  // Queue memory that is advertised and that no pod's limit covers.
  uint64_t advertised_node_charged_bytes = 0;
  std::vector<SourceState> sources;

  // Of the advertised: what is more than the reserved.
  uint64_t unreserved_bytes() const;
};

}  // namespace purser::node_view
