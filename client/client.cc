// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"

#include <utility>

#include "base/status_macros.h"
#include "client/connection.h"
#include "spdlog/fmt/fmt.h"

namespace purser::client {

using Stub = v1::Sidecar::Stub;

Client::Client(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(
    const std::string& socket_path, const std::string& name,
    const Options& options) {
  PURSER_ASSIGN_OR_RETURN(
      std::unique_ptr<Connection> connection,
      Connection::Open(socket_path, name, options.rpc_timeout));
  return std::unique_ptr<Client>(new Client(std::move(connection)));
}

const std::vector<v1::Device>& Client::devices() const {
  return connection_->devices();
}

absl::Status Client::status() const { return connection_->status(); }

absl::Status Client::WaitUntilGone(std::chrono::milliseconds timeout) const {
  return connection_->WaitUntilGone(timeout);
}

std::vector<std::string> Client::lost_devices() const {
  return connection_->lost_devices();
}

absl::StatusOr<QueuePair> Client::CreateQueuePair(const QueuePairSpec& spec) {
  v1::CreateQueuePairRequest request;
  request.set_device(spec.device);
  request.set_type(spec.type);
  *request.mutable_cap() = spec.cap;
  request.set_class_(spec.class_name);
  if (spec.least) *request.mutable_least() = *spec.least;
  request.set_detached(spec.detached);
  if (spec.completion_queue.choice_case() !=
      v1::CompletionQueueChoice::CHOICE_NOT_SET)
    *request.mutable_completion_queue() = spec.completion_queue;
  request.set_shared_receive_queue_id(spec.shared_receive_queue_id);
  request.mutable_send_operations()->Add(spec.send_operations.begin(),
                                         spec.send_operations.end());
  PURSER_ASSIGN_OR_RETURN(
      v1::CreateQueuePairResponse response,
      connection_->Call("CreateQueuePair", &Stub::CreateQueuePair,
                        std::move(request)));
  return QueuePair(*connection_, std::move(response));
}

absl::StatusOr<std::vector<v1::QueuePair>> Client::List() {
  std::vector<v1::QueuePair> queue_pairs;
  v1::ListQueuePairsRequest request;
  while (true) {
    PURSER_ASSIGN_OR_RETURN(
        v1::ListQueuePairsResponse page,
        connection_->Call("ListQueuePairs", &Stub::ListQueuePairs, request));
    queue_pairs.insert(queue_pairs.end(), page.queue_pairs().begin(),
                       page.queue_pairs().end());
    if (!page.more()) return queue_pairs;
    if (page.queue_pairs().empty() ||
        queue_pairs.back().id() <= request.after_id())
      return absl::InternalError(
          fmt::format("the sidecar's list does not advance after queue pair {}",
                      request.after_id()));
    request.set_after_id(queue_pairs.back().id());
  }
}

absl::StatusOr<uint64_t> Client::Destroy(uint64_t id) {
  v1::DestroyQueuePairRequest request;
  request.set_id(id);
  PURSER_ASSIGN_OR_RETURN(
      v1::DestroyQueuePairResponse response,
      connection_->Call("DestroyQueuePair", &Stub::DestroyQueuePair,
                        std::move(request)));
  return response.returned_bytes();
}

absl::StatusOr<v1::GetBudgetResponse> Client::Budget() {
  return connection_->Call("GetBudget", &Stub::GetBudget,
                           v1::GetBudgetRequest());
}

absl::StatusOr<v1::GetStatusResponse> Client::SidecarStatus() {
  return connection_->Call("GetStatus", &Stub::GetStatus,
                           v1::GetStatusRequest());
}

absl::StatusOr<v1::SharedReceiveQueue> Client::CreateSharedReceiveQueue(
    uint32_t max_wr, uint32_t max_sge, const std::string& device,
    const std::string& class_name) {
  v1::CreateSharedReceiveQueueRequest request;
  request.set_max_wr(max_wr);
  request.set_max_sge(max_sge);
  request.set_device(device);
  request.set_class_(class_name);
  PURSER_ASSIGN_OR_RETURN(
      v1::CreateSharedReceiveQueueResponse response,
      connection_->Call("CreateSharedReceiveQueue",
                        &Stub::CreateSharedReceiveQueue, std::move(request)));
  return std::move(*response.mutable_shared_receive_queue());
}

absl::StatusOr<v1::PostResponse> Client::PostSharedReceive(
    uint64_t id, std::span<const v1::ReceiveWorkRequest> requests) {
  v1::PostReceiveRequest request;
  request.set_shared_receive_queue_id(id);
  request.mutable_work_requests()->Add(requests.begin(), requests.end());
  return connection_->Call("PostReceive", &Stub::PostReceive,
                           std::move(request));
}

absl::StatusOr<uint64_t> Client::DestroySharedReceiveQueue(uint64_t id) {
  v1::DestroySharedReceiveQueueRequest request;
  request.set_id(id);
  PURSER_ASSIGN_OR_RETURN(
      v1::DestroySharedReceiveQueueResponse response,
      connection_->Call("DestroySharedReceiveQueue",
                        &Stub::DestroySharedReceiveQueue, std::move(request)));
  return response.returned_bytes();
}

absl::StatusOr<v1::RegisterMemoryResponse> Client::RegisterMemory(
    const std::string& path, uint64_t offset, uint64_t length, uint32_t access,
    const std::string& device) {
  v1::RegisterMemoryRequest request;
  request.set_path(path);
  request.set_offset(offset);
  request.set_length(length);
  request.set_access(access);
  request.set_device(device);
  return connection_->Call("RegisterMemory", &Stub::RegisterMemory,
                           std::move(request));
}

absl::Status Client::DeregisterMemory(uint64_t region_id) {
  v1::DeregisterMemoryRequest request;
  request.set_region_id(region_id);
  return connection_
      ->Call("DeregisterMemory", &Stub::DeregisterMemory, std::move(request))
      .status();
}

}  // namespace purser::client
