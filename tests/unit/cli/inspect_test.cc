// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"
#include "tests/unit/cli/cli_fixture.h"

namespace purser::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class InspectTest : public CliTest {
 protected:
  void CreateDetached(const char* count) {
    Purser purser;
    ASSERT_EQ(purser(Here({"qp", "create", "--detach", "--count", count})),
              kOk);
  }
  std::string FirstId() {
    Purser purser;
    EXPECT_EQ(purser(Here({"qp", "list"})), kOk);
    std::istringstream rows(purser.out.text());
    std::string heading, id;
    std::getline(rows, heading);
    rows >> id;
    return id;
  }
};

TEST_F(InspectTest, ListsAndDestroysTheDetached) {
  CreateDetached("2");
  Purser list;
  EXPECT_EQ(list(Here({"qp", "list"})), kOk);
  EXPECT_THAT(list.out.text(), AllOf(HasSubstr("purser (detached)"),
                                     HasSubstr("2 queue pairs, 14,336 bytes")));
  Purser destroy;
  EXPECT_EQ(destroy(Here({"qp", "destroy", FirstId()})), kOk);
  EXPECT_EQ(destroy.out.text(),
            "1 queue pair destroyed, 7,168 bytes (7 KiB) returned to the "
            "budget\n");
  EXPECT_EQ(sidecar_.queue_pairs(), 1u);
}

TEST_F(InspectTest, DestroyGoesOnAfterAFailure) {
  CreateDetached("1");
  Purser destroy;
  EXPECT_EQ(destroy(Here({"qp", "destroy", "999", FirstId()})), kFailure);
  EXPECT_THAT(destroy.err.text(), HasSubstr("no queue pair 999"));
  EXPECT_THAT(destroy.out.text(), HasSubstr("1 queue pair destroyed"));
  EXPECT_EQ(sidecar_.queue_pairs(), 0u);
}

TEST_F(InspectTest, DestroyAllLeavesWhatOthersHold) {
  CreateDetached("3");
  auto other = client::Client::Connect(sidecar_.socket_path(), "other");
  ASSERT_TRUE(other.ok());
  auto held = (*other)->CreateQueuePair({});
  ASSERT_TRUE(held.ok());
  Purser destroy;
  EXPECT_EQ(destroy(Here({"qp", "destroy", "--all"})), kOk);
  EXPECT_THAT(destroy.out.text(), HasSubstr("3 queue pairs destroyed"));
  EXPECT_EQ(sidecar_.queue_pairs(), 1u);
  EXPECT_EQ(destroy(Here({"qp", "destroy", "--all"})), kOk);
  EXPECT_THAT(destroy.out.text(), HasSubstr("0 queue pairs destroyed"));
}

TEST_F(InspectTest, ShowsTheBudget) {
  CreateDetached("1");
  Purser table, json;
  EXPECT_EQ(table(Here({"budget"})), kOk);
  EXPECT_THAT(
      table.out.text(),
      AllOf(HasSubstr("explicit"), HasSubstr("64 MiB"), HasSubstr("--budget"),
            HasSubstr("1 queue pair, 0 refusals")));
  EXPECT_EQ(json(Here({"budget", "-o", "json"})), kOk);
  EXPECT_THAT(json.out.text(),
              AllOf(StartsWith("{\n"), HasSubstr("\"binding\": true"),
                    HasSubstr("\"queuePairs\": 1")));
}

TEST_F(InspectTest, ListsAsJson) {
  CreateDetached("1");
  Purser json;
  EXPECT_EQ(json(Here({"qp", "list", "-o", "json"})), kOk);
  EXPECT_THAT(json.out.text(), AllOf(StartsWith("{\n \"queuePairs\": ["),
                                     HasSubstr("\"::ffff:10.0.0.1\"")));
}

TEST_F(InspectTest, ErrorsAreExitCode1) {
  for (const char* method : {"ListQueuePairs", "GetBudget"})
    sidecar_.FailNext(method, {grpc::StatusCode::INTERNAL, "broken"});
  Purser list, budget;
  EXPECT_EQ(list(Here({"qp", "list"})), kFailure);
  EXPECT_EQ(budget(Here({"budget"})), kFailure);
  EXPECT_EQ(budget.err.text(), "purser: broken\n");
}

}  // namespace
}  // namespace purser::cli
