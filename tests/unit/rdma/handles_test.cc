// SPDX-License-Identifier: Apache-2.0
#include "rdma/handles.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/fakes/fake_verbs.h"

namespace purser::rdma {
namespace {

using fakes::FakeVerbs;
using fakes::RxeDevice;

class HandlesTest : public ::testing::Test {
 protected:
  void SetUp() override { verbs_.AddDevice(RxeDevice()); }
  void TearDown() override { EXPECT_EQ(verbs_.LiveObjectCount(), 0); }

  FakeVerbs verbs_;
};

TEST_F(HandlesTest, DestroysInReverseOrderOfDeclaration) {
  std::vector<std::string> calls;
  {
    auto context = OpenDevice(verbs_, "rxe0");
    ASSERT_TRUE(context.ok());
    auto pd = AllocPd(verbs_, *context);
    ASSERT_TRUE(pd.ok());
    auto channel = CreateCompChannel(verbs_, *context);
    ASSERT_TRUE(channel.ok());
    auto cq = CreateCq(verbs_, *context, 16, nullptr, *channel);
    ASSERT_TRUE(cq.ok());
    char buffer[64];
    auto mr = RegMr(verbs_, *pd, buffer, sizeof(buffer), 0);
    ASSERT_TRUE(mr.ok());
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq->get();
    attr.cap = {.max_send_wr = 16,
                .max_recv_wr = 16,
                .max_send_sge = 1,
                .max_recv_sge = 1};
    attr.qp_type = IBV_QPT_RC;
    auto qp = CreateQp(verbs_, *pd, attr);
    ASSERT_TRUE(qp.ok());
    EXPECT_EQ(attr.cap.max_inline_data, 16u);  // written back
    EXPECT_EQ(verbs_.LiveObjectCount(), 6);
    verbs_.Observe([&](std::string_view call) { calls.emplace_back(call); });
  }
  verbs_.Observe(nullptr);
  EXPECT_THAT(calls, ::testing::ElementsAre(
                         "destroy_qp", "dereg_mr", "destroy_cq",
                         "destroy_comp_channel", "dealloc_pd", "close_device"));
}

TEST_F(HandlesTest, FailureToCreateKeepsErrnoAndLeaksNothing) {
  auto context = OpenDevice(verbs_, "rxe0");
  ASSERT_TRUE(context.ok());
  for (const int error : {ENOMEM, ENOSPC}) {
    verbs_.FailNext("alloc_pd", error);
    EXPECT_EQ(ErrnoOf(AllocPd(verbs_, *context).status()), error);
  }
  EXPECT_EQ(verbs_.LiveObjectCount(), 1);
}

TEST_F(HandlesTest, FailingDestroyIsLoggedAndNotFatal) {
  auto context = OpenDevice(verbs_, "rxe0");
  ASSERT_TRUE(context.ok());
  auto pd = AllocPd(verbs_, *context);
  ASSERT_TRUE(pd.ok());
  ibv_pd* raw = pd->get();
  verbs_.FailNext("dealloc_pd", EBUSY);
  ::testing::internal::CaptureStderr();
  pd->reset();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("ibv_dealloc_pd rxe0: EBUSY"));
  EXPECT_EQ(verbs_.LiveObjects().at("pd"), 1);
  EXPECT_TRUE(verbs_.DeallocPd(raw).ok());
}

TEST_F(HandlesTest, ADestroyThatFailsLeavesTheObjectToItsHandle) {
  auto context = OpenDevice(verbs_, "rxe0");
  ASSERT_TRUE(context.ok());
  auto pd = AllocPd(verbs_, *context);
  ASSERT_TRUE(pd.ok());
  verbs_.FailNext("dealloc_pd", EBUSY);
  EXPECT_EQ(ErrnoOf(Destroy(*pd)), EBUSY);
  EXPECT_NE(*pd, nullptr);
  EXPECT_TRUE(Destroy(*pd).ok());
  EXPECT_EQ(*pd, nullptr);
  EXPECT_TRUE(Destroy(*pd).ok()) << "there is nothing any more";
  EXPECT_EQ(verbs_.Calls("dealloc_pd"), 2u);
}

TEST_F(HandlesTest, MovedFromOwnsNothing) {
  auto context = OpenDevice(verbs_, "rxe0");
  ASSERT_TRUE(context.ok());
  Context moved = *std::move(context);
  EXPECT_EQ(verbs_.LiveObjectCount(), 1);
  moved.reset();
  EXPECT_EQ(verbs_.LiveObjectCount(), 0);
}

TEST_F(HandlesTest, NoSuchDevice) {
  const auto context = OpenDevice(verbs_, "mlx5_0");
  EXPECT_EQ(context.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(context.status().message()),
              ::testing::HasSubstr("rxe0"));
}

TEST_F(HandlesTest, ACompletionQueueNeedsNoChannel) {
  auto context = OpenDevice(verbs_, "rxe0");
  ASSERT_TRUE(context.ok());
  auto cq = CreateCq(verbs_, *context, 16, nullptr, CompletionChannel());
  ASSERT_TRUE(cq.ok());
  EXPECT_EQ((*cq)->channel, nullptr);
}

}  // namespace
}  // namespace purser::rdma
