// SPDX-License-Identifier: Apache-2.0
#include "sidecar/posting.h"

#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/sidecar/calls_fixture.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;

class PostingTest : public CallsTest {};

TEST_F(PostingTest, AFullSendQueueIsAPostFailureNotAnError) {
  const v1::QueuePair queue_pair = Created();
  Connect(queue_pair);
  sidecar_.verbs().HoldWire();
  v1::PostSendRequest request;
  request.set_client_id(client_);
  request.set_id(queue_pair.id());
  for (int i = 0; i < 130; ++i)
    request.add_work_requests()->set_opcode(v1::SEND_OPCODE_RDMA_WRITE);
  const v1::PostResponse response = PostSend(request);
  EXPECT_EQ(response.posted(), 127u);
  EXPECT_EQ(response.failure().error_number(), ENOMEM);
  EXPECT_EQ(response.failure().error_name(), "ENOMEM");
  EXPECT_THAT(response.failure().message(), HasSubstr("send queue full"));
  EXPECT_EQ(CountOf(sidecar_.counters().post_failures, std::string("send"),
                    std::string("ENOMEM")),
            1u);
  v1::ListQueuePairsRequest list;
  v1::ListQueuePairsResponse listed;
  ASSERT_TRUE(calls_.ListQueuePairs(list, listed).ok());
  EXPECT_EQ(listed.queue_pairs(0).outstanding_sends(), 127u);
  sidecar_.verbs().ReleaseWire();
}

TEST_F(PostingTest, PostsUpToTheFirstRequestThatIsWrong) {
  const v1::QueuePair queue_pair = Created();
  Connect(queue_pair);
  const v1::RegisterMemoryResponse region = Register("buffer", 8192);
  const auto failure = [&](auto spoil) {
    v1::PostSendRequest request =
        SendRequest(queue_pair.id(), v1::SEND_OPCODE_RDMA_WRITE);
    v1::SendWorkRequest& second = *request.add_work_requests();
    v1::Sge& sge = *second.add_sg_list();
    sge.set_region_id(region.region_id());
    sge.set_length(10);
    second.set_remote_addr(region.remote_addr());
    second.set_rkey(region.rkey());
    spoil(second);
    const v1::PostResponse response = PostSend(request);
    EXPECT_EQ(response.posted(), 1u);
    return response.failure();
  };
  using W = v1::SendWorkRequest;
  EXPECT_THAT(
      failure([](W& w) { w.mutable_sg_list(0)->set_offset(8192); }).message(),
      HasSubstr("beyond the 8192 bytes"));
  EXPECT_THAT(failure([](W& w) {
                w.mutable_sg_list(0)->set_offset(UINT64_MAX);
              }).message(),
              HasSubstr("beyond the 8192 bytes"));
  EXPECT_THAT(
      failure([](W& w) { w.mutable_sg_list(0)->set_region_id(9); }).message(),
      HasSubstr("no memory region 9"));
  EXPECT_THAT(failure([](W& w) {
                *w.add_sg_list() = w.sg_list(0);
                *w.add_sg_list() = w.sg_list(0);
              }).message(),
              HasSubstr("the queue pair takes"));
  const v1::PostFailure unknown =
      failure([](W& w) { w.set_opcode(static_cast<v1::SendOpcode>(77)); });
  EXPECT_EQ(unknown.error_number(), EINVAL);
  EXPECT_THAT(unknown.message(), HasSubstr("opcode 77"));
  EXPECT_EQ(CountOf(sidecar_.counters().post_failures, std::string("send"),
                    std::string("EINVAL")),
            5u);
  EXPECT_EQ(CountOf(sidecar_.counters().posts, std::string("send")), 5u);
}

TEST_F(PostingTest, AnotherClientsRegionIsNotPosted) {
  const v1::QueuePair queue_pair = Created();
  Connect(queue_pair);
  const std::string owner = client_;
  client_ = sidecar_.Attach("other");
  const uint64_t foreign = Register("foreign", 4096).region_id();
  client_ = owner;
  v1::PostReceiveRequest request;
  request.set_client_id(client_);
  request.set_id(queue_pair.id());
  v1::Sge& sge = *request.add_work_requests()->add_sg_list();
  sge.set_region_id(foreign);
  sge.set_length(1);
  const v1::PostResponse response = PostReceive(request);
  EXPECT_EQ(response.posted(), 0u);
  EXPECT_EQ(response.failure().error_number(), EINVAL);
  EXPECT_THAT(response.failure().message(), HasSubstr("another client"));
}

TEST_F(PostingTest, UdAndUcQueuePairsDoNotPostWhatTheyCannot) {
  v1::CreateQueuePairRequest request = CreateRequest();
  request.set_type(v1::QUEUE_PAIR_TYPE_UD);
  v1::QueuePair ud, uc;
  ASSERT_TRUE(Create(request, &ud).ok());
  request.set_type(v1::QUEUE_PAIR_TYPE_UC);
  ASSERT_TRUE(Create(request, &uc).ok());
  EXPECT_EQ(PostSend(SendRequest(ud.id(), v1::SEND_OPCODE_SEND))
                .failure()
                .error_number(),
            EOPNOTSUPP);
  const v1::PostResponse read =
      PostSend(SendRequest(uc.id(), v1::SEND_OPCODE_RDMA_READ));
  EXPECT_EQ(read.failure().error_number(), EINVAL);
  EXPECT_THAT(read.failure().message(), HasSubstr("UC"));
  EXPECT_EQ(sidecar_.verbs().Calls("post_send"), 0u);
}

TEST_F(PostingTest, TakesAtMost4096WorkRequestsInOneCall) {
  const v1::QueuePair queue_pair = Created();
  v1::PostSendRequest send;
  v1::PostReceiveRequest receive;
  send.set_client_id(client_);
  receive.set_client_id(client_);
  send.set_id(queue_pair.id());
  receive.set_id(queue_pair.id());
  for (int i = 0; i < 4097; ++i) {
    send.add_work_requests();
    receive.add_work_requests();
  }
  v1::PostResponse response;
  EXPECT_EQ(calls_.PostSend(send, response).error_code(),
            grpc::INVALID_ARGUMENT);
  EXPECT_EQ(calls_.PostReceive(receive, response).error_code(),
            grpc::INVALID_ARGUMENT);
}

TEST_F(PostingTest, ZeroLengthEntriesCarryNothing) {
  const v1::QueuePair queue_pair = Created();
  Connect(queue_pair);
  const v1::RegisterMemoryResponse region = Register("buffer", 4096);
  v1::PostSendRequest request =
      SendRequest(queue_pair.id(), v1::SEND_OPCODE_RDMA_WRITE);
  for (int i = 0; i < 5; ++i)
    request.mutable_work_requests(0)->add_sg_list()->set_region_id(
        region.region_id());
  EXPECT_EQ(PostSend(request).posted(), 1u);
}

}  // namespace
}  // namespace purser::sidecar
