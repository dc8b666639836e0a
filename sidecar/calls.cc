// SPDX-License-Identifier: Apache-2.0
#include "sidecar/calls.h"

#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "sidecar/create_request.h"
#include "sidecar/grpc_status.h"
#include "sidecar/messages.h"
#include "sidecar/modify_attributes.h"
#include "sidecar/posting.h"
#include "sidecar/status.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr uint32_t kMaxPageSize = 1000;
constexpr int kMaxWorkRequests = 4096;

absl::Status CheckWorkRequests(int count) {
  if (count <= kMaxWorkRequests) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} work requests in one call; at most {} are taken", count,
                  kMaxWorkRequests));
}

grpc::Status Fill(const PostResult& result, v1::PostResponse& response) {
  if (!result.ended.ok()) return ToGrpcStatus(result.ended);
  response.set_posted(result.posted);
  if (result.error_number == 0) return grpc::Status::OK;
  v1::PostFailure* failure = response.mutable_failure();
  failure->set_error_number(result.error_number);
  failure->set_error_name(rdma::ErrnoName(result.error_number));
  failure->set_message(result.message);
  return grpc::Status::OK;
}

}  // namespace

grpc::Status Calls::CreateQueuePair(const v1::CreateQueuePairRequest& request,
                                    v1::CreateQueuePairResponse& response) {
  const absl::StatusOr<Device*> device = broker_.FindDevice(request.device());
  if (!device.ok()) return ToGrpcStatus(device.status());
  const absl::StatusOr<QueuePairs::CreateRequest> create =
      CreateRequestOf(request, **device);
  if (!create.ok()) return ToGrpcStatus(create.status());
  std::optional<Refusal> shrunk;
  const QueuePairs::CreateResult result =
      broker_.queue_pairs().Create(*create, &shrunk);
  if (const auto* refusal = std::get_if<Refusal>(&result))
    return ToGrpcStatus(*refusal);
  if (const auto* status = std::get_if<absl::Status>(&result))
    return ToGrpcStatus(*status);
  *response.mutable_queue_pair() =
      QueuePairMessage(*std::get<std::shared_ptr<BrokeredQueuePair>>(result),
                       EndpointMessage(**device));
  if (shrunk) {
    v1::Shrunk& less = *response.mutable_shrunk();
    *less.mutable_wanted() = request.cap();
    *less.mutable_refusal() = RefusalMessage(*shrunk);
    less.set_why(shrunk->message);
  }
  return grpc::Status::OK;
}

grpc::Status Calls::ModifyQueuePair(const v1::ModifyQueuePairRequest& request,
                                    v1::ModifyQueuePairResponse& response) {
  const auto queue_pair =
      broker_.queue_pairs().Find(request.client_id(), request.id());
  if (!queue_pair.ok()) return ToGrpcStatus(queue_pair.status());
  const Device& device = *(*queue_pair)->facts().device;
  const absl::StatusOr<ModifyAttributes> attributes =
      ModifyAttributesOf(request, device);
  if (!attributes.ok()) return ToGrpcStatus(attributes.status());
  if (absl::Status status =
          (*queue_pair)->Modify(attributes->attr, attributes->mask);
      !status.ok())
    return ToGrpcStatus(status);
  *response.mutable_queue_pair() =
      QueuePairMessage(**queue_pair, EndpointMessage(device));
  return grpc::Status::OK;
}

grpc::Status Calls::DestroyQueuePair(const v1::DestroyQueuePairRequest& request,
                                     v1::DestroyQueuePairResponse& response) {
  const auto ended =
      broker_.queue_pairs().Destroy(request.client_id(), request.id());
  if (!ended.ok()) return ToGrpcStatus(ended.status());
  response.set_returned_bytes(ended->returned_bytes);
  response.set_not_yet_destroyed(ended->not_yet_destroyed);
  return grpc::Status::OK;
}

grpc::Status Calls::ListQueuePairs(const v1::ListQueuePairsRequest& request,
                                   v1::ListQueuePairsResponse& response) {
  if (request.page_size() > kMaxPageSize)
    return ToGrpcStatus(absl::InvalidArgumentError(fmt::format(
        "page_size {}: {} is the largest", request.page_size(), kMaxPageSize)));
  const QueuePairs::Page page = broker_.queue_pairs().List(
      request.after_id(),
      request.page_size() == 0 ? kMaxPageSize : request.page_size());
  std::map<const Device*, v1::Endpoint> endpoints;  // looked up once each
  for (const auto& queue_pair : page.queue_pairs) {
    const Device* device = queue_pair->facts().device;
    auto endpoint = endpoints.find(device);
    if (endpoint == endpoints.end())
      endpoint = endpoints.emplace(device, EndpointMessage(*device)).first;
    *response.add_queue_pairs() =
        QueuePairMessage(*queue_pair, endpoint->second);
  }
  response.set_more(page.more);
  return grpc::Status::OK;
}

grpc::Status Calls::GetBudget(const v1::GetBudgetRequest&,
                              v1::GetBudgetResponse& response) {
  response = BudgetMessage(admission_, ledger_.balance());
  response.set_queue_pairs(
      static_cast<uint32_t>(broker_.queue_pairs().count()));
  uint64_t refusals = 0;
  for (const auto& [labels, count] : counters_.admissions.Snapshot())
    if (std::get<0>(labels) == "refused") refusals += count;
  response.set_refusals(refusals);
  return grpc::Status::OK;
}

grpc::Status Calls::GetStatus(const v1::GetStatusRequest&,
                              v1::GetStatusResponse& response) {
  response = StatusMessage(broker_);
  return GetBudget({}, *response.mutable_budget());
}

grpc::Status Calls::CreateSharedReceiveQueue(
    const v1::CreateSharedReceiveQueueRequest& request,
    v1::CreateSharedReceiveQueueResponse& response) {
  const absl::StatusOr<Device*> device = broker_.FindDevice(request.device());
  if (!device.ok()) return ToGrpcStatus(device.status());
  const SharedReceiveQueues::CreateResult result =
      broker_.shared_receive_queues().Create(
          {.client_id = request.client_id(),
           .device = *device,
           .wanted = {.max_wr = request.max_wr(), .max_sge = request.max_sge()},
           .class_name = request.class_()});
  if (const auto* refusal = std::get_if<Refusal>(&result))
    return ToGrpcStatus(*refusal);
  if (const auto* status = std::get_if<absl::Status>(&result))
    return ToGrpcStatus(*status);
  *response.mutable_shared_receive_queue() =
      SharedReceiveQueueMessage(*std::get<SharedReceiveQueues::Queue>(result));
  return grpc::Status::OK;
}

grpc::Status Calls::DestroySharedReceiveQueue(
    const v1::DestroySharedReceiveQueueRequest& request,
    v1::DestroySharedReceiveQueueResponse& response) {
  const auto ended = broker_.shared_receive_queues().Destroy(
      request.client_id(), request.id());
  if (!ended.ok()) return ToGrpcStatus(ended.status());
  response.set_returned_bytes(ended->returned_bytes);
  response.set_not_yet_destroyed(ended->not_yet_destroyed);
  return grpc::Status::OK;
}

grpc::Status Calls::RegisterMemory(const v1::RegisterMemoryRequest& request,
                                   v1::RegisterMemoryResponse& response) {
  const absl::StatusOr<Device*> device = broker_.FindDevice(request.device());
  if (!device.ok()) return ToGrpcStatus(device.status());
  const auto region =
      broker_.regions().Register(**device, {.client_id = request.client_id(),
                                            .path = request.path(),
                                            .offset = request.offset(),
                                            .length = request.length(),
                                            .access = request.access()});
  if (!region.ok()) return ToGrpcStatus(region.status());
  response.set_region_id((*region)->id);
  response.set_rkey((*region)->mr->rkey);
  response.set_remote_addr(
      reinterpret_cast<uintptr_t>((*region)->mapping.address()));
  return grpc::Status::OK;
}

grpc::Status Calls::DeregisterMemory(const v1::DeregisterMemoryRequest& request,
                                     v1::DeregisterMemoryResponse&) {
  return ToGrpcStatus(
      broker_.regions().Deregister(request.client_id(), request.region_id()));
}

grpc::Status Calls::PostSend(const v1::PostSendRequest& request,
                             v1::PostResponse& response) {
  const auto queue_pair =
      broker_.queue_pairs().Find(request.client_id(), request.id());
  if (!queue_pair.ok()) return ToGrpcStatus(queue_pair.status());
  if (absl::Status status = CheckWorkRequests(request.work_requests_size());
      !status.ok())
    return ToGrpcStatus(status);
  return Fill(PostSends(request, broker_.regions(), **queue_pair), response);
}

grpc::Status Calls::PostReceive(const v1::PostReceiveRequest& request,
                                v1::PostResponse& response) {
  if (request.shared_receive_queue_id() != 0)
    return PostSharedReceive(request, response);
  const auto queue_pair =
      broker_.queue_pairs().Find(request.client_id(), request.id());
  if (!queue_pair.ok()) return ToGrpcStatus(queue_pair.status());
  if (absl::Status status = CheckWorkRequests(request.work_requests_size());
      !status.ok())
    return ToGrpcStatus(status);
  return Fill(PostReceives(request, broker_.regions(), **queue_pair), response);
}

grpc::Status Calls::PostSharedReceive(const v1::PostReceiveRequest& request,
                                      v1::PostResponse& response) {
  if (request.id() != 0)
    return ToGrpcStatus(absl::InvalidArgumentError(
        "id and shared_receive_queue_id are both set: name one"));
  const auto queue = broker_.shared_receive_queues().Find(
      request.client_id(), request.shared_receive_queue_id());
  if (!queue.ok()) return ToGrpcStatus(queue.status());
  if (absl::Status status = CheckWorkRequests(request.work_requests_size());
      !status.ok())
    return ToGrpcStatus(status);
  return Fill(PostReceives(request, broker_.regions(), **queue), response);
}

}  // namespace purser::sidecar
