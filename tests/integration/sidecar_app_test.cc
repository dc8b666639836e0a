// SPDX-License-Identifier: Apache-2.0
//
// The whole sidecar in this process: real gRPC over a real unix socket, real
// HTTP, on the verbs fake.

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "purser/v1/sidecar.grpc.pb.h"
#include "sidecar/app.h"
#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/fake_verbs.h"
#include "tests/fakes/file_tree.h"
#include "tests/integration/calm_proc.h"
#include "tests/integration/http_get.h"

namespace purser::integration {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kBudget = 4 << 20;

// A client as others write it: a stub, and the stream that it stands behind.
class Client {
 public:
  explicit Client(const std::string& socket)
      : stub_(v1::Sidecar::NewStub(grpc::CreateChannel(
            "unix:" + socket, grpc::InsecureChannelCredentials()))),
        events_(stub_->Attach(&context_, {})) {
    v1::AttachEvent event;
    EXPECT_TRUE(events_->Read(&event));
    client_id_ = event.attached().client_id();
  }
  ~Client() { context_.TryCancel(); }

  grpc::Status Create(uint32_t send_wr, v1::CreateQueuePairResponse& response) {
    grpc::ClientContext context;
    v1::CreateQueuePairRequest request;
    request.set_client_id(client_id_);
    request.mutable_cap()->set_max_send_wr(send_wr);
    request.mutable_cap()->set_max_send_sge(2);
    request.mutable_cap()->set_max_recv_wr(128);
    request.mutable_cap()->set_max_recv_sge(1);
    return stub_->CreateQueuePair(&context, request, &response);
  }
  grpc::Status Destroy(uint64_t id) {
    grpc::ClientContext context;
    v1::DestroyQueuePairRequest request;
    v1::DestroyQueuePairResponse response;
    request.set_client_id(client_id_);
    request.set_id(id);
    return stub_->DestroyQueuePair(&context, request, &response);
  }
  v1::GetBudgetResponse Budget() {
    grpc::ClientContext context;
    v1::GetBudgetResponse response;
    const grpc::Status status = stub_->GetBudget(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::GetStatusResponse Status() {
    grpc::ClientContext context;
    v1::GetStatusResponse response;
    const grpc::Status status = stub_->GetStatus(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

 private:
  std::unique_ptr<v1::Sidecar::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::AttachEvent>> events_;
  std::string client_id_;
};

class SidecarAppTest : public ::testing::Test {
 protected:
  SidecarAppTest() {
    sysfs_.AddDevice(fakes::SysfsRxe("rxe0", "eth0"));
    verbs_.AddDevice(fakes::RxeDevice("rxe0"));
    tree_.Directory("run");
    config_.budget_bytes = kBudget;
    config_.budget_origin = "--budget";
    config_.shared_volume = tree_.path("run");
    config_.metrics_address = "127.0.0.1:0";
    config_.sysfs_root = sysfs_.sysfs_root().string();
    config_.dev_root = sysfs_.dev_root().string();
    WriteCalmProc(tree_);
    config_.proc_root = tree_.path("proc");
    config_.cgroup_root = tree_.path("cgroup");
  }
  ~SidecarAppTest() override { EXPECT_EQ(verbs_.LiveObjectCount(), 0); }

  absl::StatusOr<std::unique_ptr<sidecar::App>> Create() {
    return sidecar::App::Create(config_, {}, verbs_);
  }

  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_{tree_};
  fakes::FakeVerbs verbs_;
  sidecar::Config config_;
};

TEST_F(SidecarAppTest, RefusesWithTheArithmeticAndShowsItAll) {
  auto app = Create();
  ASSERT_TRUE(app.ok()) << app.status();
  Client client(config_.SocketPath());
  v1::CreateQueuePairResponse response;
  grpc::Status status;
  uint64_t held = 0;
  while ((status = client.Create(1024, response)).ok())
    held += response.queue_pair().memory().total_bytes();
  const v1::GetStatusResponse shows = client.Status();
  for (const v1::CompletionQueue& shared : shows.completion_queues())
    held += shared.memory().total_bytes();

  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("queue pair RC 1024/2 send, 128/1 receive on "
                              "rxe0 needs "),
                    HasSubstr("of 4,194,304 bytes are in use (bound: explicit, "
                              "--budget)"),
                    HasSubstr("the largest max_send_wr that fits is ")));
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  ASSERT_EQ(details.details_size(), 1);
  v1::Refusal refusal;
  ASSERT_TRUE(details.details(0).UnpackTo(&refusal));
  EXPECT_EQ(refusal.used_bytes(), held);
  EXPECT_EQ(refusal.budget_bytes(), kBudget);

  const v1::GetBudgetResponse budget = client.Budget();
  EXPECT_EQ(budget.used().node_bytes() + budget.used().container_bytes(), held);
  EXPECT_EQ(budget.headroom_bytes(), kBudget - held);
  const std::string metrics = HttpGet((*app)->metrics_port(), "/metrics");
  EXPECT_THAT(metrics, AllOf(HasSubstr("purser_queue_memory_bytes{"),
                             HasSubstr("purser_admissions_total{")));
  EXPECT_THAT(HttpGet((*app)->metrics_port(), "/healthz"), HasSubstr("200"));
  EXPECT_THAT(HttpGet((*app)->metrics_port(), "/readyz"), HasSubstr("200"));
}

TEST_F(SidecarAppTest, SixteenClientsNeverExceedTheBudget) {
  auto app = Create();
  ASSERT_TRUE(app.ok()) << app.status();
  std::atomic<bool> done = false;
  std::atomic<int> granted = 0, refused = 0, over = 0;
  std::jthread watcher([&] {
    Client client(config_.SocketPath());
    while (!done) {
      const v1::GetBudgetResponse budget = client.Budget();
      if (budget.used().node_bytes() + budget.used().container_bytes() >
          kBudget)
        ++over;
    }
  });
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 16; ++thread) {
      threads.emplace_back([&, thread] {
        Client client(config_.SocketPath());
        std::vector<uint64_t> kept;
        for (int round = 0; round < 40; ++round) {
          v1::CreateQueuePairResponse response;
          const grpc::Status status =
              client.Create(128u << ((thread + round) % 4), response);
          if (status.ok()) {
            ++granted;
            kept.push_back(response.queue_pair().id());
          } else {
            EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
                << status.error_message();
            ++refused;
          }
          if (kept.size() > 4 || (!status.ok() && !kept.empty())) {
            EXPECT_TRUE(client.Destroy(kept.front()).ok());
            kept.erase(kept.begin());
          }
        }
      });
    }
  }
  done = true;
  watcher.join();
  EXPECT_EQ(over, 0);
  EXPECT_GT(granted, 0);
  EXPECT_GT(refused, 0) << "the budget was never reached: nothing was tested";
}

TEST_F(SidecarAppTest, AFailedStartLeavesNothing) {
  for (const char* call :
       {"open_device", "query_device", "alloc_pd", "create_comp_channel"}) {
    SCOPED_TRACE(call);
    verbs_.FailNext(call, EINVAL);
    const auto app = Create();
    EXPECT_FALSE(app.ok());
    EXPECT_FALSE(absl::IsInvalidArgument(app.status()))
        << "a device's EINVAL is no fault of the config";
    EXPECT_EQ(verbs_.LiveObjectCount(), 0);
    EXPECT_FALSE(std::filesystem::exists(config_.SocketPath()));
  }
  EXPECT_TRUE(Create().ok());
}

TEST_F(SidecarAppTest, StopsWithClientsAttachedAndTwice) {
  auto app = Create();
  ASSERT_TRUE(app.ok()) << app.status();
  Client client(config_.SocketPath());
  v1::CreateQueuePairResponse response;
  ASSERT_TRUE(client.Create(128, response).ok());
  const auto begin = std::chrono::steady_clock::now();
  (*app)->Stop();
  (*app)->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(verbs_.LiveObjectCount(), 0);
  EXPECT_FALSE(std::filesystem::exists(config_.SocketPath()));
  EXPECT_EQ(client.Create(128, response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace purser::integration
