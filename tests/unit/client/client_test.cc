// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"

#include <string>
#include <thread>

#include "tests/unit/client/client_fixture.h"

namespace purser::client {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Options kImpatient{.rpc_timeout = milliseconds(200)};

TEST_F(ClientTest, AttachesUnderItsNameAndLearnsTheDevices) {
  auto client = Connected();
  EXPECT_TRUE(sidecar_.WaitForClients(1));
  ASSERT_EQ(client->devices().size(), 1u);
  EXPECT_EQ(client->devices()[0].name(), "fake0");
  EXPECT_TRUE(client->status().ok());
}

TEST_F(ClientTest, EndsItsAttachmentWhenDestroyed) {
  auto client = Connected();
  ASSERT_TRUE(sidecar_.WaitForClients(1));
  client.reset();
  EXPECT_TRUE(sidecar_.WaitForClients(0));
}

TEST(ClientConnectTest, NamesTheSocketWhereNoSidecarAnswers) {
  auto client = Client::Connect("/nonexistent/sidecar.sock", "test");
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(client.status().message()),
              testing::AllOf(
                  HasSubstr("no sidecar answers at /nonexistent/sidecar.sock"),
                  HasSubstr("No such file"), HasSubstr("purser-sidecar")));
}

TEST_F(ClientTest, NamesAStaleSocket) {
  volume_.Write("stale.sock", "");
  auto client = Client::Connect(volume_.path("stale.sock"), "test");
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(client.status().message()),
              HasSubstr("Connection refused"));
}

TEST(ClientConnectTest, RefusesASocketPathThatAUnixSocketCannotTake) {
  for (const std::string& path : {std::string(), std::string(108, 'x')}) {
    auto client = Client::Connect(path, "test");
    EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(client.status().message()),
                HasSubstr(std::to_string(path.size()) + " bytes"));
  }
}

TEST_F(ClientTest, PassesOnWhyItMayNotAttach) {
  sidecar_.FailNext("Attach",
                    {grpc::StatusCode::RESOURCE_EXHAUSTED, "256 clients"});
  auto client = Client::Connect(sidecar_.socket_path(), "test");
  EXPECT_EQ(client.status(), absl::ResourceExhaustedError("256 clients"));
}

TEST_F(ClientTest, GivesUpOnASidecarThatDoesNotAttachIt) {
  sidecar_.HangNext("Attach");
  auto client = Client::Connect(sidecar_.socket_path(), "test", kImpatient);
  EXPECT_EQ(client.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(client.status().message()),
              HasSubstr("did not answer Attach within 200 ms"));
}

TEST_F(ClientTest, EveryCallHasADeadline) {
  auto client = Connected(kImpatient);
  auto queue_pair = client->CreateQueuePair(Spec());
  ASSERT_TRUE(queue_pair.ok()) << queue_pair.status();
  const auto expect_late = [](const absl::Status& status, const char* method) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << method;
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr(std::string("did not answer ") + method + " within 200 ms"));
  };
  sidecar_.HangNext("GetBudget");
  expect_late(client->Budget().status(), "GetBudget");
  sidecar_.HangNext("PollCompletions");
  expect_late(queue_pair->Poll(1).status(), "PollCompletions");
  EXPECT_TRUE(client->status().ok()) << "a late answer is not the end";
}

TEST_F(ClientTest, ARefusalCarriesItsArithmetic) {
  sidecar_.SetBudget(10'000);
  auto client = Connected();
  auto queue_pair = client->CreateQueuePair(Spec(256, 16));
  ASSERT_EQ(queue_pair.status().code(), absl::StatusCode::kResourceExhausted);
  auto refusal = RefusalOf(queue_pair.status());
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason(), v1::REASON_BUDGET);
  EXPECT_EQ(refusal->needed_bytes(), 256u * 128 + 16 * 64 + 4096);
  EXPECT_EQ(refusal->budget_bytes(), 10'000u);
  EXPECT_EQ(refusal->largest_max_send_wr(), 38u);
  EXPECT_EQ(sidecar_.queue_pairs(), 0u);
}

TEST_F(ClientTest, TellsWhenTheSidecarIsGone) {
  auto client = Connected();
  auto queue_pair = client->CreateQueuePair(Spec());
  ASSERT_TRUE(queue_pair.ok());
  EXPECT_TRUE(client->WaitUntilGone(milliseconds(1)).ok());
  sidecar_.Stop();
  absl::Status gone = client->WaitUntilGone(milliseconds(5000));
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(gone.message()),
              testing::AllOf(HasSubstr("the sidecar at " +
                                       sidecar_.socket_path() + " is gone"),
                             HasSubstr("no longer exist")));
  EXPECT_EQ(client->status(), gone);
  // Nothing is asked of a successor that knows neither client nor queue pair.
  sidecar_.Start();
  EXPECT_EQ(client->Budget().status(), gone);
  EXPECT_EQ(queue_pair->Poll(1).status(), gone);
  EXPECT_TRUE(Connected()->Budget().ok());
}

TEST_F(ClientTest, ASidecarThatDiesDuringACallIsUnavailable) {
  auto client = Connected();
  sidecar_.HangNext("GetBudget");
  std::jthread stop([this] { sidecar_.Stop(); });
  absl::Status status = client->Budget().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is gone"));
}

TEST_F(ClientTest, AnUnavailableDeviceIsNotTheEndOfTheSidecar) {
  auto client = Connected();
  sidecar_.FailNext("CreateQueuePair",
                    {grpc::StatusCode::UNAVAILABLE, "device fake0 is gone"});
  EXPECT_EQ(client->CreateQueuePair(Spec()).status(),
            absl::UnavailableError("device fake0 is gone"));
  EXPECT_TRUE(client->status().ok());
}

TEST_F(ClientTest, AClientThatTheSidecarForgotIsToldToConnectAgain) {
  auto client = Connected();
  sidecar_.FailNext("CreateQueuePair", {grpc::StatusCode::UNAUTHENTICATED,
                                        "client_id is not attached"});
  absl::Status status = client->CreateQueuePair(Spec()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("connect again"));
}

TEST_F(ClientTest, HearsOfALostDevice) {
  auto client = Connected();
  EXPECT_THAT(client->lost_devices(), IsEmpty());
  sidecar_.LoseDevice("fake0");
  while (client->lost_devices().empty() && client->status().ok())
    (void)client->WaitUntilGone(milliseconds(5));
  EXPECT_THAT(client->lost_devices(), ElementsAre("fake0"));
  EXPECT_TRUE(client->status().ok());
}

TEST_F(ClientTest, ListsAllPages) {
  auto client = Connected();
  sidecar_.SetPageSize(2);
  std::vector<QueuePair> held;
  for (int i = 0; i < 5; ++i) {
    auto queue_pair = client->CreateQueuePair(Spec());
    ASSERT_TRUE(queue_pair.ok());
    held.push_back(std::move(*queue_pair));
  }
  auto listed = client->List();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 5u);
  for (size_t i = 0; i < held.size(); ++i)
    EXPECT_EQ((*listed)[i].id(), held[i].id());
}

TEST_F(ClientTest, AListThatDoesNotAdvanceIsAnError) {
  auto client = Connected();
  auto queue_pair = client->CreateQueuePair(Spec());
  sidecar_.SetPageSize(0);
  EXPECT_EQ(client->List().status().code(), absl::StatusCode::kInternal);
}

TEST_F(ClientTest, DestroysByIdAndTellsTheBytes) {
  auto client = Connected();
  QueuePairSpec spec = Spec(1, 1);
  spec.detached = true;
  auto queue_pair = client->CreateQueuePair(spec);
  ASSERT_TRUE(queue_pair.ok());
  auto returned = client->Destroy(queue_pair->id());
  ASSERT_TRUE(returned.ok()) << returned.status();
  EXPECT_EQ(*returned, 128u + 64 + 4096);
  EXPECT_EQ(client->Destroy(queue_pair->id()).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ClientTest, ReadsTheBudget) {
  auto client = Connected();
  auto queue_pair = client->CreateQueuePair(Spec(1, 1));
  auto budget = client->Budget();
  ASSERT_TRUE(budget.ok());
  EXPECT_EQ(budget->bounds(0).used_bytes(), 4288u);
  EXPECT_EQ(budget->queue_pairs(), 1u);
}

TEST_F(ClientTest, SharedReceiveQueuesAndTheStatus) {
  auto client = Connected();
  const auto queue = client->CreateSharedReceiveQueue(100, 2, "", "core");
  ASSERT_TRUE(queue.ok()) << queue.status();
  EXPECT_EQ(queue->slots(), 127u);
  EXPECT_EQ(queue->max_sge(), 2u);
  EXPECT_EQ(queue->class_(), "core");
  EXPECT_EQ(*client->DestroySharedReceiveQueue(queue->id()), 4096u);
  const auto status = client->SidecarStatus();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->clients_size(), 1);
}

}  // namespace
}  // namespace purser::client
