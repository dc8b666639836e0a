// SPDX-License-Identifier: Apache-2.0
//
// The gRPC service purser.v1.Sidecar: who runs which call. Registered with a
// grpc::Server by the App; outlives it. All by the callback API: an attached
// client and a waiting poll hold no thread, and calls that may block run on
// workers, so that however many clients call at one time, and however long the
// device takes, there are kMaxThreads of them.
#pragma once

#include <atomic>
#include <memory>

#include "ledger/ledger.h"
#include "purser/v1/sidecar.grpc.pb.h"
#include "sidecar/admission.h"
#include "sidecar/broker.h"
#include "sidecar/calls.h"
#include "sidecar/counters.h"
#include "sidecar/workers.h"

namespace purser::sidecar {

class AttachStreams;

class Service final : public v1::Sidecar::CallbackService {
 public:
  static constexpr size_t kMaxThreads = 32;
  static constexpr size_t kMaxWaitingCalls = 1024;

  Service(Broker& broker, ledger::Ledger ledger, const Admission& admission,
          const Counters& counters);
  // Once the server has ended.
  ~Service() override;

  // Ends the Attach streams with UNAVAILABLE and refuses new ones, and calls
  // that have not begun. Before grpc::Server::Shutdown(), which would wait for
  // them.
  void Stop();

  grpc::ServerWriteReactor<v1::AttachEvent>* Attach(
      grpc::CallbackServerContext* context,
      const v1::AttachRequest* request) override;
  grpc::ServerUnaryReactor* PollCompletions(
      grpc::CallbackServerContext* context,
      const v1::PollCompletionsRequest* request,
      v1::PollCompletionsResponse* response) override;

  grpc::ServerUnaryReactor* CreateQueuePair(
      grpc::CallbackServerContext* context,
      const v1::CreateQueuePairRequest* request,
      v1::CreateQueuePairResponse* response) override;
  grpc::ServerUnaryReactor* ModifyQueuePair(
      grpc::CallbackServerContext* context,
      const v1::ModifyQueuePairRequest* request,
      v1::ModifyQueuePairResponse* response) override;
  grpc::ServerUnaryReactor* DestroyQueuePair(
      grpc::CallbackServerContext* context,
      const v1::DestroyQueuePairRequest* request,
      v1::DestroyQueuePairResponse* response) override;
  grpc::ServerUnaryReactor* ListQueuePairs(
      grpc::CallbackServerContext* context,
      const v1::ListQueuePairsRequest* request,
      v1::ListQueuePairsResponse* response) override;
  grpc::ServerUnaryReactor* GetBudget(grpc::CallbackServerContext* context,
                                      const v1::GetBudgetRequest* request,
                                      v1::GetBudgetResponse* response) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* CreateSharedReceiveQueue(
      grpc::CallbackServerContext* context,
      const v1::CreateSharedReceiveQueueRequest* request,
      v1::CreateSharedReceiveQueueResponse* response) override;
  grpc::ServerUnaryReactor* DestroySharedReceiveQueue(
      grpc::CallbackServerContext* context,
      const v1::DestroySharedReceiveQueueRequest* request,
      v1::DestroySharedReceiveQueueResponse* response) override;
  grpc::ServerUnaryReactor* RegisterMemory(
      grpc::CallbackServerContext* context,
      const v1::RegisterMemoryRequest* request,
      v1::RegisterMemoryResponse* response) override;
  grpc::ServerUnaryReactor* DeregisterMemory(
      grpc::CallbackServerContext* context,
      const v1::DeregisterMemoryRequest* request,
      v1::DeregisterMemoryResponse* response) override;
  grpc::ServerUnaryReactor* PostSend(grpc::CallbackServerContext* context,
                                     const v1::PostSendRequest* request,
                                     v1::PostResponse* response) override;
  grpc::ServerUnaryReactor* PostReceive(grpc::CallbackServerContext* context,
                                        const v1::PostReceiveRequest* request,
                                        v1::PostResponse* response) override;

 private:
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Dispatch(grpc::CallbackServerContext* context,
                                     const Request* request, Response* response,
                                     grpc::Status (Calls::*call)(const Request&,
                                                                 Response&));

  Broker& broker_;
  Calls calls_;
  const std::unique_ptr<AttachStreams> streams_;
  std::atomic<bool> stopping_ = false;
  Workers workers_;
};

}  // namespace purser::sidecar
