// SPDX-License-Identifier: Apache-2.0
//
// What `purser` was told to do.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "planner/workload.h"
#include "purser/v1/sidecar.pb.h"

namespace purser::cli {

enum class Output { kTable, kJson, kYaml };

struct CreateCommand {
  v1::QueuePairType type = v1::QUEUE_PAIR_TYPE_RC;
  v1::Capabilities cap;
  std::string class_name;
  std::optional<v1::Capabilities> least;
  std::vector<v1::SendOpcode> send_operations;  // empty: any
  std::string completion_queue;  // "own", a name to share; empty: cheapest
  // Of a shared receive queue for all; max_wr 0: receives of their own.
  queue_memory::SharedReceiveQueueRequest shared_receive_queue{.max_wr = 0,
                                                               .max_sge = 1};
  std::string device;  // empty: the sidecar's first
  std::string name = "purser";
  uint32_t count = 1;
  bool detach = false;
  Output output = Output::kTable;
};
struct ListCommand {
  Output output = Output::kTable;
};
struct DestroyCommand {
  std::vector<uint64_t> ids;
  bool all = false;  // that are detached
};
struct BudgetCommand {
  Output output = Output::kTable;
};
// Posts to a peer without receives until the send queue refuses.
struct FillCommand {
  v1::Capabilities cap;
  std::string device;
  uint32_t burst = 64;  // posts in one call
};
// One of `listen` and `connect` is set. The rest of the plan is the connecting
// side's to say.
struct PingCommand {
  std::optional<std::string> listen;   // "7100", "0", "127.0.0.1:7100"
  std::optional<std::string> connect;  // "HOST:PORT"
  std::string device;
  std::chrono::milliseconds timeout{30'000};  // of each step with the peer
  uint32_t message_bytes = 4096;
  uint64_t iterations = 100;
  uint64_t stream_bytes = 0;
  uint32_t chunk_bytes = 512 << 10;
};

// A workload in a file, or one group of queue pairs by flags; and where it is
// to run.
struct WorkloadSource {
  std::string file;  // "-": stdin; empty: the group below
  planner::Group group;
  std::string type = "rc";
  std::vector<std::string> send_ops;
  queue_memory::SharedReceiveQueueRequest shared_receive_queue{.max_wr = 0,
                                                               .max_sge = 1};
  bool shared_cq = false;
  std::string device, provider;
  bool all_providers = false;
  std::vector<std::string> limits;  // "maxQpWr=16384"
  std::string kernel_version;       // "6.1"; "": this machine's, or current
  uint32_t pods_per_node = 0;       // 0: as the workload says
};

struct PlanCommand : WorkloadSource {
  std::optional<uint64_t> fit;  // bytes
  std::string plot;             // SVG file; empty: none
  Output output = Output::kTable;
};

struct CheckCommand : WorkloadSource {
  std::vector<std::string> buffers;  // "64Mix8@4096"
  bool huge_pages = false;           // that they lie in
  std::optional<uint64_t> budget;    // bytes
  bool strict = false;               // warnings are failures
  std::string explain;               // "EINVAL": why did a creation fail?
  std::string request;               // "send-wr=256,send-sge=4": of it
  Output output = Output::kTable;
};

// Where it reads, and what it shows.
struct NodeCommand {
  std::string pod_resources_socket =
      "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string container_log_dir = "/var/log/containers";
  std::string resource_prefix = "rdma";
  std::string proc_root = "/proc", cgroup_root = "/sys/fs/cgroup",
              sysfs_root = "/sys";
  Output output = Output::kTable;
};

enum class TopOrder {
  kMemory,
  kPosts,
  kFailures,
  kBacklog,
  kQueuePairs,
  kName
};

// How `purser top` calls itself.
inline constexpr char kTopClientName[] = "purser-top";

struct TopCommand {
  std::chrono::milliseconds interval{2000};
  // 0: until a signal where it writes to a terminal, else once.
  uint64_t iterations = 0;
  TopOrder order = TopOrder::kMemory;
  bool queue_pairs = false;  // each of them, too
  Output output = Output::kTable;
};

struct Invocation {
  std::string socket = "/run/purser/sidecar.sock";
  std::string shared_volume;  // empty: the socket's directory
  std::chrono::milliseconds rpc_timeout{5000};
  std::chrono::milliseconds wait{0};  // for a sidecar that does not answer yet
  std::variant<CreateCommand, ListCommand, DestroyCommand, BudgetCommand,
               FillCommand, PingCommand, PlanCommand, CheckCommand, NodeCommand,
               TopCommand>
      command;

  std::string SharedVolume() const;
  // Stays in the foreground until SIGINT or SIGTERM, which it must take care
  // of.
  bool HoldsUntilSignal() const;
};

// nullopt: nothing to do but to exit with `*exit_code`; help went to `out`,
// what is wrong to `err`.
std::optional<Invocation> ParseCommandLine(int argc, const char* const* argv,
                                           std::ostream& out, std::ostream& err,
                                           int* exit_code);

}  // namespace purser::cli
