// SPDX-License-Identifier: Apache-2.0
//
// libpurser: RDMA queue pairs from the pod's sidecar, within the pod's budget
// of queue memory. The application needs no RDMA device, no capability and no
// memlock limit: only the shared volume in which the sidecar's socket lies.
//
//   auto client = purser::client::Client::Connect("/run/purser/sidecar.sock",
//                                                 "my-app");
//   purser::client::QueuePairSpec spec;
//   spec.cap.set_max_send_wr(256);
//   spec.cap.set_max_send_sge(1);
//   spec.cap.set_max_recv_wr(256);
//   spec.cap.set_max_recv_sge(1);
//   auto queue_pair = (*client)->CreateQueuePair(spec);
//   if (auto refusal = purser::client::RefusalOf(queue_pair.status()))
//     … refusal->needed_bytes(), refusal->largest_max_send_wr() …
//
// docs/client.md shows more.
//
// Errors are absl::Status, nothing throws. RESOURCE_EXHAUSTED: refused by the
// budget, RefusalOf() has the arithmetic. INVALID_ARGUMENT, OUT_OF_RANGE: the
// request or a device limit. UNAVAILABLE: no sidecar, or it went away: connect
// again. DEADLINE_EXCEEDED: it did not answer in Options::rpc_timeout. The rest
// as proto/purser/v1/sidecar.proto says.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/queue_pair.h"
#include "client/refusal.h"
#include "purser/v1/sidecar.pb.h"

namespace purser::client {

class Connection;

struct Options {
  // For each call; a call that waits for completions has its wait on top.
  std::chrono::milliseconds rpc_timeout{5000};
};

// A client of the sidecar. What it creates lives as long as it does: when it is
// destroyed, or its process ends in whatever way, the sidecar destroys its
// queue pairs (but detached ones) and returns their bytes to the budget.
// Declare it before its queue pairs and regions. Any thread may call; one
// thread of its own listens to the sidecar. Not usable in a child after fork().
class Client {
 public:
  // `socket_path`: at most 107 bytes. `name`: shown in logs and listings, at
  // most 63 characters. UNAVAILABLE when no sidecar answers there.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& socket_path, const std::string& name,
      const Options& options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The sidecar's devices when this client connected.
  const std::vector<v1::Device>& devices() const;

  // OK while the sidecar is there, else UNAVAILABLE with the reason. Once gone
  // a client stays gone: its queue pairs do not exist any more.
  absl::Status status() const;
  // Waits for that; OK after `timeout`.
  absl::Status WaitUntilGone(std::chrono::milliseconds timeout) const;
  // Devices that vanished since, and with them every queue pair on them.
  std::vector<std::string> lost_devices() const;

  absl::StatusOr<QueuePair> CreateQueuePair(const QueuePairSpec& spec);
  // All queue pairs of the sidecar, whoever holds them, by id.
  absl::StatusOr<std::vector<v1::QueuePair>> List();
  // One of this client's or a detached one. Returns the bytes that went back to
  // the budget.
  absl::StatusOr<uint64_t> Destroy(uint64_t id);
  absl::StatusOr<v1::GetBudgetResponse> Budget();

  // Clients, classes, shared queues: what `purser top` shows.
  absl::StatusOr<v1::GetStatusResponse> SidecarStatus();

  // Receives that several queue pairs of this client share
  // (QueuePairSpec::shared_receive_queue_id). Each completes on the queue pair
  // that it serves. Ends with this client at the latest; queue pairs that use
  // it must be destroyed before. `device` and `class_name` as QueuePairSpec's.
  absl::StatusOr<v1::SharedReceiveQueue> CreateSharedReceiveQueue(
      uint32_t max_wr, uint32_t max_sge, const std::string& device = {},
      const std::string& class_name = {});
  // As QueuePair::PostReceive().
  absl::StatusOr<v1::PostResponse> PostSharedReceive(
      uint64_t id, std::span<const v1::ReceiveWorkRequest> requests);
  // Returns the bytes that went back to the budget.
  absl::StatusOr<uint64_t> DestroySharedReceiveQueue(uint64_t id);

  // A range of a file in the shared volume; SharedRegion does all of it.
  // `path`: relative to the volume; `access`: bits of Access.
  absl::StatusOr<v1::RegisterMemoryResponse> RegisterMemory(
      const std::string& path, uint64_t offset, uint64_t length,
      uint32_t access, const std::string& device);
  absl::Status DeregisterMemory(uint64_t region_id);

 private:
  explicit Client(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace purser::client
