// SPDX-License-Identifier: Apache-2.0
//
// The verbs fake's objects, limits, faults and events.
#include "tests/fakes/fake_verbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <thread>

#include "rdma/handles.h"

namespace purser::fakes {
namespace {

using rdma::ErrnoOf;
using ::testing::ElementsAre;
using ::testing::Pair;

bool Readable(int fd) {
  pollfd poll_fd{.fd = fd, .events = POLLIN};
  return poll(&poll_fd, 1, 0) == 1;
}

class FakeVerbsTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(RxeDevice()); }
  void Open(const FakeDevice& device) {
    pd_.reset();
    cq_.reset();
    channel_.reset();
    context_.reset();
    verbs_.AddDevice(device);
    context_ = *rdma::OpenDevice(verbs_, device.name);
    pd_ = *rdma::AllocPd(verbs_, context_);
    channel_ = *rdma::CreateCompChannel(verbs_, context_);
    cq_ = *rdma::CreateCq(verbs_, context_, 16, this, channel_);
  }

  ibv_qp_init_attr Attr(uint32_t send_wr = 16, uint32_t send_sge = 1) {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_.get();
    attr.cap = {.max_send_wr = send_wr,
                .max_recv_wr = 16,
                .max_send_sge = send_sge,
                .max_recv_sge = 1};
    attr.qp_type = IBV_QPT_RC;
    return attr;
  }
  int CreateErrno(ibv_qp_init_attr attr) {
    return ErrnoOf(rdma::CreateQp(verbs_, pd_, attr).status());
  }
  static ibv_qp_attr InitAttr() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    return attr;
  }
  static constexpr int kInit =
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

  FakeVerbs verbs_;
  rdma::Context context_;
  rdma::ProtectionDomain pd_;
  rdma::CompletionChannel channel_;
  rdma::CompletionQueue cq_;
};

TEST_F(FakeVerbsTest, RxeWritesBackCountsAsAskedAndRingsAsTheyAre) {
  ibv_qp_init_attr attr = Attr(100, 4);
  auto qp = rdma::CreateQp(verbs_, pd_, attr);
  ASSERT_TRUE(qp.ok());
  EXPECT_EQ(attr.cap.max_send_wr, 100u);
  EXPECT_EQ(attr.cap.max_send_sge, 4u);
  EXPECT_EQ(attr.cap.max_inline_data, 64u);
  ibv_qp_attr queried{};
  ibv_qp_init_attr init{};
  ASSERT_TRUE(verbs_.QueryQp(qp->get(), &queried, IBV_QP_STATE, &init).ok());
  EXPECT_EQ(queried.cap.max_send_wr, 127u);
  EXPECT_EQ(queried.cap.max_recv_wr, 31u);
  EXPECT_EQ(queried.qp_state, IBV_QPS_RESET);
  EXPECT_EQ(cq_->cqe, 31);
}

TEST_F(FakeVerbsTest, Mlx5WritesBackWhatItsRingTakes) {
  Open(Mlx5Device());
  ibv_qp_init_attr attr = Attr(4096, 8);
  attr.cap.max_recv_wr = 100;
  auto qp = rdma::CreateQp(verbs_, pd_, attr);
  ASSERT_TRUE(qp.ok());
  EXPECT_EQ(attr.cap.max_send_wr, 6553u);
  EXPECT_EQ(attr.cap.max_inline_data, 124u);
  EXPECT_EQ(attr.cap.max_recv_wr, 128u);
  EXPECT_EQ(CreateErrno(Attr(8192, 8)), EINVAL);  // over 32768 basic blocks
}

TEST_F(FakeVerbsTest, DeviceLimitsRefuse) {
  EXPECT_EQ(CreateErrno(Attr(1048577)), EINVAL);
  EXPECT_EQ(CreateErrno(Attr(16, 33)), EINVAL);
  ibv_qp_init_attr attr = Attr();
  attr.cap.max_inline_data = 513;
  EXPECT_EQ(CreateErrno(attr), EINVAL);
  attr = Attr();
  attr.qp_type = IBV_QPT_XRC_SEND;
  EXPECT_EQ(CreateErrno(attr), EOPNOTSUPP);
  for (const int cqe : {0, -1, 32768})
    EXPECT_EQ(
        ErrnoOf(
            verbs_.CreateCq(context_.get(), cqe, nullptr, nullptr).status()),
        EINVAL);
}

TEST_F(FakeVerbsTest, ObjectLimitsRefuseTheOneTooMany) {
  FakeDevice device = RxeDevice("rxe1");
  device.attr.max_qp = 1;
  device.attr.max_cq = device.attr.max_pd = 1;
  device.attr.max_mr = 0;
  device.too_many_errno = ENOMEM;
  Open(device);
  ibv_qp_init_attr attr = Attr();
  auto qp = rdma::CreateQp(verbs_, pd_, attr);
  ASSERT_TRUE(qp.ok());
  EXPECT_EQ(CreateErrno(Attr()), ENOMEM);
  EXPECT_EQ(ErrnoOf(verbs_.AllocPd(context_.get()).status()), ENOMEM);
  EXPECT_EQ(
      ErrnoOf(verbs_.CreateCq(context_.get(), 1, nullptr, nullptr).status()),
      ENOMEM);
  char buffer[8];
  EXPECT_EQ(ErrnoOf(verbs_.RegMr(pd_.get(), buffer, 8, 0).status()), ENOMEM);
  qp->reset();
  EXPECT_EQ(CreateErrno(Attr()), 0);
}

TEST_F(FakeVerbsTest, RemoteWriteNeedsLocalWrite) {
  char buffer[8];
  EXPECT_EQ(
      ErrnoOf(
          verbs_.RegMr(pd_.get(), buffer, 8, IBV_ACCESS_REMOTE_WRITE).status()),
      EINVAL);
}

TEST_F(FakeVerbsTest, ParentsOfLivingChildrenAreBusy) {
  ibv_qp_init_attr attr = Attr();
  auto qp = rdma::CreateQp(verbs_, pd_, attr);
  ASSERT_TRUE(qp.ok());
  EXPECT_EQ(ErrnoOf(verbs_.DeallocPd(pd_.get())), EBUSY);
  EXPECT_EQ(ErrnoOf(verbs_.DestroyCq(cq_.get())), EBUSY);
  EXPECT_EQ(ErrnoOf(verbs_.DestroyCompChannel(channel_.get())), EBUSY);
  EXPECT_EQ(ErrnoOf(verbs_.CloseDevice(context_.get())), EBUSY);
  EXPECT_THAT(verbs_.LiveObjects(),
              ElementsAre(Pair("comp_channel", 1), Pair("context", 1),
                          Pair("cq", 1), Pair("pd", 1), Pair("qp", 1)));
}

TEST_F(FakeVerbsTest, ModifyFollowsTheKernelsRules) {
  ibv_qp_init_attr init = Attr();
  auto qp = rdma::CreateQp(verbs_, pd_, init);
  ASSERT_TRUE(qp.ok());
  ibv_qp_attr attr = InitAttr();
  EXPECT_EQ(ErrnoOf(verbs_.ModifyQp(qp->get(), &attr, IBV_QP_STATE)), EINVAL);
  attr.port_num = 2;
  EXPECT_EQ(ErrnoOf(verbs_.ModifyQp(qp->get(), &attr, kInit)), EINVAL);
  EXPECT_EQ((*qp)->state, IBV_QPS_RESET);
  attr.port_num = 1;
  EXPECT_TRUE(verbs_.ModifyQp(qp->get(), &attr, kInit).ok());
  EXPECT_EQ((*qp)->state, IBV_QPS_INIT);
}

TEST_F(FakeVerbsTest, FaultsComeWhenAskedFor) {
  const auto alloc = [&] {
    auto pd = verbs_.AllocPd(context_.get());
    const int error = ErrnoOf(pd.status());
    if (pd.ok()) {
      EXPECT_TRUE(verbs_.DeallocPd(*pd).ok());
    }
    return error;
  };
  verbs_.FailNext("alloc_pd", ENOMEM);
  EXPECT_EQ(alloc(), ENOMEM);
  EXPECT_EQ(alloc(), 0);
  verbs_.FailAfter("alloc_pd", 2, ENOSPC);
  EXPECT_EQ(alloc(), 0);
  EXPECT_EQ(alloc(), 0);
  EXPECT_EQ(alloc(), ENOSPC);
  EXPECT_EQ(alloc(), 0);
  verbs_.FailAlways("alloc_pd", EIO);
  EXPECT_EQ(alloc(), EIO);
  EXPECT_EQ(alloc(), EIO);
  verbs_.StopFailing("alloc_pd");
  EXPECT_EQ(alloc(), 0);
}

TEST_F(FakeVerbsTest, EveryCallCanFail) {
  ibv_qp_init_attr init = Attr();
  auto qp = rdma::CreateQp(verbs_, pd_, init);
  ASSERT_TRUE(qp.ok());
  char buffer[8];
  auto mr = rdma::RegMr(verbs_, pd_, buffer, sizeof(buffer), 0);
  ASSERT_TRUE(mr.ok());
  ibv_qp_attr attr = InitAttr();
  ibv_async_event event{};
  ibv_send_wr send{};
  ibv_recv_wr recv{};
  ibv_send_wr* bad_send = nullptr;
  ibv_recv_wr* bad_recv = nullptr;
  ibv_wc wc;
  const std::map<std::string, std::function<int()>> calls = {
      {"get_device_list",
       [&] { return ErrnoOf(verbs_.DeviceNames().status()); }},
      {"open_device",
       [&] { return ErrnoOf(verbs_.OpenDevice("rxe0").status()); }},
      {"close_device",
       [&] { return ErrnoOf(verbs_.CloseDevice(context_.get())); }},
      {"query_device",
       [&] { return ErrnoOf(verbs_.QueryDevice(context_.get()).status()); }},
      {"query_port",
       [&] { return ErrnoOf(verbs_.QueryPort(context_.get(), 1).status()); }},
      {"query_gid",
       [&] { return ErrnoOf(verbs_.QueryGid(context_.get(), 1, 0).status()); }},
      {"alloc_pd",
       [&] { return ErrnoOf(verbs_.AllocPd(context_.get()).status()); }},
      {"dealloc_pd", [&] { return ErrnoOf(verbs_.DeallocPd(pd_.get())); }},
      {"create_comp_channel",
       [&] {
         return ErrnoOf(verbs_.CreateCompChannel(context_.get()).status());
       }},
      {"destroy_comp_channel",
       [&] { return ErrnoOf(verbs_.DestroyCompChannel(channel_.get())); }},
      {"create_cq",
       [&] {
         return ErrnoOf(
             verbs_.CreateCq(context_.get(), 1, nullptr, nullptr).status());
       }},
      {"destroy_cq", [&] { return ErrnoOf(verbs_.DestroyCq(cq_.get())); }},
      {"reg_mr",
       [&] { return ErrnoOf(verbs_.RegMr(pd_.get(), buffer, 8, 0).status()); }},
      {"dereg_mr", [&] { return ErrnoOf(verbs_.DeregMr(mr->get())); }},
      {"create_qp", [&] { return CreateErrno(Attr()); }},
      {"modify_qp",
       [&] { return ErrnoOf(verbs_.ModifyQp(qp->get(), &attr, kInit)); }},
      {"query_qp",
       [&] { return ErrnoOf(verbs_.QueryQp(qp->get(), &attr, 0, &init)); }},
      {"destroy_qp", [&] { return ErrnoOf(verbs_.DestroyQp(qp->get())); }},
      {"get_cq_event",
       [&] { return ErrnoOf(verbs_.GetCqEvent(channel_.get()).status()); }},
      {"get_async_event",
       [&] {
         return ErrnoOf(verbs_.GetAsyncEvent(context_.get(), &event).status());
       }},
      {"post_send",
       [&] { return verbs_.PostSend(qp->get(), &send, &bad_send); }},
      {"post_recv",
       [&] { return verbs_.PostRecv(qp->get(), &recv, &bad_recv); }},
      {"poll_cq", [&] { return -verbs_.PollCq(cq_.get(), 1, &wc); }},
      {"req_notify_cq", [&] { return verbs_.ReqNotifyCq(cq_.get(), false); }}};
  const int live = verbs_.LiveObjectCount();
  for (const auto& [name, call] : calls) {
    verbs_.FailNext(name, EXDEV);
    EXPECT_EQ(call(), EXDEV) << name;
    EXPECT_EQ(verbs_.LiveObjectCount(), live) << name;
  }
  EXPECT_EQ(bad_send, &send);
  EXPECT_EQ(bad_recv, &recv);
}

TEST_F(FakeVerbsTest, PortEventsReachEveryOpenContext) {
  auto second = rdma::OpenDevice(verbs_, "rxe0");
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(Readable(context_->async_fd));
  verbs_.SetPortState("rxe0", 1, IBV_PORT_DOWN);
  verbs_.SetPortState("rxe0", 1, IBV_PORT_DOWN);  // no change, no event
  for (ibv_context* context : {context_.get(), second->get()}) {
    EXPECT_TRUE(Readable(context->async_fd));
    ibv_async_event event{};
    ASSERT_TRUE(*verbs_.GetAsyncEvent(context, &event));
    EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
    EXPECT_EQ(event.element.port_num, 1);
    verbs_.AckAsyncEvent(&event);
    EXPECT_FALSE(*verbs_.GetAsyncEvent(context, &event));
    EXPECT_FALSE(Readable(context->async_fd));
  }
  EXPECT_EQ(verbs_.QueryPort(context_.get(), 1)->state, IBV_PORT_DOWN);
}

TEST_F(FakeVerbsTest, DisassociatedDeviceAnswersEioAndCanBeTakenDown) {
  ibv_qp_init_attr init = Attr();
  auto qp = rdma::CreateQp(verbs_, pd_, init);
  ASSERT_TRUE(qp.ok());
  verbs_.RemoveDevice("rxe0", Removal::kDisassociate);
  ibv_async_event event{};
  ASSERT_TRUE(*verbs_.GetAsyncEvent(context_.get(), &event));
  EXPECT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
  verbs_.AckAsyncEvent(&event);
  EXPECT_EQ(CreateErrno(Attr()), EIO);
  EXPECT_EQ(ErrnoOf(verbs_.QueryPort(context_.get(), 1).status()), EIO);
  EXPECT_TRUE(verbs_.DeviceNames()->empty());
  EXPECT_TRUE(absl::IsNotFound(verbs_.OpenDevice("rxe0").status()));
  qp->reset();
  EXPECT_EQ(verbs_.LiveObjects().count("qp"), 0u);
}

TEST_F(FakeVerbsTest, ZombieGoesOnWorking) {
  verbs_.RemoveDevice("rxe0", Removal::kZombie);
  EXPECT_TRUE(absl::IsNotFound(verbs_.OpenDevice("rxe0").status()));
  EXPECT_EQ(CreateErrno(Attr()), 0);
  ibv_async_event event{};
  EXPECT_FALSE(*verbs_.GetAsyncEvent(context_.get(), &event));
}

TEST_F(FakeVerbsTest, ARemovalEndsWithTheLastContextAndTheDeviceMayReturn) {
  verbs_.RemoveDevice("rxe0", Removal::kZombie);
  EXPECT_DEATH(verbs_.AddDevice(RxeDevice()), "waits for users");
  std::jthread user([&] {
    pd_.reset();
    cq_.reset();
    channel_.reset();
    context_.reset();
  });
  EXPECT_TRUE(verbs_.AwaitRemoval("rxe0"));
  user.join();
  verbs_.AddDevice(RxeDevice());
  EXPECT_TRUE(verbs_.AwaitRemoval("rxe0")) << "the new one is not removed";
  context_ = *rdma::OpenDevice(verbs_, "rxe0");
}

TEST_F(FakeVerbsTest, BrokenQueuePairTellsTheTruthWhenAsked) {
  ibv_qp_init_attr init = Attr();
  auto qp = rdma::CreateQp(verbs_, pd_, init);
  ASSERT_TRUE(qp.ok());
  ibv_qp_attr attr = InitAttr();
  ASSERT_TRUE(verbs_.ModifyQp(qp->get(), &attr, kInit).ok());
  verbs_.BreakQp(qp->get());
  EXPECT_EQ((*qp)->state, IBV_QPS_INIT);
  ASSERT_TRUE(verbs_.QueryQp(qp->get(), &attr, IBV_QP_STATE, &init).ok());
  EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
  ibv_async_event event{};
  ASSERT_TRUE(*verbs_.GetAsyncEvent(context_.get(), &event));
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(event.element.qp, qp->get());
  verbs_.AckAsyncEvent(&event);
}

TEST_F(FakeVerbsTest, DestroyWaitsForTheAcknowledgement) {
  ibv_qp_init_attr init = Attr();
  auto qp = rdma::CreateQp(verbs_, pd_, init);
  ASSERT_TRUE(qp.ok());
  verbs_.RaiseQpEvent(qp->get(), IBV_EVENT_COMM_EST);
  verbs_.RaiseQpEvent(qp->get(), IBV_EVENT_COMM_EST);
  ibv_async_event event{};
  ASSERT_TRUE(*verbs_.GetAsyncEvent(context_.get(), &event));
  std::jthread acknowledger([&] { verbs_.AckAsyncEvent(&event); });
  qp->reset();
  // The one that nobody read went with its queue pair.
  EXPECT_FALSE(*verbs_.GetAsyncEvent(context_.get(), &event));
}

TEST_F(FakeVerbsTest, CallsAreCountedAndObserved) {
  std::vector<std::string> calls;
  verbs_.Observe([&](std::string_view call) { calls.emplace_back(call); });
  const uint64_t before = verbs_.Calls("query_device");
  ASSERT_TRUE(verbs_.QueryDevice(context_.get()).ok());
  verbs_.Observe(nullptr);
  ASSERT_TRUE(verbs_.QueryDevice(context_.get()).ok());
  EXPECT_THAT(calls, ElementsAre("query_device"));
  EXPECT_EQ(verbs_.Calls("query_device"), before + 2);
}

using FakeVerbsDeathTest = FakeVerbsTest;

TEST_F(FakeVerbsDeathTest, UseAfterTheEndDies) {
  ibv_pd* pd = *verbs_.AllocPd(context_.get());
  ASSERT_TRUE(verbs_.DeallocPd(pd).ok());
  EXPECT_DEATH((void)verbs_.DeallocPd(pd), "ibv_dealloc_pd of a pd that was");
  EXPECT_DEATH((void)verbs_.RegMr(pd, pd, 1, 0), "ibv_reg_mr of a pd that was");
}

TEST_F(FakeVerbsDeathTest, ObjectOfAnotherFakeDies) {
  FakeVerbs other;
  EXPECT_DEATH((void)other.DeallocPd(pd_.get()), "of another FakeVerbs");
  EXPECT_DEATH((void)other.DeallocPd(nullptr), "null pointer");
}

TEST_F(FakeVerbsDeathTest, MisspeltCallDies) {
  EXPECT_DEATH(verbs_.FailNext("aloc_pd", EIO), "aloc_pd");
}

}  // namespace
}  // namespace purser::fakes
