// SPDX-License-Identifier: Apache-2.0
#include "sidecar/status.h"

#include "gmock/gmock.h"
#include "tests/unit/sidecar/calls_fixture.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;

class StatusTest : public CallsTest {
 protected:
  v1::GetStatusResponse Status() {
    v1::GetStatusResponse response;
    EXPECT_TRUE(calls_.GetStatus({}, response).ok());
    return response;
  }
  v1::QueuePair CreateShared(const std::string& name) {
    v1::CreateQueuePairRequest request = CreateRequest();
    request.mutable_completion_queue()->set_shared(name);
    v1::QueuePair queue_pair;
    const grpc::Status status = Create(request, &queue_pair);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return queue_pair;
  }
};

TEST_F(StatusTest, AnIdleSidecarHasItsClientsAndClasses) {
  const v1::GetStatusResponse status = Status();
  ASSERT_EQ(status.clients_size(), 1);
  EXPECT_EQ(status.clients(0).name(), "app");
  EXPECT_EQ(status.clients(0).queue_pairs(), 0u);
  ASSERT_EQ(status.classes_size(), 1);
  EXPECT_EQ(status.classes(0).name(), "default");
  EXPECT_EQ(status.budget().bounds_size(), 1);
  EXPECT_EQ(status.budget().memory_pressure_size(), 2);
}

TEST_F(StatusTest, WhatAClientHoldsAndDoes) {
  const v1::QueuePair first = CreateShared("all");
  CreateShared("all");
  sidecar_.Attach("zzz");
  Register("buffer", 8192);
  Connect(first);
  v1::PostSendRequest request =
      SendRequest(first.id(), v1::SEND_OPCODE_RDMA_WRITE);
  request.add_work_requests()->set_opcode(v1::SEND_OPCODE_RDMA_WRITE);
  request.add_work_requests()->set_opcode(static_cast<v1::SendOpcode>(77));
  EXPECT_EQ(PostSend(request).posted(), 2u);
  const auto queue_pair = *sidecar_.queue_pairs().Find(client_, first.id());
  ASSERT_EQ(queue_pair->Poll(1)->size(), 1u);

  const v1::GetStatusResponse status = Status();
  ASSERT_EQ(status.clients_size(), 2);
  const v1::ClientStatus& app = status.clients(0);
  EXPECT_EQ(app.name(), "app");
  EXPECT_EQ(app.queue_pairs(), 2u);
  EXPECT_EQ(app.memory().node_bytes() + app.memory().container_bytes(),
            sidecar_.held_bytes());
  EXPECT_EQ(app.traffic().posts(), 2u);
  EXPECT_EQ(app.traffic().post_failures(), 1u);
  EXPECT_EQ(app.traffic().completions(), 1u);
  EXPECT_EQ(app.traffic().completion_errors(), 0u);
  EXPECT_EQ(app.completion_backlog(), 1u);
  EXPECT_EQ(app.outstanding_sends(), 1u);
  EXPECT_EQ(app.memory_regions(), 1u);
  EXPECT_EQ(app.registered_bytes(), 8192u);
  ASSERT_EQ(app.classes_size(), 1);
  EXPECT_EQ(app.classes(0).queue_pairs(), 2u);
  EXPECT_EQ(status.clients(1).memory().node_bytes(), 0u);
  EXPECT_EQ(status.classes(0).traffic().posts(), 2u);
  EXPECT_EQ(status.classes(0).completion_backlog(), 1u);

  ASSERT_EQ(status.completion_queues_size(), 1);
  const v1::CompletionQueue& queue = status.completion_queues(0);
  EXPECT_EQ(queue.id(), first.completion_queue_id());
  EXPECT_EQ(queue.name(), "all");
  EXPECT_EQ(queue.client_name(), "app");
  EXPECT_EQ(queue.device(), "rxe0");
  EXPECT_EQ(queue.queue_pairs(), 2u);
  EXPECT_EQ(queue.slots(), 4u * 127);
  EXPECT_GT(queue.memory().total_bytes(), 0u);

  v1::ListQueuePairsResponse listed;
  ASSERT_TRUE(calls_.ListQueuePairs({}, listed).ok());
  EXPECT_EQ(listed.queue_pairs(0).traffic().posts(), 2u);
  EXPECT_EQ(listed.queue_pairs(0).completion_backlog(), 1u);
  EXPECT_EQ(listed.queue_pairs(0).memory().completion().node_bytes(), 0u)
      << "it is the shared one's";
}

TEST_F(StatusTest, ClientsTrafficOutlivesTheirQueuePairs) {
  const v1::QueuePair queue_pair = Created();
  Connect(queue_pair);
  PostSend(SendRequest(queue_pair.id(), v1::SEND_OPCODE_RDMA_WRITE));
  v1::DestroyQueuePairRequest destroy;
  destroy.set_client_id(client_);
  destroy.set_id(queue_pair.id());
  v1::DestroyQueuePairResponse destroyed;
  ASSERT_TRUE(calls_.DestroyQueuePair(destroy, destroyed).ok());
  EXPECT_FALSE(destroyed.not_yet_destroyed());
  EXPECT_EQ(Status().clients(0).traffic().posts(), 1u);
}

TEST_F(StatusTest, SharedReceiveQueuesByTheirCalls) {
  v1::CreateSharedReceiveQueueRequest create;
  create.set_client_id(client_);
  create.set_max_wr(100);
  create.set_max_sge(1);
  v1::CreateSharedReceiveQueueResponse created;
  ASSERT_TRUE(calls_.CreateSharedReceiveQueue(create, created).ok());
  const v1::SharedReceiveQueue& queue = created.shared_receive_queue();
  EXPECT_EQ(queue.slots(), 127u);
  EXPECT_GT(queue.memory().shared_receive().node_bytes(), 0u);

  v1::CreateQueuePairRequest request = CreateRequest();
  request.mutable_cap()->clear_max_recv_wr();
  request.mutable_cap()->clear_max_recv_sge();
  request.set_shared_receive_queue_id(queue.id());
  v1::QueuePair queue_pair;
  ASSERT_TRUE(Create(request, &queue_pair).ok());
  EXPECT_EQ(queue_pair.shared_receive_queue_id(), queue.id());
  EXPECT_EQ(queue_pair.recv_slots(), 0u);

  const v1::RegisterMemoryResponse region = Register("buffer", 4096);
  v1::PostReceiveRequest post;
  post.set_client_id(client_);
  post.set_shared_receive_queue_id(queue.id());
  v1::Sge& sge = *post.add_work_requests()->add_sg_list();
  sge.set_region_id(region.region_id());
  sge.set_length(64);
  EXPECT_EQ(PostReceive(post).posted(), 1u);
  post.mutable_work_requests(0)->mutable_sg_list(0)->set_region_id(99);
  EXPECT_THAT(PostReceive(post).failure().message(),
              HasSubstr("no memory region 99"));
  v1::PostResponse response;
  post.set_id(queue_pair.id());
  EXPECT_EQ(calls_.PostReceive(post, response).error_code(),
            grpc::INVALID_ARGUMENT);
  post.clear_id();
  post.set_shared_receive_queue_id(4711);
  EXPECT_EQ(calls_.PostReceive(post, response).error_code(), grpc::NOT_FOUND);

  const v1::GetStatusResponse status = Status();
  ASSERT_EQ(status.shared_receive_queues_size(), 1);
  EXPECT_EQ(status.shared_receive_queues(0).outstanding_receives(), 1u);
  EXPECT_EQ(status.shared_receive_queues(0).queue_pairs(), 1u);
  EXPECT_EQ(status.clients(0).outstanding_receives(), 1u);
  EXPECT_EQ(status.clients(0).traffic().posts(), 1u);

  v1::DestroySharedReceiveQueueRequest destroy;
  destroy.set_client_id(client_);
  destroy.set_id(queue.id());
  v1::DestroySharedReceiveQueueResponse destroyed;
  EXPECT_EQ(calls_.DestroySharedReceiveQueue(destroy, destroyed).error_code(),
            grpc::FAILED_PRECONDITION);
  create.set_max_wr(0);
  EXPECT_EQ(calls_.CreateSharedReceiveQueue(create, created).error_code(),
            grpc::INVALID_ARGUMENT);
}

TEST_F(StatusTest, AChoiceOfCompletionQueueThatIsNone) {
  v1::CreateQueuePairRequest request = CreateRequest();
  request.mutable_completion_queue()->set_shared(std::string(64, 'x'));
  EXPECT_EQ(Create(request).error_code(), grpc::INVALID_ARGUMENT);
  request.mutable_completion_queue()->set_shared("");
  EXPECT_EQ(Create(request).error_code(), grpc::INVALID_ARGUMENT);
  request.mutable_completion_queue()->set_shared("all");
  request.set_detached(true);
  EXPECT_EQ(Create(request).error_code(), grpc::INVALID_ARGUMENT);
  request.mutable_completion_queue()->set_own(true);
  EXPECT_TRUE(Create(request).ok());
}

}  // namespace
}  // namespace purser::sidecar
