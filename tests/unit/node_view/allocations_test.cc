// SPDX-License-Identifier: Apache-2.0
#include "node_view/allocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node_view/pod_resources_client.h"
#include "tests/fakes/fake_pod_resources.h"
#include "tests/fakes/file_tree.h"

namespace purser::node_view {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kLong = 20s;  // only a failing test waits that long

class PodResourcesTest : public ::testing::Test {
 protected:
  std::vector<Allocation> Read() {
    const auto response = client_.List(kLong);
    EXPECT_TRUE(response.ok()) << response.status();
    if (!response.ok()) return {};
    return ReadAllocations(*response, [](const std::string& resource) {
      return resource.starts_with("rdma/");
    });
  }

  fakes::FileTree tree_;
  const std::string socket_ = tree_.path("pod-resources/kubelet.sock");
  fakes::FakePodResources kubelet_{socket_};
  PodResourcesClient client_{socket_};
};

TEST_F(PodResourcesTest, UnitsByContainerAndResource) {
  kubelet_.Give("ns", "pod-b", "sidecar", "rdma/wqe-mib", 64);
  kubelet_.Give("ns", "pod-b", "sidecar", "rdma/hca", 1);
  kubelet_.Give("ns", "pod-b", "sidecar", "nvidia.com/gpu", 8);
  kubelet_.Give("ns", "pod-a", "app", "rdma/wqe-mib", 3, 2);
  kubelet_.Give("ns", "pod-c", "idle", "cpu", 0);
  const std::vector<Allocation> allocations = Read();
  ASSERT_THAT(allocations, SizeIs(3));
  EXPECT_EQ(allocations[0].holder, (ContainerName{"ns", "pod-a", "app"}));
  EXPECT_EQ(allocations[0].units, 6u) << "of two NUMA nodes";
  EXPECT_EQ(allocations[1].resource, "rdma/hca");
  EXPECT_EQ(allocations[1].units, 1u);
  EXPECT_EQ(allocations[2].resource, "rdma/wqe-mib");
  EXPECT_EQ(allocations[2].units, 64u);
}

TEST_F(PodResourcesTest, AHundredThousandUnitsArrive) {
  kubelet_.Give("ns", "pod", "app", "rdma/wqe-mib", 500'000);
  const std::vector<Allocation> allocations = Read();
  ASSERT_THAT(allocations, SizeIs(1));
  EXPECT_EQ(allocations[0].units, 500'000u);
}

TEST_F(PodResourcesTest, ComesBackAfterTheKubeletsRestart) {
  kubelet_.Give("ns", "pod", "app", "rdma/hca", 1);
  EXPECT_THAT(Read(), SizeIs(1));
  kubelet_.Stop();
  EXPECT_TRUE(absl::IsNotFound(client_.List(1s).status()));
  kubelet_.Start();
  const auto until = std::chrono::steady_clock::now() + kLong;
  while (!client_.List(kLong).ok() && std::chrono::steady_clock::now() < until)
    ;
  EXPECT_THAT(Read(), SizeIs(1));
}

TEST_F(PodResourcesTest, ErrorsNameTheSocket) {
  kubelet_.Fail(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "slow"));
  const absl::Status refused = client_.List(kLong).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(socket_));
  PodResourcesClient nowhere(tree_.path("none.sock"));
  EXPECT_TRUE(absl::IsNotFound(nowhere.List(1s).status()));
}

TEST(QueueMemoryUnitBytesTest, IsToldByTheResourcesName) {
  EXPECT_EQ(QueueMemoryUnitBytes("rdma/wqe-mib"), 1u << 20);
  EXPECT_EQ(QueueMemoryUnitBytes("rdma/wqe-16mib"), 16u << 20);
  for (const char* other :
       {"", "example.com/wqe-2mib", "example.com/wqe-mib", "wqe-mib",
        "rdma/hca", "rdma/qp", "rdma/wqe-", "rdma/wqe-xmib", "rdma/wqe-mi",
        "rdma/wqe--1mib", "rdma/wqe-9999999999mib", "/"})
    EXPECT_EQ(QueueMemoryUnitBytes(other), 0u) << other;
}

}  // namespace
}  // namespace purser::node_view
