// SPDX-License-Identifier: Apache-2.0
#include "client/queue_pair.h"

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "client/shared_region.h"
#include "tests/unit/client/client_fixture.h"

namespace purser::client {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

static_assert(int{kLocalWrite} == int{IBV_ACCESS_LOCAL_WRITE});
static_assert(int{kRemoteWrite} == int{IBV_ACCESS_REMOTE_WRITE});
static_assert(int{kRemoteRead} == int{IBV_ACCESS_REMOTE_READ});

class QueuePairTest : public ClientTest {
 protected:
  QueuePair Created(const QueuePairSpec& spec = Spec()) {
    auto queue_pair = client_->CreateQueuePair(spec);
    EXPECT_TRUE(queue_pair.ok()) << queue_pair.status();
    return std::move(*queue_pair);
  }
  std::unique_ptr<Client> client_ = Connected();
};

v1::Endpoint Peer() {
  v1::Endpoint peer;
  peer.set_qp_num(99);
  peer.set_gid(std::string(15, '\x20') + '\x01');
  peer.set_mtu(4096);
  return peer;
}

TEST_F(QueuePairTest, AsksForWhatTheSpecSays) {
  QueuePairSpec spec = Spec(100, 50);
  spec.device = "fake0";
  spec.type = v1::QUEUE_PAIR_TYPE_UC;
  QueuePair queue_pair = Created(spec);
  const v1::CreateQueuePairRequest asked = sidecar_.creations().at(0);
  EXPECT_EQ(asked.device(), "fake0");
  EXPECT_EQ(asked.type(), v1::QUEUE_PAIR_TYPE_UC);
  EXPECT_EQ(asked.cap().max_send_wr(), 100u);
  EXPECT_EQ(asked.cap().max_recv_wr(), 50u);
  EXPECT_FALSE(asked.detached());
  EXPECT_EQ(queue_pair.properties().send_slots(), 127u);
  EXPECT_EQ(queue_pair.local().qp_num(), queue_pair.properties().qp_num());
}

TEST_F(QueuePairTest, IsDestroyedOnceWithItsLastOwner) {
  {
    QueuePair first = Created();
    QueuePair second = std::move(first);
    EXPECT_EQ(sidecar_.queue_pairs(), 1u);
    first = std::move(second);
    EXPECT_EQ(sidecar_.queue_pairs(), 1u);
    first = Created();
    EXPECT_EQ(sidecar_.queue_pairs(), 1u) << "assigning destroys the old one";
  }
  EXPECT_EQ(sidecar_.queue_pairs(), 0u);
}

TEST_F(QueuePairTest, ADetachedOneStays) {
  QueuePairSpec spec = Spec();
  spec.detached = true;
  { QueuePair queue_pair = Created(spec); }
  EXPECT_EQ(sidecar_.queue_pairs(), 1u);
}

TEST_F(QueuePairTest, ConnectsAnRcWithTheAttributesOfEachEdgeAndNoOther) {
  QueuePair queue_pair = Created();
  ConnectionParameters parameters;
  parameters.sq_psn = 0x123456;
  parameters.rq_psn = 0x654321;
  ASSERT_TRUE(queue_pair.Connect(Peer(), parameters).ok());
  EXPECT_EQ(queue_pair.properties().state(), v1::QUEUE_PAIR_STATE_RTS);

  auto modifications = sidecar_.modifications();
  ASSERT_EQ(modifications.size(), 3u);
  for (auto& request : modifications) {
    EXPECT_EQ(request.id(), queue_pair.id());
    request.clear_client_id();
    request.clear_id();
  }
  v1::ModifyQueuePairRequest init, rtr, rts;
  init.set_state(v1::QUEUE_PAIR_STATE_INIT);
  init.set_port_num(1);
  init.set_pkey_index(0);
  init.set_qp_access_flags(7);
  rtr.set_state(v1::QUEUE_PAIR_STATE_RTR);
  rtr.mutable_ah_attr()->set_dgid(Peer().gid());
  rtr.set_path_mtu(1024);
  rtr.set_dest_qp_num(99);
  rtr.set_rq_psn(0x654321);
  rtr.set_max_dest_rd_atomic(1);
  rtr.set_min_rnr_timer(12);
  rts.set_state(v1::QUEUE_PAIR_STATE_RTS);
  rts.set_sq_psn(0x123456);
  rts.set_timeout(14);
  rts.set_retry_cnt(7);
  rts.set_rnr_retry(7);
  rts.set_max_rd_atomic(1);
  EXPECT_EQ(modifications[0].DebugString(), init.DebugString());
  EXPECT_EQ(modifications[1].DebugString(), rtr.DebugString());
  EXPECT_EQ(modifications[2].DebugString(), rts.DebugString());
}

TEST_F(QueuePairTest, ConnectsAUcWithoutWhatIsReliable) {
  QueuePairSpec spec = Spec();
  spec.type = v1::QUEUE_PAIR_TYPE_UC;
  QueuePair queue_pair = Created(spec);
  ASSERT_TRUE(queue_pair.Connect(Peer(), {}).ok());
  auto modifications = sidecar_.modifications();
  ASSERT_EQ(modifications.size(), 3u);
  EXPECT_FALSE(modifications[1].has_max_dest_rd_atomic());
  EXPECT_FALSE(modifications[1].has_min_rnr_timer());
  EXPECT_FALSE(modifications[2].has_timeout());
  EXPECT_FALSE(modifications[2].has_retry_cnt());
  EXPECT_FALSE(modifications[2].has_rnr_retry());
  EXPECT_FALSE(modifications[2].has_max_rd_atomic());
  EXPECT_TRUE(modifications[2].has_sq_psn());
}

TEST_F(QueuePairTest, DoesNotConnectUd) {
  QueuePairSpec spec = Spec();
  spec.type = v1::QUEUE_PAIR_TYPE_UD;
  QueuePair queue_pair = Created(spec);
  EXPECT_EQ(queue_pair.Connect(Peer(), {}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(sidecar_.modifications().empty());
}

TEST_F(QueuePairTest, RefusesAPeerWithoutAddressBeforeItChangesAnything) {
  QueuePair queue_pair = Created();
  for (const std::string& gid :
       {std::string(), std::string(16, '\0'), std::string(15, 'x')}) {
    v1::Endpoint peer = Peer();
    peer.set_gid(gid);
    absl::Status status = queue_pair.Connect(peer, {});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("has no address"));
  }
  EXPECT_TRUE(sidecar_.modifications().empty());
}

TEST_F(QueuePairTest, RefusesAnMtuThatVerbsCannotSay) {
  QueuePair queue_pair = Created();
  ConnectionParameters parameters;
  for (uint32_t mtu : {128u, 1500u, 8192u}) {
    parameters.path_mtu = mtu;
    EXPECT_EQ(queue_pair.Connect(Peer(), parameters).code(),
              absl::StatusCode::kInvalidArgument);
  }
  parameters.path_mtu = 256;
  EXPECT_TRUE(queue_pair.Connect(Peer(), parameters).ok());
  EXPECT_EQ(sidecar_.modifications().at(1).path_mtu(), 256u);
}

TEST_F(QueuePairTest, TakesTheSmallerMtu) {
  QueuePair queue_pair = Created();
  v1::Endpoint peer = Peer();
  peer.set_mtu(512);
  ASSERT_TRUE(queue_pair.Connect(peer, {}).ok());
  EXPECT_EQ(sidecar_.modifications().at(1).path_mtu(), 512u);
}

TEST_F(QueuePairTest, StopsAtTheFirstRefusedTransition) {
  QueuePair queue_pair = Created();
  sidecar_.FailNext("ModifyQueuePair",
                    {grpc::StatusCode::FAILED_PRECONDITION, "port down"});
  EXPECT_EQ(queue_pair.Connect(Peer(), {}),
            absl::FailedPreconditionError("port down"));
  EXPECT_TRUE(sidecar_.modifications().empty());
}

TEST_F(QueuePairTest, MovesDataAndTellsAFullQueue) {
  QueuePair a = Created(Spec(3, 3)), b = Created(Spec(3, 3));
  ASSERT_TRUE(a.Connect(b.local(), {}).ok());
  ASSERT_TRUE(b.Connect(a.local(), {}).ok());
  auto region = SharedRegion::Create(*client_, volume_.root().string(), 64);
  ASSERT_TRUE(region.ok()) << region.status();
  memcpy(region->data(), "hello", 5);
  std::vector<v1::SendWorkRequest> sends(5);
  for (size_t i = 0; i < sends.size(); ++i) {
    sends[i].set_wr_id(i);
    sends[i].set_opcode(v1::SEND_OPCODE_SEND);
    *sends[i].add_sg_list() = region->Slice(0, 5);
  }
  auto posted = a.PostSend(sends);
  ASSERT_TRUE(posted.ok()) << posted.status();
  EXPECT_EQ(posted->posted(), 3u);
  EXPECT_EQ(posted->failure().error_number(), ENOMEM);

  v1::ReceiveWorkRequest receive;
  receive.set_wr_id(7);
  *receive.add_sg_list() = region->Slice(32, 32);
  ASSERT_EQ(b.PostReceive({&receive, 1})->posted(), 1u);
  auto received = b.Poll(16, milliseconds(1000));
  ASSERT_TRUE(received.ok()) << received.status();
  ASSERT_EQ(received->size(), 1u);
  EXPECT_EQ((*received)[0].wr_id(), 7u);
  EXPECT_EQ((*received)[0].byte_len(), 5u);
  EXPECT_TRUE((*received)[0].receive());
  EXPECT_EQ(memcmp(region->data() + 32, "hello", 5), 0);
  EXPECT_EQ(a.Poll(16)->size(), 1u);
}

TEST_F(QueuePairTest, AnEmptyPollIsNoErrorAndAWaitIsNotALateAnswer) {
  auto impatient = Connected({.rpc_timeout = milliseconds(200)});
  auto queue_pair = impatient->CreateQueuePair(Spec());
  ASSERT_TRUE(queue_pair.ok());
  auto completions = queue_pair->Poll(16, milliseconds(300));
  ASSERT_TRUE(completions.ok()) << completions.status();
  EXPECT_TRUE(completions->empty());
}

}  // namespace
}  // namespace purser::client
