// SPDX-License-Identifier: Apache-2.0
#include "sidecar/service.h"

#include <chrono>
#include <memory>
#include <utility>

#include "sidecar/attach_streams.h"
#include "sidecar/grpc_status.h"
#include "sidecar/messages.h"
#include "sidecar/waiting_poll.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr uint32_t kMaxEntries = 4096;
constexpr uint32_t kDefaultEntries = 256;
constexpr std::chrono::seconds kMaxWait(10);

absl::StatusOr<std::chrono::milliseconds> WaitOf(
    const v1::PollCompletionsRequest& request) {
  if (request.max_entries() > kMaxEntries)
    return absl::InvalidArgumentError(
        fmt::format("max_entries {}: at most {} are taken",
                    request.max_entries(), kMaxEntries));
  const google::protobuf::Duration& wait = request.wait();
  if (wait.seconds() < 0 || wait.nanos() < 0 || wait.nanos() > 999'999'999 ||
      wait.seconds() > kMaxWait.count() ||
      (wait.seconds() == kMaxWait.count() && wait.nanos() > 0))
    return absl::InvalidArgumentError(
        fmt::format("wait {}s {}ns: it must be from 0 to {} s", wait.seconds(),
                    wait.nanos(), kMaxWait.count()));
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::seconds(wait.seconds()) +
      std::chrono::nanoseconds(wait.nanos()));
}

// Deletes itself when gRPC is done with it.
class PollReactor final : public grpc::ServerUnaryReactor {
 public:
  void Wait(std::shared_ptr<BrokeredQueuePair> queue_pair, uint32_t max_entries,
            std::chrono::milliseconds wait,
            v1::PollCompletionsResponse* response) {
    poll_ = std::make_shared<WaitingPoll>(
        std::move(queue_pair), max_entries, response,
        [this](const grpc::Status& status) { Finish(status); });
    poll_->Start(wait);
  }

 private:
  void OnCancel() override {
    if (poll_ != nullptr) poll_->Cancel();
  }
  void OnDone() override { delete this; }

  std::shared_ptr<WaitingPoll> poll_;
};

}  // namespace

Service::Service(Broker& broker, ledger::Ledger ledger,
                 const Admission& admission, const Counters& counters)
    : broker_(broker),
      calls_(broker, ledger, admission, counters),
      streams_(std::make_unique<AttachStreams>(broker)),
      workers_(kMaxThreads, kMaxWaitingCalls) {}

Service::~Service() = default;

void Service::Stop() {
  stopping_ = true;
  streams_->Stop();
}

grpc::ServerWriteReactor<v1::AttachEvent>* Service::Attach(
    grpc::CallbackServerContext*, const v1::AttachRequest* request) {
  return streams_->Open(*request);
}

grpc::ServerUnaryReactor* Service::PollCompletions(
    grpc::CallbackServerContext*, const v1::PollCompletionsRequest* request,
    v1::PollCompletionsResponse* response) {
  auto* reactor = new PollReactor;
  const absl::StatusOr<std::chrono::milliseconds> wait = WaitOf(*request);
  if (!wait.ok()) {
    reactor->Finish(ToGrpcStatus(wait.status()));
    return reactor;
  }
  absl::StatusOr<std::shared_ptr<BrokeredQueuePair>> queue_pair =
      broker_.queue_pairs().Find(request->client_id(), request->id());
  if (!queue_pair.ok()) {
    reactor->Finish(ToGrpcStatus(queue_pair.status()));
    return reactor;
  }
  const uint32_t max_entries =
      request->max_entries() == 0 ? kDefaultEntries : request->max_entries();
  const auto completions = (*queue_pair)->Poll(max_entries);
  if (completions.ok() && completions->empty() && wait->count() > 0) {
    reactor->Wait(*std::move(queue_pair), max_entries, *wait, response);
    return reactor;
  }
  if (completions.ok()) AddCompletions(*completions, *response);
  reactor->Finish(ToGrpcStatus(completions.status()));
  return reactor;
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* Service::Dispatch(
    grpc::CallbackServerContext* context, const Request* request,
    Response* response,
    grpc::Status (Calls::*call)(const Request&, Response&)) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const bool taken = workers_.Run([=, this] {
    if (stopping_)
      reactor->Finish(
          {grpc::StatusCode::UNAVAILABLE, "the sidecar is stopping"});
    else if (context->IsCancelled())  // it waited for too long
      reactor->Finish(grpc::Status::CANCELLED);
    else
      reactor->Finish((calls_.*call)(*request, *response));
  });
  if (!taken)
    reactor->Finish(
        {grpc::StatusCode::RESOURCE_EXHAUSTED,
         fmt::format("{} calls wait already, behind {} that the device has not "
                     "answered: try again later, with fewer calls at one time",
                     kMaxWaitingCalls, kMaxThreads)});
  return reactor;
}

grpc::ServerUnaryReactor* Service::CreateQueuePair(
    grpc::CallbackServerContext* context,
    const v1::CreateQueuePairRequest* request,
    v1::CreateQueuePairResponse* response) {
  return Dispatch(context, request, response, &Calls::CreateQueuePair);
}

grpc::ServerUnaryReactor* Service::ModifyQueuePair(
    grpc::CallbackServerContext* context,
    const v1::ModifyQueuePairRequest* request,
    v1::ModifyQueuePairResponse* response) {
  return Dispatch(context, request, response, &Calls::ModifyQueuePair);
}

grpc::ServerUnaryReactor* Service::DestroyQueuePair(
    grpc::CallbackServerContext* context,
    const v1::DestroyQueuePairRequest* request,
    v1::DestroyQueuePairResponse* response) {
  return Dispatch(context, request, response, &Calls::DestroyQueuePair);
}

grpc::ServerUnaryReactor* Service::ListQueuePairs(
    grpc::CallbackServerContext* context,
    const v1::ListQueuePairsRequest* request,
    v1::ListQueuePairsResponse* response) {
  return Dispatch(context, request, response, &Calls::ListQueuePairs);
}

grpc::ServerUnaryReactor* Service::GetBudget(
    grpc::CallbackServerContext* context, const v1::GetBudgetRequest* request,
    v1::GetBudgetResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(calls_.GetBudget(*request, *response));  // asks no device
  return reactor;
}

grpc::ServerUnaryReactor* Service::GetStatus(
    grpc::CallbackServerContext* context, const v1::GetStatusRequest* request,
    v1::GetStatusResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(calls_.GetStatus(*request, *response));  // asks no device
  return reactor;
}

grpc::ServerUnaryReactor* Service::CreateSharedReceiveQueue(
    grpc::CallbackServerContext* context,
    const v1::CreateSharedReceiveQueueRequest* request,
    v1::CreateSharedReceiveQueueResponse* response) {
  return Dispatch(context, request, response, &Calls::CreateSharedReceiveQueue);
}

grpc::ServerUnaryReactor* Service::DestroySharedReceiveQueue(
    grpc::CallbackServerContext* context,
    const v1::DestroySharedReceiveQueueRequest* request,
    v1::DestroySharedReceiveQueueResponse* response) {
  return Dispatch(context, request, response,
                  &Calls::DestroySharedReceiveQueue);
}

grpc::ServerUnaryReactor* Service::RegisterMemory(
    grpc::CallbackServerContext* context,
    const v1::RegisterMemoryRequest* request,
    v1::RegisterMemoryResponse* response) {
  return Dispatch(context, request, response, &Calls::RegisterMemory);
}

grpc::ServerUnaryReactor* Service::DeregisterMemory(
    grpc::CallbackServerContext* context,
    const v1::DeregisterMemoryRequest* request,
    v1::DeregisterMemoryResponse* response) {
  return Dispatch(context, request, response, &Calls::DeregisterMemory);
}

grpc::ServerUnaryReactor* Service::PostSend(
    grpc::CallbackServerContext* context, const v1::PostSendRequest* request,
    v1::PostResponse* response) {
  return Dispatch(context, request, response, &Calls::PostSend);
}

grpc::ServerUnaryReactor* Service::PostReceive(
    grpc::CallbackServerContext* context, const v1::PostReceiveRequest* request,
    v1::PostResponse* response) {
  return Dispatch(context, request, response, &Calls::PostReceive);
}

}  // namespace purser::sidecar
