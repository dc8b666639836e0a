// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/unit/cli/cli_fixture.h"

namespace purser::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A queue pair of 100/1, 50/1 costs 100 x 128 + 50 x 64 + 4096 bytes.
constexpr uint64_t kBytes = 20'096;

class CreateTest : public CliTest {
 protected:
  std::vector<std::string> Create(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"qp",  "create",    "--send-wr",
                                       "100", "--recv-wr", "50"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Here(arguments);
  }
};

TEST_F(CreateTest, HoldsWhatItCreatedUntilASignal) {
  Purser purser;
  int exit_code = -1;
  std::jthread hold([&] { exit_code = purser(Create({"--name", "me"})); });
  ASSERT_TRUE(purser.err.WaitFor("holding 1 queue pair until"));
  EXPECT_EQ(sidecar_.queue_pairs(), 1u);
  EXPECT_THAT(
      purser.out.text(),
      AllOf(HasSubstr("max_send_wr        100      100             127"),
            HasSubstr("total"), HasSubstr("20,096")));
  purser.signalled = true;
  hold.join();
  EXPECT_EQ(exit_code, kOk);
  EXPECT_EQ(sidecar_.queue_pairs(), 0u);
}

TEST_F(CreateTest, DetachedReturnsAtOnceAndLeavesIt) {
  Purser purser;
  EXPECT_EQ(purser(Create({"--detach", "--type", "uc"})), kOk);
  EXPECT_EQ(sidecar_.queue_pairs(), 1u);
  EXPECT_EQ(sidecar_.creations().at(0).type(), v1::QUEUE_PAIR_TYPE_UC);
  EXPECT_THAT(purser.err.text(), IsEmpty());
}

TEST_F(CreateTest, ARefusalIsACalculationAndExitCode3) {
  sidecar_.SetBudget(kBytes - 1);
  Purser purser;
  EXPECT_EQ(purser(Create({})), kRefused);
  EXPECT_THAT(purser.out.text(), IsEmpty());
  EXPECT_THAT(purser.err.text(),
              AllOf(HasSubstr("refused:"), HasSubstr("needed"),
                    HasSubstr("20,096"), HasSubstr("20,095"),
                    HasSubstr("largest max_send_wr that fits now: 99"),
                    HasSubstr("what to do: raise --budget")));
}

TEST_F(CreateTest, TakesLessWhereItMay) {
  sidecar_.SetBudget(kBytes - 1);
  Purser purser;
  EXPECT_EQ(purser(Create({"--least-send-wr", "20", "--detach"})), kOk);
  EXPECT_THAT(purser.err.text(), HasSubstr("shrunk: it did not fit\n"));
  EXPECT_THAT(purser.out.text(), HasSubstr("max_send_wr        100       20"));
  EXPECT_EQ(sidecar_.creations().at(0).least().max_recv_wr(), 50u);
}

TEST_F(CreateTest, AClassIsNamedAndHasItsOwnCapacities) {
  Purser purser;
  EXPECT_EQ(purser(Create({"--class", "core", "--detach"})), kOk);
  EXPECT_EQ(purser(Here({"qp", "create", "--class", "bulk", "--detach"})), kOk);
  const auto creations = sidecar_.creations();
  ASSERT_EQ(creations.size(), 2u);
  EXPECT_EQ(creations[0].class_(), "core");
  EXPECT_EQ(creations[0].cap().max_send_wr(), 100u);
  EXPECT_EQ(creations[1].class_(), "bulk");
  EXPECT_EQ(creations[1].cap().ByteSizeLong(), 0u);
}

TEST_F(CreateTest, SharesQueuesWhereToldTo) {
  Purser purser;
  EXPECT_EQ(purser(Create({"--completion-queue", "own", "--detach"})), kOk);
  EXPECT_TRUE(sidecar_.creations().at(0).completion_queue().own());
  EXPECT_EQ(purser(Create({"--completion-queue", "all", "--detach"})), kOk);
  EXPECT_EQ(sidecar_.creations().at(1).completion_queue().shared(), "all");
  EXPECT_EQ(purser(Create({"--srq-wr", "64", "--detach"})), kOk);
  const v1::CreateQueuePairRequest created = sidecar_.creations().at(2);
  EXPECT_FALSE(created.has_completion_queue());
  EXPECT_NE(created.shared_receive_queue_id(), 0u);
  EXPECT_EQ(created.cap().max_recv_wr(), 0u);
  EXPECT_EQ(created.cap().max_recv_sge(), 0u);
  sidecar_.FailNext("CreateSharedReceiveQueue",
                    {grpc::StatusCode::INTERNAL, "no"});
  EXPECT_NE(purser(Create({"--srq-wr", "64", "--detach"})), kOk);
  EXPECT_EQ(sidecar_.creations().size(), 3u);
}

TEST_F(CreateTest, DeclaresWhatWillBePosted) {
  Purser purser;
  EXPECT_EQ(
      purser(Create({"--send-op", "send", "--send-op", "read", "--detach"})),
      kOk);
  EXPECT_THAT(sidecar_.creations().at(0).send_operations(),
              ElementsAre(v1::SEND_OPCODE_SEND, v1::SEND_OPCODE_SEND_WITH_IMM,
                          v1::SEND_OPCODE_RDMA_READ));
  EXPECT_EQ(purser(Create({"--send-op", "write", "--detach"})), kOk);
  EXPECT_THAT(sidecar_.creations().at(1).send_operations(),
              ElementsAre(v1::SEND_OPCODE_RDMA_WRITE,
                          v1::SEND_OPCODE_RDMA_WRITE_WITH_IMM));
  EXPECT_EQ(purser(Create({"--send-op", "atomic", "--detach"})), kUsage);
  EXPECT_THAT(purser.err.text(),
              HasSubstr("'atomic' is none of send, write, read"));
}

TEST_F(CreateTest, CountStopsAtTheFirstRefusalAndHoldsTheRest) {
  sidecar_.SetBudget(3 * kBytes + 100);
  Purser purser;
  int exit_code = -1;
  std::jthread hold([&] { exit_code = purser(Create({"--count", "10"})); });
  ASSERT_TRUE(purser.err.WaitFor("holding 3 queue pairs until"));
  EXPECT_THAT(purser.out.text(),
              AllOf(HasSubstr("created 3 of 10 queue pairs"),
                    HasSubstr("60,288"), Not(HasSubstr("\r"))));
  EXPECT_THAT(purser.err.text(), HasSubstr("refused:"));
  EXPECT_EQ(sidecar_.creations().size(), 4u);
  purser.signalled = true;
  hold.join();
  EXPECT_EQ(exit_code, kRefused);
}

TEST_F(CreateTest, CountDetachedKeepsThoseBeforeTheRefusal) {
  sidecar_.SetBudget(2 * kBytes);
  Purser purser;
  EXPECT_EQ(purser(Create({"--count", "3", "--detach"})), kRefused);
  EXPECT_EQ(sidecar_.queue_pairs(), 2u);
}

TEST_F(CreateTest, ProgressShowsOnATerminalAlone) {
  Purser purser;
  purser.terminal = true;
  EXPECT_EQ(purser(Create({"--count", "3", "--detach"})), kOk);
  EXPECT_THAT(purser.out.text(), HasSubstr("\r  2 of 3"));
}

TEST_F(CreateTest, ASignalEndsALongCreation) {
  Purser purser;
  purser.signalled = true;
  EXPECT_EQ(purser(Create({"--count", "1000000"})), kOk);
  EXPECT_EQ(sidecar_.creations().size(), 1u);
  EXPECT_EQ(sidecar_.queue_pairs(), 0u);
}

TEST_F(CreateTest, JsonGoesToStdoutAlone) {
  Purser purser;
  EXPECT_EQ(purser(Create({"--detach", "-o", "json", "--count", "2"})), kOk);
  EXPECT_THAT(purser.out.text(),
              AllOf(testing::StartsWith("{\n \"queuePairs\": ["),
                    HasSubstr("\"sendSlots\": 127")));
}

TEST_F(CreateTest, NoticesThatTheSidecarIsGone) {
  Purser purser;
  int exit_code = -1;
  std::jthread hold([&] { exit_code = purser(Create({})); });
  ASSERT_TRUE(purser.err.WaitFor("holding"));
  sidecar_.Stop();
  hold.join();
  EXPECT_EQ(exit_code, kFailure);
  EXPECT_THAT(purser.err.text(), HasSubstr("is gone"));
}

TEST_F(CreateTest, NoticesThatTheDeviceIsGone) {
  Purser purser;
  int exit_code = -1;
  std::jthread hold([&] { exit_code = purser(Create({})); });
  ASSERT_TRUE(purser.err.WaitFor("holding"));
  sidecar_.LoseDevice("other0");
  sidecar_.LoseDevice("fake0");
  hold.join();
  EXPECT_EQ(exit_code, kFailure);
  EXPECT_THAT(purser.err.text(), HasSubstr("device fake0 is gone"));
}

TEST_F(CreateTest, OtherErrorsAreExitCode1) {
  sidecar_.FailNext("CreateQueuePair",
                    {grpc::StatusCode::NOT_FOUND, "no device mlx9_0"});
  Purser purser;
  EXPECT_EQ(purser(Create({"--device", "mlx9_0"})), kFailure);
  EXPECT_EQ(purser.err.text(), "purser: no device mlx9_0\n");
}

TEST(NoSidecarTest, IsExitCode4AndSaysWhatToDo) {
  Purser purser;
  EXPECT_EQ(purser({"--socket", "/nonexistent/s.sock", "budget"}), kNoSidecar);
  EXPECT_THAT(purser.err.text(),
              AllOf(HasSubstr("/nonexistent/s.sock"), HasSubstr("--socket")));
}

TEST_F(CreateTest, AHangingSidecarIsExitCode4) {
  sidecar_.HangNext("Attach");
  Purser purser;
  EXPECT_EQ(purser(Here({"--rpc-timeout", "0.1", "budget"})), kNoSidecar);
  EXPECT_THAT(purser.err.text(), HasSubstr("did not answer"));
}

TEST_F(CreateTest, WaitsForASidecarThatDoesNotAnswerYet) {
  sidecar_.HangNext("Attach");
  Purser purser;
  EXPECT_EQ(purser(Here({"--rpc-timeout", "0.1", "--wait", "20", "budget"})),
            kOk);
  EXPECT_EQ(purser.err.text(), "");
}

TEST(NoSidecarTest, WaitsNoLongerThanAsked) {
  Purser purser;
  EXPECT_EQ(
      purser({"--socket", "/nonexistent/s.sock", "--wait", "0.2", "budget"}),
      kNoSidecar);
}

TEST(ExitCodeTest, FollowsTheRefusalsReason) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), kOk);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("x")), kFailure);
  for (const auto& [reason, exit_code] :
       {std::pair(v1::REASON_BUDGET, kRefused),
        std::pair(v1::REASON_DEVICE_LIMIT, kRefused),
        std::pair(v1::REASON_QUEUE_PAIR_COUNT, kRefused),
        std::pair(v1::REASON_PRESSURE, kRefused),
        std::pair(v1::REASON_CLASS_SHARE, kRefused),
        std::pair(v1::REASON_INVALID, kUsage),
        std::pair(v1::REASON_CREATE_FAILED, kFailure)}) {
    v1::Refusal refusal;
    refusal.set_reason(reason);
    absl::Status status = absl::ResourceExhaustedError("refused");
    status.SetPayload("type.googleapis.com/purser.v1.Refusal",
                      absl::Cord(refusal.SerializeAsString()));
    EXPECT_EQ(ExitCodeOf(status), exit_code);
  }
}

}  // namespace
}  // namespace purser::cli
