// SPDX-License-Identifier: Apache-2.0
#include "client/queue_pair.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "client/connection.h"
#include "spdlog/fmt/fmt.h"

namespace purser::client {
namespace {

using Stub = v1::Sidecar::Stub;

constexpr size_t kGidBytes = 16;
constexpr size_t kSubnetPrefixBytes = 8;

bool IsZero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

// By LID within an InfiniBand subnet, by GID everywhere else.
absl::StatusOr<v1::AddressVector> AddressOf(const v1::Endpoint& local,
                                            const v1::Endpoint& remote) {
  const bool has_gid =
      remote.gid().size() == kGidBytes && !IsZero(remote.gid());
  const bool has_lids = local.lid() != 0 && remote.lid() != 0;
  if (!has_gid && !has_lids)
    return absl::InvalidArgumentError(fmt::format(
        "the peer's endpoint has no address: a GID of {} bytes{} and LID {}",
        remote.gid().size(), remote.gid().empty() || has_gid ? "" : ", all 0",
        remote.lid()));
  v1::AddressVector address;
  if (has_lids) address.set_dlid(remote.lid());
  const bool same_subnet = remote.gid().substr(0, kSubnetPrefixBytes) ==
                           local.gid().substr(0, kSubnetPrefixBytes);
  if (has_gid && !(has_lids && same_subnet)) address.set_dgid(remote.gid());
  return address;
}

absl::StatusOr<uint32_t> PathMtu(const v1::Endpoint& local,
                                 const v1::Endpoint& remote, uint32_t asked) {
  uint32_t mtu = asked;
  if (mtu == 0) mtu = local.mtu();
  if (asked == 0 && remote.mtu() != 0)
    mtu = mtu == 0 ? remote.mtu() : std::min(mtu, remote.mtu());
  if (mtu < 256 || mtu > 4096 || (mtu & (mtu - 1)) != 0)
    return absl::InvalidArgumentError(fmt::format(
        "path_mtu {} is none of 256, 512, 1024, 2048, 4096 bytes (asked {}, "
        "this port {}, the peer's {})",
        mtu, asked, local.mtu(), remote.mtu()));
  return mtu;
}

v1::ModifyQueuePairRequest ToInit(const v1::Endpoint& local,
                                  const ConnectionParameters& parameters) {
  v1::ModifyQueuePairRequest request;
  request.set_state(v1::QUEUE_PAIR_STATE_INIT);
  request.set_port_num(local.port_num());
  request.set_pkey_index(parameters.pkey_index);
  request.set_qp_access_flags(parameters.access);
  return request;
}

v1::ModifyQueuePairRequest ToRtr(bool reliable, const v1::Endpoint& remote,
                                 uint32_t path_mtu, v1::AddressVector address,
                                 const ConnectionParameters& parameters) {
  v1::ModifyQueuePairRequest request;
  request.set_state(v1::QUEUE_PAIR_STATE_RTR);
  *request.mutable_ah_attr() = std::move(address);
  request.set_path_mtu(path_mtu);
  request.set_dest_qp_num(remote.qp_num());
  request.set_rq_psn(parameters.rq_psn);
  if (reliable) {
    request.set_max_dest_rd_atomic(parameters.max_dest_rd_atomic);
    request.set_min_rnr_timer(parameters.min_rnr_timer);
  }
  return request;
}

v1::ModifyQueuePairRequest ToRts(bool reliable,
                                 const ConnectionParameters& parameters) {
  v1::ModifyQueuePairRequest request;
  request.set_state(v1::QUEUE_PAIR_STATE_RTS);
  request.set_sq_psn(parameters.sq_psn);
  if (reliable) {
    request.set_timeout(parameters.timeout);
    request.set_retry_cnt(parameters.retry_cnt);
    request.set_rnr_retry(parameters.rnr_retry);
    request.set_max_rd_atomic(parameters.max_rd_atomic);
  }
  return request;
}

}  // namespace

QueuePair::QueuePair(Connection& connection,
                     v1::CreateQueuePairResponse created)
    : connection_(&connection),
      properties_(std::move(*created.mutable_queue_pair())) {
  if (created.has_shrunk()) shrunk_ = std::move(*created.mutable_shrunk());
}

QueuePair::QueuePair(QueuePair&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)),
      properties_(std::move(other.properties_)),
      shrunk_(std::move(other.shrunk_)) {}

QueuePair& QueuePair::operator=(QueuePair&& other) noexcept {
  if (this == &other) return *this;
  Destroy();
  connection_ = std::exchange(other.connection_, nullptr);
  properties_ = std::move(other.properties_);
  shrunk_ = std::move(other.shrunk_);
  return *this;
}

QueuePair::~QueuePair() { Destroy(); }

void QueuePair::Destroy() {
  Connection* connection = std::exchange(connection_, nullptr);
  if (connection == nullptr || properties_.detached()) return;
  v1::DestroyQueuePairRequest request;
  request.set_id(id());
  // Whatever fails here, the end of the Attach stream mends.
  (void)connection->Call("DestroyQueuePair", &Stub::DestroyQueuePair,
                         std::move(request));
}

absl::Status QueuePair::Connect(const v1::Endpoint& remote,
                                const ConnectionParameters& parameters) {
  if (properties_.type() != v1::QUEUE_PAIR_TYPE_RC &&
      properties_.type() != v1::QUEUE_PAIR_TYPE_UC)
    return absl::InvalidArgumentError(
        fmt::format("queue pair {} is {}: only RC and UC connect to one peer",
                    id(), v1::QueuePairType_Name(properties_.type())));
  const bool reliable = properties_.type() == v1::QUEUE_PAIR_TYPE_RC;
  PURSER_ASSIGN_OR_RETURN(v1::AddressVector address,
                          AddressOf(local(), remote));
  PURSER_ASSIGN_OR_RETURN(const uint32_t path_mtu,
                          PathMtu(local(), remote, parameters.path_mtu));
  PURSER_RETURN_IF_ERROR(Modify(ToInit(local(), parameters)));
  PURSER_RETURN_IF_ERROR(Modify(
      ToRtr(reliable, remote, path_mtu, std::move(address), parameters)));
  return Modify(ToRts(reliable, parameters));
}

absl::Status QueuePair::Modify(v1::ModifyQueuePairRequest request) {
  request.set_id(id());
  PURSER_ASSIGN_OR_RETURN(
      v1::ModifyQueuePairResponse response,
      connection_->Call("ModifyQueuePair", &Stub::ModifyQueuePair,
                        std::move(request)));
  properties_ = std::move(*response.mutable_queue_pair());
  return absl::OkStatus();
}

absl::StatusOr<v1::PostResponse> QueuePair::PostSend(
    std::span<const v1::SendWorkRequest> requests) {
  v1::PostSendRequest request;
  request.set_id(id());
  request.mutable_work_requests()->Add(requests.begin(), requests.end());
  return connection_->Call("PostSend", &Stub::PostSend, std::move(request));
}

absl::StatusOr<v1::PostResponse> QueuePair::PostReceive(
    std::span<const v1::ReceiveWorkRequest> requests) {
  v1::PostReceiveRequest request;
  request.set_id(id());
  request.mutable_work_requests()->Add(requests.begin(), requests.end());
  return connection_->Call("PostReceive", &Stub::PostReceive,
                           std::move(request));
}

absl::StatusOr<std::vector<v1::WorkCompletion>> QueuePair::Poll(
    uint32_t max_entries, std::chrono::milliseconds wait) {
  wait = std::clamp<std::chrono::milliseconds>(
      wait, std::chrono::milliseconds(0), kMaxWait);
  v1::PollCompletionsRequest request;
  request.set_id(id());
  request.set_max_entries(max_entries);
  request.mutable_wait()->set_seconds(wait.count() / 1000);
  request.mutable_wait()->set_nanos(
      static_cast<int32_t>(wait.count() % 1000 * 1'000'000));
  PURSER_ASSIGN_OR_RETURN(
      v1::PollCompletionsResponse response,
      connection_->Call("PollCompletions", &Stub::PollCompletions,
                        std::move(request), wait));
  return std::vector<v1::WorkCompletion>(
      std::make_move_iterator(response.mutable_completions()->begin()),
      std::make_move_iterator(response.mutable_completions()->end()));
}

}  // namespace purser::client
