// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "sidecar/calls.h"
#include "tests/unit/sidecar/fake_sidecar.h"

namespace purser::sidecar {

// The service of a fake sidecar, called without a transport, and one client.
class CallsTest : public ::testing::Test {
 protected:
  explicit CallsTest(FakeSidecarOptions options = {})
      : sidecar_(std::move(options)),
        calls_(sidecar_.broker(), sidecar_.ledger(), sidecar_.admission(),
               sidecar_.counters()),
        client_(sidecar_.Attach("app")) {}

  v1::CreateQueuePairRequest CreateRequest() const {
    v1::CreateQueuePairRequest request;
    request.set_client_id(client_);
    request.mutable_cap()->set_max_send_wr(100);
    request.mutable_cap()->set_max_recv_wr(100);
    request.mutable_cap()->set_max_send_sge(2);
    request.mutable_cap()->set_max_recv_sge(2);
    return request;
  }
  grpc::Status Create(const v1::CreateQueuePairRequest& request,
                      v1::QueuePair* queue_pair = nullptr) {
    v1::CreateQueuePairResponse response;
    const grpc::Status status = calls_.CreateQueuePair(request, response);
    if (queue_pair != nullptr) *queue_pair = response.queue_pair();
    return status;
  }
  v1::QueuePair Created() {
    v1::QueuePair queue_pair;
    const grpc::Status status = Create(CreateRequest(), &queue_pair);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return queue_pair;
  }

  grpc::Status Modify(const v1::ModifyQueuePairRequest& request,
                      v1::QueuePair* queue_pair = nullptr) {
    v1::ModifyQueuePairResponse response;
    const grpc::Status status = calls_.ModifyQueuePair(request, response);
    if (queue_pair != nullptr) *queue_pair = response.queue_pair();
    return status;
  }

  // To RTS, to itself.
  void Connect(const v1::QueuePair& queue_pair) {
    v1::ModifyQueuePairRequest init;
    init.set_client_id(client_);
    init.set_id(queue_pair.id());
    init.set_state(v1::QUEUE_PAIR_STATE_INIT);
    init.set_port_num(1);
    init.set_pkey_index(0);
    init.set_qp_access_flags(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    v1::ModifyQueuePairRequest rtr;
    rtr.set_client_id(client_);
    rtr.set_id(queue_pair.id());
    rtr.set_state(v1::QUEUE_PAIR_STATE_RTR);
    rtr.set_path_mtu(queue_pair.local().mtu());
    rtr.set_dest_qp_num(queue_pair.qp_num());
    rtr.set_rq_psn(7);
    rtr.set_max_dest_rd_atomic(1);
    rtr.set_min_rnr_timer(12);
    rtr.mutable_ah_attr()->set_dgid(queue_pair.local().gid());
    v1::ModifyQueuePairRequest rts;
    rts.set_client_id(client_);
    rts.set_id(queue_pair.id());
    rts.set_state(v1::QUEUE_PAIR_STATE_RTS);
    rts.set_sq_psn(7);
    rts.set_timeout(14);
    rts.set_retry_cnt(7);
    rts.set_rnr_retry(7);
    rts.set_max_rd_atomic(1);
    for (const auto& request : {init, rtr, rts}) {
      const grpc::Status status = Modify(request);
      ASSERT_TRUE(status.ok()) << status.error_message();
    }
  }

  v1::RegisterMemoryResponse Register(const std::string& name, size_t size) {
    sidecar_.tree().Write("volume/" + name, std::string(size, '\0'));
    v1::RegisterMemoryRequest request;
    request.set_client_id(client_);
    request.set_path(name);
    request.set_length(size);
    request.set_access(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                       IBV_ACCESS_REMOTE_READ);
    v1::RegisterMemoryResponse response;
    const grpc::Status status = calls_.RegisterMemory(request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  v1::PostSendRequest SendRequest(uint64_t id, v1::SendOpcode opcode) const {
    v1::PostSendRequest request;
    request.set_client_id(client_);
    request.set_id(id);
    request.add_work_requests()->set_opcode(opcode);
    return request;
  }
  v1::PostResponse PostSend(const v1::PostSendRequest& request) {
    v1::PostResponse response;
    const grpc::Status status = calls_.PostSend(request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::PostResponse PostReceive(const v1::PostReceiveRequest& request) {
    v1::PostResponse response;
    const grpc::Status status = calls_.PostReceive(request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  FakeSidecar sidecar_;
  Calls calls_;
  std::string client_;
};

}  // namespace purser::sidecar
