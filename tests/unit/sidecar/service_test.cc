// SPDX-License-Identifier: Apache-2.0
//
// The service's synchronous calls, without a transport. Attach and
// PollCompletions need one: tests/integration/sidecar_service_test.cc.
#include "sidecar/service.h"

#include <cerrno>
#include <cstring>

#include "gmock/gmock.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "sidecar/grpc_status.h"
#include "tests/unit/sidecar/fake_sidecar.h"
#include "tests/unit/sidecar/watching.h"

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

class ServiceTest : public ::testing::Test {
 protected:
  explicit ServiceTest(FakeSidecarOptions options = {})
      : sidecar_(std::move(options)),
        service_(sidecar_.broker(), sidecar_.ledger(), sidecar_.budget(),
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
    const grpc::Status status =
        service_.CreateQueuePair(nullptr, &request, &response);
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
    const grpc::Status status =
        service_.ModifyQueuePair(nullptr, &request, &response);
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
    const grpc::Status status =
        service_.RegisterMemory(nullptr, &request, &response);
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
    const grpc::Status status = service_.PostSend(nullptr, &request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::PostResponse PostReceive(const v1::PostReceiveRequest& request) {
    v1::PostResponse response;
    const grpc::Status status =
        service_.PostReceive(nullptr, &request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  FakeSidecar sidecar_;
  Service service_;
  std::string client_;
};

TEST_F(ServiceTest, AQueuePairTellsAllThatAPeerAndAPersonNeed) {
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

TEST_F(ServiceTest, AQueuePairOfAPortWithoutAddressHasNoGid) {
  for (int index : {0, 1}) sidecar_.verbs().SetGid("rxe0", 1, index, ibv_gid{});
  EXPECT_EQ(Created().local().gid(), "");
}

TEST_F(ServiceTest, CreateNamesWhatIsWrongWithTheRequest) {
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

TEST_F(ServiceTest, RefusalsTravelInTheDetails) {
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

class SmallBudgetTest : public ServiceTest {
 protected:
  SmallBudgetTest() : ServiceTest({.budget_bytes = 256 << 10, .max_qp = 2}) {}
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
  ASSERT_TRUE(service_.GetBudget(nullptr, &get, &budget).ok());
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

TEST_F(ServiceTest, ModifyReturnsTheNewState) {
  const v1::QueuePair created = Created();
  Connect(created);
  v1::ListQueuePairsRequest list;
  v1::ListQueuePairsResponse listed;
  ASSERT_TRUE(service_.ListQueuePairs(nullptr, &list, &listed).ok());
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

TEST_F(ServiceTest, DestroyReturnsTheBytes) {
  const v1::QueuePair created = Created();
  v1::DestroyQueuePairRequest request;
  request.set_client_id(client_);
  request.set_id(created.id());
  v1::DestroyQueuePairResponse response;
  ASSERT_TRUE(service_.DestroyQueuePair(nullptr, &request, &response).ok());
  EXPECT_EQ(response.returned_bytes(), created.memory().total_bytes());
  EXPECT_EQ(
      service_.DestroyQueuePair(nullptr, &request, &response).error_code(),
      grpc::NOT_FOUND);
}

TEST_F(ServiceTest, ListsInPages) {
  for (int i = 0; i < 3; ++i) Created();
  v1::ListQueuePairsRequest request;
  request.set_page_size(2);
  v1::ListQueuePairsResponse first, second;
  ASSERT_TRUE(service_.ListQueuePairs(nullptr, &request, &first).ok());
  EXPECT_EQ(first.queue_pairs_size(), 2);
  EXPECT_TRUE(first.more());
  request.set_after_id(first.queue_pairs(1).id());
  ASSERT_TRUE(service_.ListQueuePairs(nullptr, &request, &second).ok());
  EXPECT_EQ(second.queue_pairs_size(), 1);
  EXPECT_FALSE(second.more());
  request.set_page_size(1001);
  EXPECT_EQ(service_.ListQueuePairs(nullptr, &request, &second).error_code(),
            grpc::INVALID_ARGUMENT);
}

TEST_F(ServiceTest, AFullSendQueueIsAPostFailureNotAnError) {
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
  ASSERT_TRUE(service_.ListQueuePairs(nullptr, &list, &listed).ok());
  EXPECT_EQ(listed.queue_pairs(0).outstanding_sends(), 127u);
  sidecar_.verbs().ReleaseWire();
}

TEST_F(ServiceTest, PostsUpToTheFirstRequestThatIsWrong) {
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

TEST_F(ServiceTest, AnotherClientsRegionIsNotPosted) {
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

TEST_F(ServiceTest, UdAndUcQueuePairsDoNotPostWhatTheyCannot) {
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

TEST_F(ServiceTest, TakesAtMost4096WorkRequestsInOneCall) {
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
  EXPECT_EQ(service_.PostSend(nullptr, &send, &response).error_code(),
            grpc::INVALID_ARGUMENT);
  EXPECT_EQ(service_.PostReceive(nullptr, &receive, &response).error_code(),
            grpc::INVALID_ARGUMENT);
}

TEST_F(ServiceTest, ZeroLengthEntriesCarryNothing) {
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

TEST_F(ServiceTest, DeregisterMemoryAnswersByOwner) {
  const uint64_t id = Register("buffer", 4096).region_id();
  v1::DeregisterMemoryRequest request;
  v1::DeregisterMemoryResponse response;
  request.set_region_id(id);
  request.set_client_id(sidecar_.Attach("other"));
  EXPECT_EQ(
      service_.DeregisterMemory(nullptr, &request, &response).error_code(),
      grpc::PERMISSION_DENIED);
  request.set_client_id(client_);
  EXPECT_TRUE(service_.DeregisterMemory(nullptr, &request, &response).ok());
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
