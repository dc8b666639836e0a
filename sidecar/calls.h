// SPDX-License-Identifier: Apache-2.0
//
// What the calls of purser.v1.Sidecar do, one function for each, without their
// transport: checks what comes in, calls the Broker, and puts its answers and
// refusals into messages. They may block for as long as the device takes. Any
// thread.
#pragma once

#include "grpcpp/support/status.h"
#include "ledger/ledger.h"
#include "purser/v1/sidecar.pb.h"
#include "sidecar/admission.h"
#include "sidecar/broker.h"
#include "sidecar/counters.h"

namespace purser::sidecar {

class Calls {
 public:
  Calls(Broker& broker, ledger::Ledger ledger, const Admission& admission,
        const Counters& counters)
      : broker_(broker),
        ledger_(ledger),
        admission_(admission),
        counters_(counters) {}

  grpc::Status CreateQueuePair(const v1::CreateQueuePairRequest& request,
                               v1::CreateQueuePairResponse& response);
  grpc::Status ModifyQueuePair(const v1::ModifyQueuePairRequest& request,
                               v1::ModifyQueuePairResponse& response);
  grpc::Status DestroyQueuePair(const v1::DestroyQueuePairRequest& request,
                                v1::DestroyQueuePairResponse& response);
  grpc::Status ListQueuePairs(const v1::ListQueuePairsRequest& request,
                              v1::ListQueuePairsResponse& response);
  grpc::Status GetBudget(const v1::GetBudgetRequest& request,
                         v1::GetBudgetResponse& response);
  grpc::Status GetStatus(const v1::GetStatusRequest& request,
                         v1::GetStatusResponse& response);
  grpc::Status CreateSharedReceiveQueue(
      const v1::CreateSharedReceiveQueueRequest& request,
      v1::CreateSharedReceiveQueueResponse& response);
  grpc::Status DestroySharedReceiveQueue(
      const v1::DestroySharedReceiveQueueRequest& request,
      v1::DestroySharedReceiveQueueResponse& response);
  grpc::Status RegisterMemory(const v1::RegisterMemoryRequest& request,
                              v1::RegisterMemoryResponse& response);
  grpc::Status DeregisterMemory(const v1::DeregisterMemoryRequest& request,
                                v1::DeregisterMemoryResponse& response);
  grpc::Status PostSend(const v1::PostSendRequest& request,
                        v1::PostResponse& response);
  grpc::Status PostReceive(const v1::PostReceiveRequest& request,
                           v1::PostResponse& response);

 private:
  grpc::Status PostSharedReceive(const v1::PostReceiveRequest& request,
                                 v1::PostResponse& response);

  Broker& broker_;
  const ledger::Ledger ledger_;
  const Admission& admission_;
  const Counters& counters_;
};

}  // namespace purser::sidecar
