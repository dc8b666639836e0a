// SPDX-License-Identifier: Apache-2.0
//
// Attach and PollCompletions need a transport:
// tests/integration/sidecar_service_test.cc.
#include "sidecar/calls.h"

#include <cerrno>

#include "gmock/gmock.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "sidecar/grpc_status.h"
#include "tests/unit/sidecar/calls_fixture.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;

v1::Refusal DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  v1::Refusal refusal;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), status.error_code());
  EXPECT_EQ(details.message(), status.error_message());
  EXPECT_EQ(details.details_size(), 1);
  for (const auto& detail : details.details())
    EXPECT_TRUE(detail.UnpackTo(&refusal));
  return refusal;
}

TEST_F(CallsTest, AQueuePairTellsAllThatAPeerAndAPersonNeed) {
  const v1::QueuePair queue_pair = Created();
  EXPECT_GT(queue_pair.id(), 0u);
  EXPECT_EQ(queue_pair.device(), "rxe0");
  EXPECT_EQ(queue_pair.type(), v1::QUEUE_PAIR_TYPE_RC);
  EXPECT_EQ(queue_pair.state(), v1::QUEUE_PAIR_STATE_RESET);
  EXPECT_EQ(queue_pair.cap().max_send_wr(), 100u);
  EXPECT_EQ(queue_pair.send_slots(), 127u);
  EXPECT_EQ(queue_pair.recv_slots(), 127u);
  EXPECT_EQ(queue_pair.client_name(), "app");
  EXPECT_EQ(queue_pair.class_(), "default");
  EXPECT_EQ(queue_pair.local().qp_num(), queue_pair.qp_num());
  EXPECT_EQ(queue_pair.local().gid_index(), 1u);
  EXPECT_EQ(queue_pair.local().mtu(), 1024u);
  EXPECT_EQ(queue_pair.local().port_num(), 1u);
  const ibv_gid gid = fakes::Ipv4Gid("192.0.2.1");
  EXPECT_EQ(queue_pair.local().gid(),
            std::string(reinterpret_cast<const char*>(gid.raw), 16));
  const v1::QueueMemory& memory = queue_pair.memory();
  EXPECT_EQ(memory.exactness(), v1::EXACTNESS_EXACT);
  EXPECT_EQ(memory.total_bytes(), sidecar_.held_bytes());
  EXPECT_GT(memory.send().node_bytes(), 0u);
  EXPECT_GT(memory.completion().node_bytes(), 0u);
  EXPECT_EQ(memory.textbook_bytes(), 2u * 100 * (64 + 16 * 2));
}

TEST_F(CallsTest, AQueuePairOfAPortWithoutAddressHasNoGid) {
  for (int index : {0, 1}) sidecar_.verbs().SetGid("rxe0", 1, index, ibv_gid{});
  EXPECT_EQ(Created().local().gid(), "");
}

TEST_F(CallsTest, CreateNamesWhatIsWrongWithTheRequest) {
  v1::CreateQueuePairRequest request = CreateRequest();
  request.set_device("mlx5_9");
  grpc::Status status = Create(request);
  EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("it has: rxe0"));
  request = CreateRequest();
  request.set_type(static_cast<v1::QueuePairType>(9));
  EXPECT_EQ(Create(request).error_code(), grpc::INVALID_ARGUMENT);
  request = CreateRequest();
  request.set_client_id("nobody");
  EXPECT_EQ(Create(request).error_code(), grpc::UNAUTHENTICATED);
}

TEST_F(CallsTest, RefusalsTravelInTheDetails) {
  v1::CreateQueuePairRequest request = CreateRequest();
  request.mutable_cap()->set_max_send_wr(UINT32_MAX);
  grpc::Status status = Create(request);
  EXPECT_EQ(status.error_code(), grpc::OUT_OF_RANGE);
  v1::Refusal refusal = DetailsOf(status);
  EXPECT_EQ(refusal.reason(), v1::REASON_DEVICE_LIMIT);
  EXPECT_EQ(refusal.limit(), "max_qp_wr");
  EXPECT_EQ(refusal.asked_value(), UINT32_MAX);
  EXPECT_EQ(refusal.limit_value(), 1048576u);
  EXPECT_NE(refusal.remedy(), "");

  request.mutable_cap()->Clear();
  status = Create(request);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(DetailsOf(status).reason(), v1::REASON_INVALID);

  for (const auto& [error, code] : {std::pair(ENOMEM, grpc::RESOURCE_EXHAUSTED),
                                    std::pair(EINVAL, grpc::INVALID_ARGUMENT),
                                    std::pair(EIO, grpc::INTERNAL)}) {
    sidecar_.verbs().FailNext("create_qp", error);
    status = Create(CreateRequest());
    EXPECT_EQ(status.error_code(), code);
    EXPECT_EQ(DetailsOf(status).reason(), v1::REASON_CREATE_FAILED);
    EXPECT_EQ(DetailsOf(status).limit(), rdma::ErrnoName(error));
  }
}

class SmallBudgetTest : public CallsTest {
 protected:
  SmallBudgetTest() : CallsTest({.budget_bytes = 256 << 10, .max_qp = 2}) {}
};

TEST_F(SmallBudgetTest, ABudgetRefusalHasTheArithmetic) {
  const v1::QueuePair first = Created();
  v1::CreateQueuePairRequest request = CreateRequest();
  request.mutable_cap()->set_max_send_wr(4096);
  const grpc::Status status = Create(request);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  const v1::Refusal refusal = DetailsOf(status);
  EXPECT_EQ(refusal.reason(), v1::REASON_BUDGET);
  EXPECT_EQ(refusal.bound(), v1::BUDGET_SOURCE_EXPLICIT);
  EXPECT_EQ(refusal.budget_bytes(), 256u << 10);
  EXPECT_EQ(refusal.used_bytes(), first.memory().total_bytes());
  EXPECT_EQ(refusal.needed_bytes(), refusal.needed().total_bytes());
  EXPECT_GT(refusal.needed().send().node_bytes(), 256u << 10);
  EXPECT_GT(refusal.largest_max_send_wr(), 0u);
  request.mutable_cap()->set_max_send_wr(refusal.largest_max_send_wr());
  EXPECT_TRUE(Create(request).ok()) << "what is said to fit, fits";
}

TEST_F(SmallBudgetTest, TheLastQueuePairOfTheDeviceIsAResource) {
  v1::CreateQueuePairRequest request = CreateRequest();
  request.mutable_cap()->set_max_send_wr(1);
  request.mutable_cap()->set_max_recv_wr(1);
  ASSERT_TRUE(Create(request).ok());
  ASSERT_TRUE(Create(request).ok());
  const grpc::Status status = Create(request);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailsOf(status).limit(), "max_qp");
}

TEST_F(SmallBudgetTest, TheBudgetTellsItsBoundsAndWhatIsLeft) {
  Created();
  v1::CreateQueuePairRequest request = CreateRequest();
  request.mutable_cap()->set_max_send_wr(4096);
  Create(request);
  v1::GetBudgetRequest get;
  v1::GetBudgetResponse budget;
  ASSERT_TRUE(calls_.GetBudget(get, budget).ok());
  ASSERT_EQ(budget.bounds_size(), 1);
  EXPECT_EQ(budget.bounds(0).source(), v1::BUDGET_SOURCE_EXPLICIT);
  EXPECT_EQ(budget.bounds(0).limit_bytes(), 256u << 10);
  EXPECT_EQ(budget.bounds(0).used_bytes(), sidecar_.held_bytes());
  EXPECT_TRUE(budget.bounds(0).binding());
  EXPECT_EQ(budget.headroom_bytes(), (256u << 10) - sidecar_.held_bytes());
  EXPECT_EQ(budget.used().node_bytes() + budget.used().container_bytes(),
            sidecar_.held_bytes());
  EXPECT_EQ(budget.queue_pairs(), 1u);
  EXPECT_EQ(budget.refusals(), 1u);
}

TEST_F(CallsTest, ModifyReturnsTheNewState) {
  const v1::QueuePair created = Created();
  Connect(created);
  v1::ListQueuePairsRequest list;
  v1::ListQueuePairsResponse listed;
  ASSERT_TRUE(calls_.ListQueuePairs(list, listed).ok());
  ASSERT_EQ(listed.queue_pairs_size(), 1);
  EXPECT_EQ(listed.queue_pairs(0).state(), v1::QUEUE_PAIR_STATE_RTS);
  EXPECT_EQ(listed.queue_pairs(0).dest_qp_num(), created.qp_num());
  EXPECT_EQ(listed.queue_pairs(0).local().gid(), created.local().gid());

  v1::ModifyQueuePairRequest modify;
  modify.set_client_id(client_);
  modify.set_id(created.id());
  modify.set_state(v1::QUEUE_PAIR_STATE_INIT);
  EXPECT_EQ(Modify(modify).error_code(), grpc::FAILED_PRECONDITION);
  modify.set_state(v1::QUEUE_PAIR_STATE_ERR);
  modify.set_timeout(99);
  EXPECT_EQ(Modify(modify).error_code(), grpc::INVALID_ARGUMENT);
  modify.clear_timeout();
  v1::QueuePair modified;
  ASSERT_TRUE(Modify(modify, &modified).ok());
  EXPECT_EQ(modified.state(), v1::QUEUE_PAIR_STATE_ERR);
  modify.set_client_id(sidecar_.Attach("other"));
  EXPECT_EQ(Modify(modify).error_code(), grpc::PERMISSION_DENIED);
  modify.set_id(4711);
  EXPECT_EQ(Modify(modify).error_code(), grpc::NOT_FOUND);
}

TEST_F(CallsTest, DestroyReturnsTheBytes) {
  const v1::QueuePair created = Created();
  v1::DestroyQueuePairRequest request;
  request.set_client_id(client_);
  request.set_id(created.id());
  v1::DestroyQueuePairResponse response;
  ASSERT_TRUE(calls_.DestroyQueuePair(request, response).ok());
  EXPECT_EQ(response.returned_bytes(), created.memory().total_bytes());
  EXPECT_EQ(calls_.DestroyQueuePair(request, response).error_code(),
            grpc::NOT_FOUND);
}

TEST_F(CallsTest, ListsInPages) {
  for (int i = 0; i < 3; ++i) Created();
  v1::ListQueuePairsRequest request;
  request.set_page_size(2);
  v1::ListQueuePairsResponse first, second;
  ASSERT_TRUE(calls_.ListQueuePairs(request, first).ok());
  EXPECT_EQ(first.queue_pairs_size(), 2);
  EXPECT_TRUE(first.more());
  request.set_after_id(first.queue_pairs(1).id());
  ASSERT_TRUE(calls_.ListQueuePairs(request, second).ok());
  EXPECT_EQ(second.queue_pairs_size(), 1);
  EXPECT_FALSE(second.more());
  request.set_page_size(1001);
  EXPECT_EQ(calls_.ListQueuePairs(request, second).error_code(),
            grpc::INVALID_ARGUMENT);
}

TEST_F(CallsTest, DeregisterMemoryAnswersByOwner) {
  const uint64_t id = Register("buffer", 4096).region_id();
  v1::DeregisterMemoryRequest request;
  v1::DeregisterMemoryResponse response;
  request.set_region_id(id);
  request.set_client_id(sidecar_.Attach("other"));
  EXPECT_EQ(calls_.DeregisterMemory(request, response).error_code(),
            grpc::PERMISSION_DENIED);
  request.set_client_id(client_);
  EXPECT_TRUE(calls_.DeregisterMemory(request, response).ok());
}

TEST(GrpcStatusTest, KeepsCodesAndCutsWhatNoHeaderTakes) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_EQ(ToGrpcStatus(absl::UnavailableError("x")).error_code(),
            grpc::UNAVAILABLE);
  EXPECT_EQ(ToGrpcStatus(absl::UnauthenticatedError("x")).error_code(),
            grpc::UNAUTHENTICATED);
  const grpc::Status cut =
      ToGrpcStatus(absl::InternalError(std::string(1499, 'x') + "äöü"));
  EXPECT_EQ(cut.error_message(), std::string(1499, 'x') + " …");
}

}  // namespace
}  // namespace purser::sidecar
