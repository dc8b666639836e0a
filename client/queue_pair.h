// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "purser/v1/sidecar.pb.h"

namespace purser::client {

class Connection;

// Bits of ibv_access_flags.
enum Access : uint32_t {
  kLocalWrite = 1,
  kRemoteWrite = 2,
  kRemoteRead = 4,
};

// What to create; names and meanings as in man ibv_create_qp.
struct QueuePairSpec {
  std::string device;  // empty: the sidecar's first
  v1::QueuePairType type = v1::QUEUE_PAIR_TYPE_RC;
  v1::Capabilities cap;
  std::string class_name;  // of the sidecar's config; empty: "default"
  // The least depths (max_send_wr, max_recv_wr) that will do where `cap` does
  // not fit; nullopt: `cap` or nothing.
  std::optional<v1::Capabilities> least;
  // All that it will post; empty: anything. Some providers then make smaller
  // send rings (mlx5: up to 3.6 times). Posting another one fails.
  std::vector<v1::SendOpcode> send_operations;
  // Nothing set: whichever completion queue costs least; `own`, or `shared`
  // with all queue pairs of this client that name it.
  v1::CompletionQueueChoice completion_queue;
  // Client::CreateSharedReceiveQueue's; `cap` then has no receives. 0: none.
  uint64_t shared_receive_queue_id = 0;
  // Outlives this client, until Client::Destroy() or the sidecar's end.
  bool detached = false;
};

// What two sides must agree on, or may tune, when they connect; names and
// encodings as in man ibv_modify_qp. The defaults suit one hop or a few.
struct ConnectionParameters {
  uint32_t sq_psn = 0;    // first packet number sent, 24 bits; choose at random
  uint32_t rq_psn = 0;    // the peer's sq_psn
  uint32_t path_mtu = 0;  // bytes; 0: the smaller of both ports' MTU
  uint32_t access = kLocalWrite | kRemoteWrite | kRemoteRead;  // of the peer
  uint32_t pkey_index = 0;
  uint32_t max_rd_atomic = 1;       // RDMA READs under way to the peer
  uint32_t max_dest_rd_atomic = 1;  // and from it
  uint32_t min_rnr_timer = 12;      // 0.64 ms
  uint32_t timeout = 14;            // 67 ms to an acknowledgement
  uint32_t retry_cnt = 7;
  uint32_t rnr_retry = 7;  // 7: for ever; a peer without receives blocks
};

// One queue pair, destroyed with this object unless it was created detached. If
// that call fails the sidecar destroys it when the client ends. Not for two
// threads at once, but any one; must not outlive its Client.
class QueuePair {
 public:
  static constexpr size_t kMaxWorkRequests = 4096;  // in one call
  static constexpr std::chrono::seconds kMaxWait{10};

  QueuePair(QueuePair&& other) noexcept;
  QueuePair& operator=(QueuePair&& other) noexcept;
  ~QueuePair();

  uint64_t id() const { return properties_.id(); }
  // As the sidecar told last: at creation, Connect() or Modify(). Granted
  // capacities, slots, memory, state.
  const v1::QueuePair& properties() const { return properties_; }
  // Set when it is less deep than what was wanted: the refusal of that.
  const std::optional<v1::Shrunk>& shrunk() const { return shrunk_; }
  // What the peer needs for its Connect(). GID indices move: exchange it
  // shortly before connecting.
  const v1::Endpoint& local() const { return properties_.local(); }

  // RESET to INIT, RTR and RTS towards `remote`, for RC and UC. Receives may be
  // posted once it returns; post them before the peer may send. When it fails
  // on the way, Modify() to RESET and call it again.
  absl::Status Connect(const v1::Endpoint& remote,
                       const ConnectionParameters& parameters);
  // Any other transition; id and client are filled in.
  absl::Status Modify(v1::ModifyQueuePairRequest request);

  // At most kMaxWorkRequests. Like ibv_post_send: the response tells how many
  // were posted and, if not all, the errno of the next (ENOMEM: the queue is
  // full). A status is for the call itself. Each send completes.
  absl::StatusOr<v1::PostResponse> PostSend(
      std::span<const v1::SendWorkRequest> requests);
  absl::StatusOr<v1::PostResponse> PostReceive(
      std::span<const v1::ReceiveWorkRequest> requests);
  // Up to `max_entries` completions of sends and receives; waits up to `wait`
  // (at most kMaxWait) for the first. Empty when none came.
  absl::StatusOr<std::vector<v1::WorkCompletion>> Poll(
      uint32_t max_entries,
      std::chrono::milliseconds wait = std::chrono::milliseconds(0));

 private:
  friend class Client;
  QueuePair(Connection& connection, v1::CreateQueuePairResponse created);
  void Destroy();

  Connection* connection_;  // nullptr once moved from
  v1::QueuePair properties_;
  std::optional<v1::Shrunk> shrunk_;
};

}  // namespace purser::client
