// SPDX-License-Identifier: Apache-2.0
#include "plugin/resource_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>

#include "plugin/device_resource.h"
#include "plugin/pool_resource.h"
#include "plugin/queue_memory_resource.h"
#include "tests/fakes/file_tree.h"
#include "tests/fakes/kubelet_endpoint.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Only a failing test waits that long; a loaded machine may take some of it.
constexpr auto kLong = 60s;

std::shared_ptr<const Snapshot> Node(DeviceHealth health) {
  auto snapshot = std::make_shared<Snapshot>();
  Device device;
  device.sysfs.name = "rxe0";
  device.sysfs.uverbs = "uverbs0";
  device.health = health;
  if (health != DeviceHealth::kHealthy) device.reason = "port 1 DOWN";
  snapshot->devices = {device};
  snapshot->pools["rdma/hca"] = {0};
  return snapshot;
}

// The other end: what came of ListAndWatch, in order.
class Watcher {
 public:
  explicit Watcher(const std::string& socket) {
    auto dialled = fakes::KubeletEndpoint::Dial(socket, kLong);
    EXPECT_TRUE(dialled.ok()) << dialled.status();
    endpoint_ = *std::move(dialled);
    endpoint_->Watch(
        [this](const v1beta1::ListAndWatchResponse& list) {
          std::lock_guard lock(mutex_);
          lists_.push_back(list);
          changed_.notify_all();
        },
        [this](const grpc::Status& status) {
          std::lock_guard lock(mutex_);
          end_ = fakes::FromGrpc(status);
          changed_.notify_all();
        });
  }
  // nullopt: none came in time.
  std::optional<v1beta1::ListAndWatchResponse> Next(
      std::chrono::milliseconds timeout = kLong) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return !lists_.empty() || end_; });
    if (lists_.empty()) return std::nullopt;
    v1beta1::ListAndWatchResponse list = std::move(lists_.front());
    lists_.pop_front();
    return list;
  }
  std::optional<absl::Status> End() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLong, [&] { return end_.has_value(); });
    return end_;
  }
  fakes::KubeletEndpoint& endpoint() { return *endpoint_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1beta1::ListAndWatchResponse> lists_;
  std::optional<absl::Status> end_;
  std::unique_ptr<fakes::KubeletEndpoint> endpoint_;
};

class ResourceServerTest : public ::testing::Test {
 protected:
  ResourceServerTest() {
    tree_.Directory("d");
    server_.Update(Node(DeviceHealth::kHealthy));
  }
  absl::Status Bind(ResourceServer& server) {
    return server.Bind(tree_.path("d"), RegistrationWay::kKubeletSocket);
  }
  // Of the last Bind().
  std::string SocketOf(const ResourceServer& server) const {
    return tree_.path("d/" + server.endpoint().text());
  }
  std::string socket() const { return SocketOf(server_); }

  fakes::FileTree tree_;
  PoolResource pool_{PoolConfig{.rdma_hca_max = 3}};
  std::atomic<int> stream_changes_ = 0;
  ResourceServer server_{pool_, {"test", 1}, [this] { ++stream_changes_; }};
};

TEST_F(ResourceServerTest, AnswersAsSoonAsItIsBound) {
  ASSERT_TRUE(Bind(server_).ok());
  EXPECT_TRUE(server_.SocketIntact().value());
  const auto dialled = fakes::KubeletEndpoint::Dial(socket(), kLong);
  ASSERT_TRUE(dialled.ok()) << dialled.status();
  EXPECT_FALSE((*dialled)->options().pre_start_required());
  EXPECT_FALSE((*dialled)->options().get_preferred_allocation_available());
}

TEST_F(ResourceServerTest, EveryStreamGetsTheListOnConnectAndEachChangeOnce) {
  ASSERT_TRUE(Bind(server_).ok());
  Watcher first(socket());
  EXPECT_EQ(first.Next()->devices_size(), 3);
  Watcher second(socket());
  EXPECT_EQ(second.Next()->devices_size(), 3);
  EXPECT_EQ(server_.streams().count(), 2);

  server_.Update(Node(DeviceHealth::kHealthy));  // no change: no message
  server_.Update(Node(DeviceHealth::kPortDown));
  for (Watcher* watcher : {&first, &second}) {
    const auto list = watcher->Next();
    ASSERT_EQ(list->devices_size(), 3);
    EXPECT_EQ(list->devices(0).health(), "Unhealthy");
  }
  EXPECT_FALSE(first.Next(20ms));
}

TEST_F(ResourceServerTest, AStreamBeforeTheFirstScanWaitsForIt) {
  ResourceServer fresh(pool_, {"test", 2}, [] {});
  ASSERT_TRUE(Bind(fresh).ok());
  Watcher watcher(SocketOf(fresh));
  EXPECT_FALSE(watcher.Next(20ms));
  fresh.Update(Node(DeviceHealth::kHealthy));
  EXPECT_EQ(watcher.Next()->devices_size(), 3);
}

TEST_F(ResourceServerTest, NoDeviceIsAnEmptyListAndNotSilence) {
  server_.Update(std::make_shared<Snapshot>());
  ASSERT_TRUE(Bind(server_).ok());
  Watcher watcher(socket());
  const auto list = watcher.Next();
  ASSERT_TRUE(list);
  EXPECT_EQ(list->devices_size(), 0);
}

TEST_F(ResourceServerTest, StopEndsStreamsAndRemovesTheSocket) {
  ASSERT_TRUE(Bind(server_).ok());
  Watcher watcher(socket());
  ASSERT_TRUE(watcher.Next());
  const auto begin = std::chrono::steady_clock::now();
  server_.Stop(std::chrono::system_clock::now() + 1s);
  server_.Stop(std::chrono::system_clock::now() + 1s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_TRUE(absl::IsUnavailable(*watcher.End()));
  EXPECT_FALSE(std::filesystem::exists(socket()));
  EXPECT_EQ(server_.streams().count(), 0);
  EXPECT_GE(stream_changes_, 2);
}

TEST_F(ResourceServerTest, AClientThatDoesNotReadCannotHoldUpStop) {
  // 200,000 units: far more than a connection's window holds.
  QueueMemoryResource memory(200'000);
  ResourceServer server(memory, {"test", 2}, [] {});
  server.Update(Node(DeviceHealth::kHealthy));
  ASSERT_TRUE(Bind(server).ok());
  const auto stub = v1beta1::DevicePlugin::NewStub(grpc::CreateChannel(
      "unix:" + SocketOf(server), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto reader = stub->ListAndWatch(&context, v1beta1::Empty());
  reader->WaitForInitialMetadata();
  const auto begin = std::chrono::steady_clock::now();
  server.Stop(std::chrono::system_clock::now() + 200ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
}

// While a list is under way, held up by a client that does not read, the others
// are not queued: the last one follows it.
TEST_F(ResourceServerTest, ASlowClientGetsTheLastListWithoutAllBetween) {
  constexpr int kChanges = 50;
  PoolResource large{PoolConfig{.rdma_hca_max = 200'000}};
  ResourceServer server(large, {"test", 2}, [] {});
  server.Update(Node(DeviceHealth::kHealthy));
  ASSERT_TRUE(Bind(server).ok());
  const auto stub = v1beta1::DevicePlugin::NewStub(grpc::CreateChannel(
      "unix:" + SocketOf(server), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLong);
  const auto reader = stub->ListAndWatch(&context, v1beta1::Empty());
  reader->WaitForInitialMetadata();
  for (int i = 0; i < kChanges; ++i) {
    server.Update(
        Node(i % 2 == 0 ? DeviceHealth::kPortDown : DeviceHealth::kHealthy));
  }
  server.Update(std::make_shared<Snapshot>());
  v1beta1::ListAndWatchResponse list;
  int lists = 0;
  do {
    ASSERT_TRUE(reader->Read(&list)) << "after " << lists << " lists";
    ++lists;
  } while (list.devices_size() > 0);
  EXPECT_LT(lists, kChanges / 2);
}

TEST_F(ResourceServerTest, NoticesThatItsSocketIsGoneOrAnother) {
  EXPECT_FALSE(server_.SocketIntact().value());
  ASSERT_TRUE(Bind(server_).ok());
  const std::string path = socket();
  std::filesystem::remove(path);
  EXPECT_FALSE(server_.SocketIntact().value());
  tree_.Write("d/" + server_.endpoint().text(), "");
  EXPECT_FALSE(server_.SocketIntact().value());
}

TEST_F(ResourceServerTest, RebindsAfterTheKubeletDeletedTheSocket) {
  ASSERT_TRUE(Bind(server_).ok());
  const FileId first = *server_.socket_id();
  Watcher before(socket());
  ASSERT_TRUE(before.Next());
  std::filesystem::remove(socket());
  ASSERT_TRUE(Bind(server_).ok());
  EXPECT_TRUE(server_.SocketIntact().value());
  EXPECT_NE(*server_.socket_id(), first);
  EXPECT_TRUE(absl::IsUnavailable(*before.End()));
  Watcher after(socket());
  EXPECT_EQ(after.Next()->devices_size(), 3);
}

// A kubelet may never let go of a path.
TEST_F(ResourceServerTest, NeverUsesANameTwice) {
  std::set<std::string> names;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Bind(server_).ok());
    EXPECT_TRUE(names.insert(server_.endpoint().text()).second);
  }
}

TEST_F(ResourceServerTest, ServesBesideAnotherProcess) {
  ASSERT_TRUE(Bind(server_).ok());
  ResourceServer second(pool_, {"test", 2}, [] {});
  second.Update(Node(DeviceHealth::kHealthy));
  ASSERT_TRUE(Bind(second).ok());
  EXPECT_TRUE(server_.SocketIntact().value());
  EXPECT_TRUE(fakes::KubeletEndpoint::Dial(socket(), kLong).ok());
  EXPECT_TRUE(fakes::KubeletEndpoint::Dial(SocketOf(second), kLong).ok());
}

TEST_F(ResourceServerTest, AnswersAsAPluginsRegistryDemandsOnlyThere) {
  for (const auto& [way, answers] :
       {std::pair{RegistrationWay::kKubeletSocket, false},
        std::pair{RegistrationWay::kPluginsRegistry, true}}) {
    ASSERT_TRUE(server_.Bind(tree_.path("d"), way).ok());
    const auto stub =
        pluginregistration::Registration::NewStub(grpc::CreateChannel(
            "unix:" + socket(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    pluginregistration::PluginInfo info;
    EXPECT_EQ(stub->GetInfo(&context, {}, &info).ok(), answers);
    EXPECT_EQ(server_.registration().state().heard_at.has_value(), answers);
    if (!answers) continue;
    EXPECT_EQ(info.type(), "DevicePlugin");
    EXPECT_EQ(info.name(), "rdma/hca");
    EXPECT_EQ(info.endpoint(), "");  // the socket that was asked
    EXPECT_THAT(info.supported_versions(), testing::ElementsAre("v1beta1"));
  }
}

TEST_F(ResourceServerTest, LeavesNothingButItsSocketInTheDirectory) {
  ASSERT_TRUE(Bind(server_).ok());
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(tree_.path("d"))) {
    EXPECT_EQ(entry.path(), socket());
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST_F(ResourceServerTest, StopLeavesAnothersFileAlone) {
  ASSERT_TRUE(Bind(server_).ok());
  std::filesystem::remove(socket());
  tree_.Write("d/" + server_.endpoint().text(), "another's");
  server_.Stop(std::chrono::system_clock::now() + 1s);
  EXPECT_TRUE(std::filesystem::exists(socket()));
}

TEST_F(ResourceServerTest, SaysWhatIsWrongWithThePath) {
  EXPECT_TRUE(absl::IsNotFound(
      server_.Bind(tree_.path("none"), RegistrationWay::kKubeletSocket)));
  const std::string deep = tree_.path(std::string(90, 'x'));
  std::filesystem::create_directories(deep);
  const absl::Status too_long =
      server_.Bind(deep, RegistrationWay::kKubeletSocket);
  EXPECT_TRUE(absl::IsInvalidArgument(too_long)) << too_long;
  EXPECT_THAT(std::string(too_long.message()), HasSubstr("107"));
}

TEST_F(ResourceServerTest, AllocateAnswersForEachContainer) {
  ASSERT_TRUE(Bind(server_).ok());
  const auto endpoint = *fakes::KubeletEndpoint::Dial(socket(), kLong);
  v1beta1::AllocateRequest request;
  request.add_container_requests()->add_devices_ids("0");
  request.add_container_requests()->add_devices_ids("2");
  const auto response = endpoint->Allocate(request);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->container_responses_size(), 2);
  EXPECT_EQ(response->container_responses(1).devices(0).host_path(),
            "/dev/infiniband/uverbs0");
  EXPECT_EQ(server_.service().allocations(), 1u);
}

TEST_F(ResourceServerTest, AllocateRefusesWhatItDoesNotHave) {
  ASSERT_TRUE(Bind(server_).ok());
  const auto endpoint = *fakes::KubeletEndpoint::Dial(socket(), kLong);
  v1beta1::AllocateRequest request;
  EXPECT_TRUE(absl::IsInvalidArgument(endpoint->Allocate(request).status()));
  auto* container = request.add_container_requests();
  EXPECT_TRUE(absl::IsInvalidArgument(endpoint->Allocate(request).status()));
  container->add_devices_ids("3");
  const absl::Status unknown = endpoint->Allocate(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("rdma/hca: id \"3\""));

  server_.Update(Node(DeviceHealth::kPortDown));
  container->set_devices_ids(0, "1");
  const absl::Status unhealthy = endpoint->Allocate(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(unhealthy));
  EXPECT_THAT(std::string(unhealthy.message()), HasSubstr("port 1 DOWN"));
  EXPECT_EQ(server_.service().refused_allocations(), 4u);
}

TEST_F(ResourceServerTest, OptionalCallsAreUnimplemented) {
  ASSERT_TRUE(Bind(server_).ok());
  const auto endpoint = *fakes::KubeletEndpoint::Dial(socket(), kLong);
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse response;
  EXPECT_EQ(endpoint->stub()
                .GetPreferredAllocation(&context, {}, &response)
                .error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ResourceServerTest, PrefersUnitsWhereTheyDiffer) {
  PoolConfig config{.rdma_hca_max = 2};
  config.unit = PoolUnit::kDeviceShare;
  DeviceResource shares(config);
  ResourceServer server(shares, {"test", 2}, [] {});
  ASSERT_TRUE(Bind(server).ok());
  const auto endpoint = *fakes::KubeletEndpoint::Dial(SocketOf(server), kLong);
  EXPECT_TRUE(endpoint->options().get_preferred_allocation_available());
  const std::vector<std::string> available = {"rxe0-0", "rxe0-1"};
  EXPECT_THAT(endpoint->Prefer(available, 1), testing::IsEmpty());  // unknown
  server.Update(Node(DeviceHealth::kHealthy));
  EXPECT_THAT(endpoint->Prefer(available, 1), testing::ElementsAre("rxe0-0"));
  EXPECT_THAT(endpoint->Prefer(available, -1), testing::IsEmpty());
}

}  // namespace
}  // namespace purser::plugin
