// SPDX-License-Identifier: Apache-2.0
//
// The gRPC service purser.v1.Sidecar: checks what comes in, calls the Broker,
// and puts its answers and refusals into messages. Registered with a
// grpc::Server by the App; outlives it. Attach and PollCompletions go by the
// callback API: an attached client and a waiting poll hold no thread. The
// others run on the server's threads and end within milliseconds.
#pragma once

#include <memory>

#include "ledger/ledger.h"
#include "purser/v1/sidecar.grpc.pb.h"
#include "sidecar/broker.h"
#include "sidecar/budget.h"
#include "sidecar/counters.h"

namespace purser::sidecar {

class AttachStreams;

class Service final : public v1::Sidecar::WithCallbackMethod_Attach<
                          v1::Sidecar::WithCallbackMethod_PollCompletions<
                              v1::Sidecar::Service>> {
 public:
  Service(Broker& broker, ledger::Ledger ledger, const Budget& budget,
          const Counters& counters);
  ~Service() override;

  // Ends the Attach streams with UNAVAILABLE and refuses new ones. Before
  // grpc::Server::Shutdown(), which would wait for them.
  void Stop();

  grpc::ServerWriteReactor<v1::AttachEvent>* Attach(
      grpc::CallbackServerContext* context,
      const v1::AttachRequest* request) override;
  grpc::ServerUnaryReactor* PollCompletions(
      grpc::CallbackServerContext* context,
      const v1::PollCompletionsRequest* request,
      v1::PollCompletionsResponse* response) override;

  grpc::Status CreateQueuePair(grpc::ServerContext* context,
                               const v1::CreateQueuePairRequest* request,
                               v1::CreateQueuePairResponse* response) override;
  grpc::Status ModifyQueuePair(grpc::ServerContext* context,
                               const v1::ModifyQueuePairRequest* request,
                               v1::ModifyQueuePairResponse* response) override;
  grpc::Status DestroyQueuePair(
      grpc::ServerContext* context, const v1::DestroyQueuePairRequest* request,
      v1::DestroyQueuePairResponse* response) override;
  grpc::Status ListQueuePairs(grpc::ServerContext* context,
                              const v1::ListQueuePairsRequest* request,
                              v1::ListQueuePairsResponse* response) override;
  grpc::Status GetBudget(grpc::ServerContext* context,
                         const v1::GetBudgetRequest* request,
                         v1::GetBudgetResponse* response) override;
  grpc::Status RegisterMemory(grpc::ServerContext* context,
                              const v1::RegisterMemoryRequest* request,
                              v1::RegisterMemoryResponse* response) override;
  grpc::Status DeregisterMemory(
      grpc::ServerContext* context, const v1::DeregisterMemoryRequest* request,
      v1::DeregisterMemoryResponse* response) override;
  grpc::Status PostSend(grpc::ServerContext* context,
                        const v1::PostSendRequest* request,
                        v1::PostResponse* response) override;
  grpc::Status PostReceive(grpc::ServerContext* context,
                           const v1::PostReceiveRequest* request,
                           v1::PostResponse* response) override;

 private:
  Broker& broker_;
  const ledger::Ledger ledger_;
  const Budget& budget_;
  const Counters& counters_;
  const std::unique_ptr<AttachStreams> streams_;
};

}  // namespace purser::sidecar
