// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cli/cli_fixture.h"

namespace purser::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FillTest : public CliTest {};

TEST_F(FillTest, PostsUntilTheSendQueueRefuses) {
  for (const char* burst : {"1", "50", "127", "128", "4096"}) {
    Purser purser;
    EXPECT_EQ(
        purser(Here({"qp", "fill", "--send-wr", "100", "--burst", burst})),
        kOk);
    EXPECT_THAT(purser.out.text(),
                AllOf(HasSubstr("  max_send_wr asked       100\n"),
                      HasSubstr("  posts it takes          127  by"),
                      HasSubstr("  posted                  127\n"),
                      HasSubstr("  next post            ENOMEM  errno 12\n"
                                "  send queue full: 127 of 127 posted\n")));
  }
  EXPECT_EQ(sidecar_.queue_pairs(), 0u);
  EXPECT_EQ(fabric_.regions(), 0u);
}

TEST_F(FillTest, ARefusedQueuePairIsExitCode3) {
  sidecar_.SetBudget(100);
  Purser purser;
  EXPECT_EQ(purser(Here({"qp", "fill"})), kRefused);
}

TEST_F(FillTest, ASharedVolumeThatIsNotThereIsNamed) {
  Purser purser;
  EXPECT_EQ(purser(Here({"qp", "fill", "--shared-volume", "/nonexistent"})),
            kFailure);
  EXPECT_THAT(purser.err.text(), HasSubstr("/nonexistent"));
}

TEST_F(FillTest, AFailureOnTheWayIsExitCode1) {
  for (const char* method : {"ModifyQueuePair", "PostSend"}) {
    sidecar_.FailNext(method, {grpc::StatusCode::INTERNAL, "broken"});
    Purser purser;
    EXPECT_EQ(purser(Here({"qp", "fill"})), kFailure) << method;
    EXPECT_EQ(purser.err.text(), "purser: broken\n");
  }
}

}  // namespace
}  // namespace purser::cli
