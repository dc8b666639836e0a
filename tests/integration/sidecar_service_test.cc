// SPDX-License-Identifier: Apache-2.0
//
// The service over a real unix socket: streams that stand for clients, polls
// that wait, and data between the queue pairs of two sidecars.
#include <atomic>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sidecar/service.h"
#include "tests/integration/served_sidecar.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Waits until a poll of the queue pair is armed: from then on only an event
// ends it.
bool Armed(FakeSidecar& sidecar, uint64_t arms) {
  return Eventually(
      [&] { return sidecar.verbs().Calls("req_notify_cq") >= arms; });
}

TEST(SidecarServiceTest, DataMovesBetweenTheQueuePairsOfTwoSidecars) {
  const auto fabric = fakes::NewFabric();
  ServedSidecar a({.ipv4 = "192.0.2.1", .fabric = fabric});
  ServedSidecar b({.ipv4 = "192.0.2.2", .fabric = fabric});
  Client from(a), to(b);
  a.sidecar().tree().Write("volume/out",
                           "The quick brown fox" + std::string(4077, '.'));
  b.sidecar().tree().Write("volume/in", std::string(8192, '\0'));
  const auto out = from.Register("out", 4096), in = to.Register("in", 8192);
  const v1::QueuePair source = from.Create(), target = to.Create();
  from.Connect(source, target.local());
  to.Connect(target, source.local());

  ASSERT_EQ(to.PostReceive(target.id(), 7, in.region_id(), 4096).posted(), 1u);
  auto received =
      std::async(std::launch::async, [&] { return to.Poll(target.id(), 10); });
  EXPECT_TRUE(Armed(b.sidecar(), 1));
  v1::SendWorkRequest send;
  send.set_wr_id(UINT64_MAX);
  send.set_opcode(v1::SEND_OPCODE_SEND_WITH_IMM);
  send.set_imm_data(0x01020304);
  send.add_sg_list()->set_region_id(out.region_id());
  send.mutable_sg_list(0)->set_length(19);
  ASSERT_EQ(from.PostSend(source.id(), send).posted(), 1u);
  const v1::PollCompletionsResponse arrived = received.get();
  ASSERT_EQ(arrived.completions_size(), 1);
  EXPECT_EQ(arrived.completions(0).wr_id(), 7u);
  EXPECT_TRUE(arrived.completions(0).receive());
  EXPECT_EQ(arrived.completions(0).byte_len(), 19u);
  EXPECT_EQ(arrived.completions(0).imm_data(), 0x01020304u);
  EXPECT_EQ(arrived.completions(0).status_name(), "SUCCESS");

  v1::SendWorkRequest write;
  write.set_wr_id(2);
  write.set_opcode(v1::SEND_OPCODE_RDMA_WRITE);
  write.set_remote_addr(in.remote_addr() + 4096);
  write.set_rkey(in.rkey());
  write.add_sg_list()->set_region_id(out.region_id());
  write.mutable_sg_list(0)->set_offset(4);
  write.mutable_sg_list(0)->set_length(5);
  ASSERT_EQ(from.PostSend(source.id(), write).posted(), 1u);
  const v1::PollCompletionsResponse sent = from.Poll(source.id(), 0);
  ASSERT_EQ(sent.completions_size(), 2);
  EXPECT_EQ(sent.completions(0).wr_id(), UINT64_MAX);
  EXPECT_FALSE(sent.completions(0).receive());
  EXPECT_EQ(sent.completions(1).wr_id(), 2u);
  const std::string content = Contents(b.sidecar().tree().path("volume/in"));
  EXPECT_EQ(content.substr(0, 19), "The quick brown fox");
  EXPECT_EQ(content.substr(4096, 5), "quick");
}

TEST(SidecarServiceTest, AttachNamesTheDevices) {
  ServedSidecar served({.mlx5 = true});
  Client client(served);
  ASSERT_TRUE(client.attached());
  ASSERT_EQ(client.attachment().devices_size(), 2);
  const v1::Device& device = client.attachment().devices(0);
  EXPECT_EQ(device.name(), "rxe0");
  EXPECT_EQ(device.provider(), "rxe");
  EXPECT_EQ(device.port_state(), v1::PORT_STATE_ACTIVE);
  EXPECT_EQ(device.link_layer(), v1::LINK_LAYER_ETHERNET);
  EXPECT_EQ(device.active_mtu(), 1024u);
  EXPECT_EQ(device.max_sge(), 32u);
}

TEST(SidecarServiceTest, WhenAStreamEndsWhatTheClientHeldIsGone) {
  ServedSidecar served;
  FakeSidecar& sidecar = served.sidecar();
  sidecar.tree().Write("volume/buffer", std::string(4096, '\0'));
  {
    Client cancels(served);
    cancels.Create();
    cancels.Register("buffer", 4096);
    EXPECT_EQ(sidecar.object_count(), 3);
    cancels.Detach();
  }
  EXPECT_TRUE(Eventually([&] { return sidecar.object_count() == 0; }));
  EXPECT_TRUE(Eventually([&] { return sidecar.held_bytes() == 0; }));
  EXPECT_EQ(sidecar.broker().clients().count(), 0u);
}

TEST(SidecarServiceTest, AnEndedClientIsUnauthenticated) {
  ServedSidecar served;
  Client client(served);
  const v1::QueuePair queue_pair = client.Create();
  EXPECT_EQ(client.Detach().error_code(), grpc::CANCELLED);
  EXPECT_TRUE(Eventually(
      [&] { return served.sidecar().broker().clients().count() == 0; }));
  v1::PollCompletionsResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(client.Poll(&context, queue_pair.id(), 1, &response).error_code(),
            grpc::UNAUTHENTICATED);
}

TEST(SidecarServiceTest, RefusesNamesAndClientsThatAreTooMany) {
  ServedSidecar served({.max_clients = 1});
  Client bad_name(served, std::string(64, 'x'));
  EXPECT_FALSE(bad_name.attached());
  EXPECT_EQ(bad_name.Finish().error_code(), grpc::INVALID_ARGUMENT);
  Client first(served);
  ASSERT_TRUE(first.attached());
  Client second(served);
  EXPECT_FALSE(second.attached());
  const grpc::Status status = second.Finish();
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("maxClients is 1"));
  first.Detach();
  EXPECT_TRUE(Eventually(
      [&] { return served.sidecar().broker().clients().count() == 0; }));
  EXPECT_TRUE(Client(served).attached());
}

TEST(SidecarServiceTest, AWaitingPollEndsAtItsTimeWithNothing) {
  ServedSidecar served;
  Client client(served);
  const v1::QueuePair queue_pair = client.Create();
  v1::PollCompletionsRequest request;
  request.set_client_id(client.attachment().client_id());
  request.set_id(queue_pair.id());
  request.mutable_wait()->set_nanos(20'000'000);
  v1::PollCompletionsResponse response;
  grpc::ClientContext context;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(client.stub().PollCompletions(&context, request, &response).ok());
  EXPECT_EQ(response.completions_size(), 0);
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(20));
}

TEST(SidecarServiceTest, PollRefusesWaitsAndCountsOutOfRange) {
  ServedSidecar served;
  Client client(served);
  const v1::QueuePair queue_pair = client.Create();
  const auto code = [&](int64_t seconds, int32_t nanos, uint32_t entries) {
    v1::PollCompletionsRequest request;
    request.set_client_id(client.attachment().client_id());
    request.set_id(queue_pair.id());
    request.set_max_entries(entries);
    request.mutable_wait()->set_seconds(seconds);
    request.mutable_wait()->set_nanos(nanos);
    v1::PollCompletionsResponse response;
    grpc::ClientContext context;
    return client.stub()
        .PollCompletions(&context, request, &response)
        .error_code();
  };
  EXPECT_EQ(code(11, 0, 0), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(code(10, 1, 0), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(code(-1, 0, 0), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(code(0, -1, 0), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(code(INT64_MAX, 0, 0), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(code(0, 1'000'000'000, 0), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(code(0, 0, 4097), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(code(0, 0, 4096), grpc::OK);
}

TEST(SidecarServiceTest, AWaitingPollEndsWhenItsQueuePairDoes) {
  ServedSidecar served;
  Client client(served);
  const v1::QueuePair queue_pair = client.Create();
  v1::PollCompletionsResponse response;
  grpc::ClientContext context;
  auto polled = std::async(std::launch::async, [&] {
    return client.Poll(&context, queue_pair.id(), 10, &response);
  });
  EXPECT_TRUE(Armed(served.sidecar(), 1));
  ASSERT_TRUE(served.sidecar()
                  .queue_pairs()
                  .Destroy(client.attachment().client_id(), queue_pair.id())
                  .ok());
  EXPECT_EQ(polled.get().error_code(), grpc::NOT_FOUND);
}

TEST(SidecarServiceTest, ACancelledPollHoldsNothing) {
  ServedSidecar served;
  Client client(served);
  const v1::QueuePair queue_pair = client.Create();
  v1::PollCompletionsResponse response;
  grpc::ClientContext context;
  auto polled = std::async(std::launch::async, [&] {
    return client.Poll(&context, queue_pair.id(), 10, &response);
  });
  EXPECT_TRUE(Armed(served.sidecar(), 1));
  context.TryCancel();
  EXPECT_EQ(polled.get().error_code(), grpc::CANCELLED);
  grpc::ClientContext impatient;
  impatient.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(20));
  EXPECT_EQ(
      client.Poll(&impatient, queue_pair.id(), 10, &response).error_code(),
      grpc::DEADLINE_EXCEEDED);
}

TEST(SidecarServiceTest, ManyPollsWaitAtOnceAndEachGetsItsOwn) {
  constexpr int kClients = 40;  // more than gRPC has threads
  ServedSidecar served;
  Client client(served);
  std::vector<v1::QueuePair> queue_pairs;
  std::vector<std::future<v1::PollCompletionsResponse>> polls;
  for (int i = 0; i < kClients; ++i) {
    queue_pairs.push_back(client.Create());
    client.Connect(queue_pairs[i], queue_pairs[i].local());
    polls.push_back(std::async(std::launch::async, [&, i] {
      return client.Poll(queue_pairs[i].id(), 10);
    }));
    EXPECT_TRUE(Armed(served.sidecar(), i + 1));
  }
  for (int i = 0; i < kClients; ++i) {
    v1::SendWorkRequest write;
    write.set_wr_id(i);
    write.set_opcode(v1::SEND_OPCODE_RDMA_WRITE);
    EXPECT_EQ(client.PostSend(queue_pairs[i].id(), write).posted(), 1u);
  }
  for (int i = 0; i < kClients; ++i) {
    const v1::PollCompletionsResponse response = polls[i].get();
    ASSERT_EQ(response.completions_size(), 1);
    EXPECT_EQ(response.completions(0).wr_id(), i);
  }
}

// One completion, two that wait for it: the other goes on waiting.
TEST(SidecarServiceTest, PollsThatWaitTogetherShareWhatCompletes) {
  ServedSidecar served;
  Client client(served);
  const v1::QueuePair queue_pair = client.Create();
  client.Connect(queue_pair, queue_pair.local());
  const auto wait = [&] {
    return client.Poll(queue_pair.id(), 10).completions_size();
  };
  auto first = std::async(std::launch::async, wait);
  EXPECT_TRUE(Armed(served.sidecar(), 1));
  auto second = std::async(std::launch::async, wait);
  EXPECT_TRUE(Armed(served.sidecar(), 2));
  v1::SendWorkRequest write;
  write.set_opcode(v1::SEND_OPCODE_RDMA_WRITE);
  EXPECT_EQ(client.PostSend(queue_pair.id(), write).posted(), 1u);
  // Both were woken by the one event; the one without a completion armed again.
  EXPECT_TRUE(Armed(served.sidecar(), 3));
  EXPECT_EQ(client.PostSend(queue_pair.id(), write).posted(), 1u);
  EXPECT_EQ(first.get() + second.get(), 2);
}

TEST(SidecarServiceTest, ALostDeviceIsToldAfterItsObjectsAreGone) {
  ServedSidecar served;
  Client client(served);
  const v1::QueuePair queue_pair = client.Create();
  served.sidecar().verbs().RaiseAsyncEvent("rxe0", IBV_EVENT_DEVICE_FATAL);
  v1::AttachEvent event;
  ASSERT_TRUE(client.ReadEvent(&event));
  EXPECT_EQ(event.device_lost().device(), "rxe0");
  EXPECT_EQ(served.sidecar().object_count(), 0);
  v1::PollCompletionsResponse response;
  grpc::ClientContext context;
  const grpc::Status polled =
      client.Poll(&context, queue_pair.id(), 0, &response);
  EXPECT_EQ(polled.error_code(), grpc::UNAVAILABLE);
  EXPECT_THAT(polled.error_message(),
              HasSubstr("has ended: device rxe0 reported a fatal error"));
}

TEST(SidecarServiceTest, AClientThatComesUnderPressureIsTold) {
  ServedSidecar served;
  served.sidecar().broker().PressureChanged(
      PressureScope::kContainer, {PressureState::kCritical, "99 % in use"});
  served.sidecar().broker().PressureChanged(PressureScope::kNode, {});
  Client client(served);
  v1::AttachEvent event;
  ASSERT_TRUE(client.ReadEvent(&event));
  EXPECT_EQ(event.memory_pressure().state(), v1::PRESSURE_STATE_CRITICAL);
}

TEST(SidecarServiceTest, AChangeOfMemoryPressureIsTold) {
  ServedSidecar served;
  Client client(served);
  const Pressure pressure{PressureState::kTight, "91 % in use"};
  served.sidecar().admission().SetPressure(PressureScope::kNode, pressure);
  served.sidecar().broker().PressureChanged(PressureScope::kNode, pressure);
  v1::AttachEvent event;
  ASSERT_TRUE(client.ReadEvent(&event));
  EXPECT_EQ(event.memory_pressure().scope(), v1::PRESSURE_SCOPE_NODE);
  EXPECT_EQ(event.memory_pressure().state(), v1::PRESSURE_STATE_TIGHT);
  EXPECT_EQ(event.memory_pressure().why(), "91 % in use");
  v1::GetBudgetResponse budget;
  grpc::ClientContext context;
  EXPECT_TRUE(client.stub().GetBudget(&context, {}, &budget).ok());
  ASSERT_EQ(budget.memory_pressure_size(), 2);
  EXPECT_EQ(budget.memory_pressure(1).state(), v1::PRESSURE_STATE_TIGHT);
}

TEST(SidecarServiceTest, AWaitingPollEndsWhenItsDeviceIsRemoved) {
  ServedSidecar served;
  Client client(served);
  const v1::QueuePair queue_pair = client.Create();
  v1::PollCompletionsResponse response;
  grpc::ClientContext context;
  auto polled = std::async(std::launch::async, [&] {
    return client.Poll(&context, queue_pair.id(), 10, &response);
  });
  EXPECT_TRUE(Armed(served.sidecar(), 1));
  served.sidecar().RemoveDevice();
  const grpc::Status status = polled.get();
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("device rxe0 was removed"));
  EXPECT_TRUE(served.sidecar().verbs().AwaitRemoval("rxe0"));
  served.sidecar().ReturnDevice();
  EXPECT_TRUE(
      Eventually([&] { return served.sidecar().broker().Ready().ok(); }));
  client.Connect(client.Create(), queue_pair.local());
}

long ThreadsOfThisProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

// Calls that a device, here by modify_qp, does not answer until Release().
class HangingCalls {
 public:
  HangingCalls(ServedSidecar& served, Client& client)
      : verbs_(served.sidecar().verbs()), client_(client) {
    request_.set_client_id(client.attachment().client_id());
    request_.set_id(client.Create().id());
    request_.set_state(v1::QUEUE_PAIR_STATE_RESET);
    verbs_.Observe([this](std::string_view call) {
      if (call == "modify_qp") released_.Wait();
    });
  }
  ~HangingCalls() {
    Release();
    EXPECT_TRUE(Eventually([&] { return answered_ == started_; }));
    verbs_.Observe({});
  }
  void Start(int count) {
    started_ += count;
    for (int i = 0; i < count; ++i) {
      Call& call = calls_.emplace_back();
      client_.stub().async()->ModifyQueuePair(
          &call.context, &request_, &call.response,
          [this](const grpc::Status& status) {
            std::lock_guard lock(mutex_);
            ++by_code_[status.error_code()];
            messages_[status.error_code()] = status.error_message();
            ++answered_;
          });
    }
  }
  void Release() { released_.Happen(); }
  int answered() const { return answered_; }
  int answered(grpc::StatusCode code) {
    std::lock_guard lock(mutex_);
    return by_code_[code];
  }
  std::string message(grpc::StatusCode code) {
    std::lock_guard lock(mutex_);
    return messages_[code];
  }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::ModifyQueuePairResponse response;
  };
  fakes::FakeVerbs& verbs_;
  Client& client_;
  v1::ModifyQueuePairRequest request_;
  Occurrence released_;
  std::deque<Call> calls_;
  std::mutex mutex_;
  std::map<grpc::StatusCode, int> by_code_;
  std::map<grpc::StatusCode, std::string> messages_;
  std::atomic<int> started_ = 0, answered_ = 0;
};

TEST(SidecarServiceTest, CallsThatHangMakeABoundedNumberOfThreads) {
  ServedSidecar served;
  Client client(served);
  const v1::QueuePair other = client.Create();
  HangingCalls hanging(served, client);
  const long before = ThreadsOfThisProcess();
  hanging.Start(300);
  // Some of them were there before.
  EXPECT_TRUE(Eventually([&] {
    return ThreadsOfThisProcess() >= before + long{Service::kMaxThreads} - 4;
  }));
  // What asks no device goes on.
  EXPECT_TRUE(Client(served).attached());
  EXPECT_EQ(client.Poll(other.id(), 0).completions_size(), 0);
  v1::GetBudgetResponse budget;
  grpc::ClientContext context;
  EXPECT_TRUE(client.stub().GetBudget(&context, {}, &budget).ok());
  std::printf("%ld threads, and %ld more with 300 calls that hang\n", before,
              ThreadsOfThisProcess() - before);
  EXPECT_LE(ThreadsOfThisProcess(), before + long{Service::kMaxThreads} + 8);
  EXPECT_EQ(hanging.answered(), 0);
  hanging.Release();
  EXPECT_TRUE(Eventually([&] { return hanging.answered() == 300; }));
  EXPECT_EQ(hanging.answered(grpc::OK), 300) << "they waited their turn";
}

TEST(SidecarServiceTest, TooManyCallsThatWaitAreRefused) {
  constexpr int kTaken = Service::kMaxThreads + Service::kMaxWaitingCalls;
  ServedSidecar served;
  Client client(served);
  HangingCalls hanging(served, client);
  hanging.Start(kTaken + 50);
  EXPECT_TRUE(Eventually(
      [&] { return hanging.answered(grpc::RESOURCE_EXHAUSTED) >= 50; }));
  EXPECT_THAT(hanging.message(grpc::RESOURCE_EXHAUSTED),
              HasSubstr("1024 calls wait already, behind 32 "
                        "that the device has not answered"));
  hanging.Release();
  EXPECT_TRUE(Eventually([&] { return hanging.answered() == kTaken + 50; }));
  EXPECT_LE(hanging.answered(grpc::RESOURCE_EXHAUSTED),
            50 + int{Service::kMaxThreads})
      << "some may come before the first threads have begun";
}

TEST(SidecarServiceTest, AStopLetsCallsEndAndRefusesThoseThatWait) {
  constexpr int kTaken = Service::kMaxThreads, kWaiting = 8;
  ServedSidecar served;
  Client client(served);
  HangingCalls hanging(served, client);
  hanging.Start(kTaken);
  EXPECT_TRUE(Eventually(
      [&] { return served.sidecar().verbs().Calls("query_qp") >= 1; }));
  hanging.Start(kWaiting);
  v1::GetBudgetResponse budget;
  grpc::ClientContext context;  // on the same stream: after all of them
  EXPECT_TRUE(client.stub().GetBudget(&context, {}, &budget).ok());
  auto stopped = std::async(std::launch::async, [&] { served.Stop(); });
  EXPECT_EQ(client.Finish().error_code(), grpc::UNAVAILABLE);
  hanging.Release();
  stopped.get();
  EXPECT_TRUE(
      Eventually([&] { return hanging.answered() == kTaken + kWaiting; }));
  EXPECT_GE(hanging.answered(grpc::UNAVAILABLE), kWaiting);
  EXPECT_LE(served.sidecar().verbs().Calls("modify_qp"), uint64_t{kTaken});
}

TEST(SidecarServiceTest, ARequestThatIsTooLargeIsRefused) {
  ServedSidecar served;
  Client client(served);
  v1::RegisterMemoryRequest request;
  request.set_client_id(client.attachment().client_id());
  request.set_path(std::string(5 << 20, 'x'));
  v1::RegisterMemoryResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(
      client.stub().RegisterMemory(&context, request, &response).error_code(),
      grpc::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Client(served).attached());
}

TEST(SidecarServiceTest, StopEndsStreamsAndWaitingPollsAtOnce) {
  ServedSidecar served;
  Client client(served);
  const v1::QueuePair queue_pair = client.Create();
  v1::PollCompletionsResponse response;
  grpc::ClientContext context;
  auto polled = std::async(std::launch::async, [&] {
    return client.Poll(&context, queue_pair.id(), 10, &response);
  });
  EXPECT_TRUE(Armed(served.sidecar(), 1));
  const auto start = std::chrono::steady_clock::now();
  served.Stop();
  EXPECT_EQ(client.Finish().error_code(), grpc::UNAVAILABLE);
  EXPECT_FALSE(polled.get().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_TRUE(Eventually([&] { return served.sidecar().held_bytes() == 0; }));
}

}  // namespace
}  // namespace purser::sidecar
