// SPDX-License-Identifier: Apache-2.0
#include "node_view/node_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "tests/unit/base/as_nobody.h"
#include "tests/unit/node_view/large_node.h"
#include "tests/unit/node_view/mlx5_dump.h"
#include "tests/unit/node_view/node.h"

namespace purser::node_view {
namespace {

using queue_memory::Provider;
using rdma::ResourceKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::SizeIs;

class NodeViewTest : public ::testing::Test {
 protected:
  View Read() {
    if (view_ == nullptr) view_ = node_.MakeView();
    return view_->Read();
  }
  static std::string Reason(const View& view, const std::string& source) {
    for (const SourceState& state : view.sources)
      if (state.name == source) return state.reason;
    return "no such source";
  }
  static const Holding* Find(const View& view, const std::string& device,
                             const std::string& pod,
                             const std::string& container) {
    for (const Holding& holding : view.holdings)
      if (holding.device == device && holding.owner.pod == pod &&
          holding.owner.container == container)
        return &holding;
    return nullptr;
  }
  // A queue pair of 8 KiB and 4 KiB of rings on soft-RoCE, and a completion
  // queue of 4 KiB.
  void AddRxeHolder(int pid, uint32_t context, uint64_t base) {
    node_.AddContext("rxe0", context, static_cast<uint32_t>(pid));
    node_.AddQueuePair("rxe0", context + 100, pid, context);
    node_.proc.SetRings(pid, {{.bytes = 8192, .offset = base},
                              {.bytes = 4096, .offset = base + 0x10000},
                              {.bytes = 4096, .offset = base + 0x20000}});
  }

  FakeNode node_;
  std::unique_ptr<NodeView> view_;
};

TEST_F(NodeViewTest, ANodeWithoutDevicesHasNothingAndLacksNothing) {
  const View view = Read();
  EXPECT_THAT(view.holdings, IsEmpty());
  EXPECT_THAT(view.undeclared_bytes, Optional(IsEmpty()));
  for (const SourceState& source : view.sources)
    EXPECT_THAT(source.reason, ::testing::AnyOf("", "not_needed"))
        << source.name << ": " << source.detail;
}

TEST_F(NodeViewTest, MappedRingsAreAttributedToTheByte) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  node_.AddPodProcess(200, "pod-b", 'b');
  node_.proc.AddProcess(300, "hog", "0::/system.slice/hog.service\n");
  AddRxeHolder(100, 1, 0x100000);
  AddRxeHolder(200, 2, 0x200000);
  AddRxeHolder(300, 3, 0x300000);
  node_.kernel.Add("rxe0", {.id = 1, .kernel_owner = "ib_core", .type = 1});
  node_.proc.SetVmallocinfo({139264, 3 * 16384});
  node_.kubelet.Give("ns", "pod-a", "app", "rdma/wqe-mib", 1);
  const View view = Read();

  ASSERT_THAT(view.holdings, SizeIs(4));
  const Holding* a = Find(view, "rxe0", "pod-a", "app");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->owner.namespace_name, "ns");
  EXPECT_EQ(a->bytes.node.exact, 16384u);
  EXPECT_EQ(a->bytes.node.estimated, 0u);
  EXPECT_EQ(a->bytes.container.exact, 464u + 344u);
  EXPECT_THAT(a->queue_pairs, ElementsAre(Pair(Pair("RC", "RTS"), 1)));
  EXPECT_EQ(a->completion_queues, 1u);
  ASSERT_THAT(a->processes, SizeIs(1));
  EXPECT_EQ(a->processes[0].pid, 100);
  EXPECT_EQ(a->processes[0].name, "app");
  const Holding* host = Find(view, "rxe0", "", "host");
  ASSERT_NE(host, nullptr);
  EXPECT_EQ(host->processes[0].name, "hog");
  const Holding* kernel = Find(view, "rxe0", "", "kernel");
  ASSERT_NE(kernel, nullptr);
  EXPECT_THAT(kernel->queue_pairs, ElementsAre(Pair(Pair("GSI", "RTS"), 1)));
  EXPECT_EQ(kernel->bytes.total(), 0u);
  // Two without units, each 16384 + 808.
  EXPECT_THAT(view.undeclared_bytes,
              Optional(ElementsAre(Pair("rxe0", 2 * (16384 + 808)))));
  EXPECT_EQ(view.kernel_rings.at(Provider::kRxe).bytes, 139264u + 3 * 16384);
  EXPECT_EQ(view.kernel_rings.at(Provider::kRxe).unattributed(), 139264u);
}

TEST_F(NodeViewTest, AForkedChildsCopiesAreCountedOnce) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  node_.AddPodProcess(50, "pod-a", 'a');
  AddRxeHolder(100, 1, 0x100000);
  node_.proc.SetRings(50, {{.bytes = 8192, .offset = 0x100000},
                           {.bytes = 4096, .offset = 0x110000},
                           {.bytes = 4096, .offset = 0x120000}});
  // An object without a process makes it look at all.
  node_.AddQueuePair("rxe0", 999, std::nullopt, 77);
  const View view = Read();
  const Holding* a = Find(view, "rxe0", "pod-a", "app");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->bytes.node.exact, 16384u);
}

TEST_F(NodeViewTest, AChildThatOutlivesItsParentHoldsTheRings) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(101, "pod-a", 'a');
  node_.proc.SetRings(101, {{.bytes = 8192, .offset = 0x100000}});
  // The maker's task is gone: the kernel names no process any more.
  node_.kernel.Add("rxe0", {.kind = ResourceKind::kContext, .id = 1});
  node_.kernel.Add("rxe0", {.id = 17, .protection_domain = 1});
  const View view = Read();
  const Holding* a = Find(view, "rxe0", "pod-a", "app");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->bytes.node.exact, 8192u);
  const Holding* unknown = Find(view, "rxe0", "", "unknown");
  ASSERT_NE(unknown, nullptr);
  EXPECT_EQ(unknown->queue_pair_count(), 1u);
  EXPECT_EQ(unknown->bytes.total(), 0u) << "its rings were found";
}

TEST_F(NodeViewTest, SoftIwarpsOffsetsAreOfOneProcessEach) {
  node_.AddDevice("siw0", Provider::kSiw);
  node_.AddPodProcess(100, "pod-a", 'a');
  node_.AddPodProcess(101, "pod-a", 'a');
  node_.AddPodProcess(200, "pod-b", 'b');
  const uint64_t here = 0x7f1100000000, there = 0x7f2200000000;
  node_.proc.SetRings(100, {{.bytes = 8192, .offset = 0, .start = here}});
  node_.proc.SetRings(101, {{.bytes = 8192, .offset = 0, .start = here},
                            {.bytes = 4096, .offset = 0, .start = there}});
  node_.proc.SetRings(200, {{.bytes = 8192, .offset = 0, .start = here}});
  node_.kernel.RemoveDevice("siw0");  // not listed: it looks at all processes
  const View view = Read();
  EXPECT_EQ(Find(view, "siw0", "pod-a", "app")->bytes.node.exact, 12288u);
  EXPECT_EQ(Find(view, "siw0", "pod-b", "app")->bytes.node.exact, 8192u);
}

TEST_F(NodeViewTest, WhatIsMadeByAThreadIsItsProcesss) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  AddRxeHolder(100, 1, 0x100000);
  node_.proc.AddProcess(107, "worker", "0::/\n", 100);
  node_.AddQueuePair("rxe0", 18, 107, 1);
  // One by a thread that has ended: by its protection domain, and that by its
  // context.
  node_.AddQueuePair("rxe0", 19, std::nullopt, 1);
  node_.kernel.Add(
      "rxe0", {.kind = ResourceKind::kProtectionDomain, .id = 2, .context = 1});
  node_.AddQueuePair("rxe0", 20, std::nullopt, 2);
  const View view = Read();
  ASSERT_THAT(view.holdings, SizeIs(1));
  EXPECT_EQ(view.holdings[0].queue_pair_count(), 4u);
  EXPECT_THAT(view.holdings[0].processes, SizeIs(1));
}

TEST_F(NodeViewTest, GivingMappingsUpHidesNothing) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  AddRxeHolder(100, 1, 0x100000);
  node_.proc.SetRings(100, {{.bytes = 4096, .offset = 0x120000}});
  const View view = Read();
  const Holding* a = Find(view, "rxe0", "pod-a", "app");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->bytes.node.exact, 0u);
  EXPECT_GT(a->bytes.node.estimated, 4096u);
}

TEST_F(NodeViewTest, ASharedReceiveQueueLeavesARingOut) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  AddRxeHolder(100, 1, 0x100000);
  node_.kernel.Add("rxe0", {.kind = ResourceKind::kSharedReceiveQueue,
                            .id = 4,
                            .pid = 100,
                            .protection_domain = 1});
  const View view = Read();
  const Holding* a = Find(view, "rxe0", "pod-a", "app");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->bytes.node.exact, 16384u) << "CQ, SRQ and send ring";
  EXPECT_EQ(a->shared_receive_queues, 1u);
}

TEST_F(NodeViewTest, WithoutTheRightToMappingsItEstimatesAndSaysSo) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  AddRxeHolder(100, 1, 0x100000);
  namespace fs = std::filesystem;
  fs::permissions(node_.tree.root(), fs::perms(0755));
  fs::permissions(node_.tree.path("proc/100/maps"), fs::perms::none);
  View view;
  base::AsNobody([&] { view = Read(); });
  const Holding* a = Find(view, "rxe0", "pod-a", "app");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->bytes.node.exact, 0u);
  EXPECT_GT(a->bytes.node.estimated, 0u);
  EXPECT_EQ(Reason(view, "mappings"), "not_permitted");
  EXPECT_EQ(Reason(view, "processes"), "");
}

TEST_F(NodeViewTest, WithoutTheHostsPidNamespaceOwnersAreUnknown) {
  node_.AddDevice("mlx5_0", Provider::kMlx5);
  node_.kernel.Add("mlx5_0", {.kind = ResourceKind::kContext, .id = 1});
  node_.AddQueuePair("mlx5_0", 17, std::nullopt, 1);
  node_.kernel.SetNetAdmin(false);
  const View view = Read();
  ASSERT_THAT(view.holdings, SizeIs(1));
  EXPECT_EQ(view.holdings[0].kind, OwnerKind::kUnknown);
  EXPECT_EQ(Reason(view, "processes"), "not_visible");
  EXPECT_EQ(Reason(view, "raw_context"), "not_permitted");
  EXPECT_EQ(view.undeclared_bytes, std::nullopt);
  EXPECT_TRUE(view.allocations_known);
}

TEST_F(NodeViewTest, Mlx5IsExactByItsOwnRecordAndAskedOnce) {
  node_.AddDevice("mlx5_0", Provider::kMlx5);
  node_.AddPodProcess(100, "pod-a", 'a');
  node_.AddContext("mlx5_0", 1, 100, 255);
  for (uint32_t qpn = 40; qpn < 43; ++qpn)
    node_.kernel.Add(
        "mlx5_0",
        {.id = qpn,
         .pid = 100,
         .protection_domain = 1,
         .remote_qpn = kDumpedRemoteQpn,
         .raw = Mlx5Dump({.log_rq_size = 8, .log_sq_size = 10}, qpn)});
  const View view = Read();
  const Holding* a = Find(view, "mlx5_0", "pod-a", "app");
  ASSERT_NE(a, nullptr);
  const queue_memory::DeviceLimits limits = node_.devices[0].limits;
  const uint64_t each = QueuePairMemory(Provider::kMlx5, limits,
                                        {.max_send_wr = 256,
                                         .max_send_sge = 4,
                                         .max_recv_wr = 256,
                                         .max_recv_sge = 1})
                            .total()
                            .container;
  const uint64_t completion =
      CompletionQueueMemory(Provider::kMlx5, limits, 255).total().container;
  EXPECT_EQ(a->bytes.container.exact, 3 * each + completion);
  EXPECT_EQ(a->bytes.container.estimated, 0u);
  EXPECT_EQ(Reason(view, "raw_context"), "");
  EXPECT_EQ(Reason(view, "mappings"), "not_needed");
  EXPECT_EQ(node_.kernel.raw_requests(), 3);
  EXPECT_EQ(Read().holdings[0].bytes.container.exact, 3 * each + completion);
  EXPECT_EQ(node_.kernel.raw_requests(), 3) << "sizes do not change";
}

TEST_F(NodeViewTest, Mlx5WithoutTheRightOrSenseIsEstimated) {
  node_.AddDevice("mlx5_0", Provider::kMlx5);
  node_.AddPodProcess(100, "pod-a", 'a');
  for (uint32_t qpn = 40; qpn < 45; ++qpn)
    node_.kernel.Add("mlx5_0", {.id = qpn, .pid = 100, .raw = Mlx5Dump({}, 1)});
  node_.kernel.SetNetAdmin(false);
  View view = Read();
  EXPECT_EQ(view.holdings[0].bytes.container.exact, 0u);
  EXPECT_GT(view.holdings[0].bytes.container.estimated, 0u);
  EXPECT_EQ(Reason(view, "raw_context"), "not_permitted");
  EXPECT_EQ(node_.kernel.raw_requests(), 1) << "one refusal is enough";
  node_.kernel.SetNetAdmin(true);
  view = Read();
  EXPECT_GT(view.holdings[0].bytes.container.estimated, 0u);
  EXPECT_EQ(Reason(view, "raw_context"), "failed");
}

TEST_F(NodeViewTest, WhereOthersTellNothingItIsEstimated) {
  node_.AddDevice("irdma0", Provider::kIrdma);
  node_.AddPodProcess(100, "pod-a", 'a');
  node_.AddContext("irdma0", 1, 100);
  node_.AddQueuePair("irdma0", 17, 100, 1);
  const View view = Read();
  const Holding* a = Find(view, "irdma0", "pod-a", "app");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->bytes.container.exact, 0u);
  EXPECT_GT(a->bytes.container.estimated, 28u << 10);
  EXPECT_EQ(Reason(view, "vmallocinfo"), "not_needed");
}

TEST_F(NodeViewTest, WithoutNetlinkTheMappingsStillTell) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  AddRxeHolder(100, 1, 0x100000);
  node_.netlink_status = absl::UnimplementedError("no NETLINK_RDMA");
  View view = Read();
  const Holding* a = Find(view, "rxe0", "pod-a", "app");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->bytes.node.exact, 16384u);
  EXPECT_EQ(a->queue_pair_count(), 0u);
  EXPECT_EQ(Reason(view, "netlink"), "absent");
  node_.netlink_status = absl::OkStatus();
  node_.kernel.FailNext(ResourceKind::kQueuePair, EIO);
  view = Read();
  EXPECT_EQ(Reason(view, "netlink"), "failed");
  EXPECT_EQ(Find(view, "rxe0", "pod-a", "app")->bytes.node.exact, 16384u);
}

TEST_F(NodeViewTest, OlderKernelsListNoContextsAndSharedQueues) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  AddRxeHolder(100, 1, 0x100000);
  node_.kernel.FailNext(ResourceKind::kContext, EINVAL);
  node_.kernel.FailNext(ResourceKind::kSharedReceiveQueue, EOPNOTSUPP);
  const View view = Read();
  EXPECT_EQ(Reason(view, "netlink"), "");
  EXPECT_EQ(Find(view, "rxe0", "pod-a", "app")->bytes.node.exact, 16384u);
}

TEST_F(NodeViewTest, WithoutNamesThePodsUidStands) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  AddRxeHolder(100, 1, 0x100000);
  node_.tree.Remove("containers");
  node_.kubelet.Give("ns", "pod-a", "app", "rdma/wqe-mib", 1);
  const View view = Read();
  ASSERT_THAT(view.holdings, SizeIs(1));
  EXPECT_EQ(view.holdings[0].owner.pod, "1b4e28ba-2fa1-11d2-883f-00000000000a");
  EXPECT_EQ(view.holdings[0].owner.container, "aaaaaaaaaaaa");
  EXPECT_EQ(view.holdings[0].owner.namespace_name, "");
  EXPECT_EQ(Reason(view, "container_names"), "absent");
  EXPECT_EQ(view.undeclared_bytes, std::nullopt);
}

TEST_F(NodeViewTest, AContainerAndItsFormerSelfAreOne) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  node_.AddPodProcess(200, "pod-a", 'b');
  AddRxeHolder(100, 1, 0x100000);
  AddRxeHolder(200, 2, 0x200000);
  const View view = Read();
  ASSERT_THAT(view.holdings, SizeIs(1));
  EXPECT_EQ(view.holdings[0].bytes.node.exact, 2 * 16384u);
}

TEST_F(NodeViewTest, WithoutTheKubeletNothingIsUndeclared) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  AddRxeHolder(100, 1, 0x100000);
  node_.kubelet.Stop();
  const View view = Read();
  EXPECT_FALSE(view.allocations_known);
  EXPECT_EQ(view.undeclared_bytes, std::nullopt);
  EXPECT_EQ(Reason(view, "pod_resources"), "absent");
  EXPECT_THAT(view.holdings, SizeIs(1));
}

TEST_F(NodeViewTest, ReservedMemoryIsHeldAgainstWhatIsAdvertised) {
  node_.advertised_node_charged_bytes = 3ull << 29;
  View view = Read();
  EXPECT_EQ(view.reserved_memory_bytes, 1ull << 30);
  EXPECT_EQ(view.unreserved_bytes(), 1ull << 29);
  node_.advertised_node_charged_bytes = 1ull << 30;
  EXPECT_EQ(Read().unreserved_bytes(), 0u);
  node_.tree.Remove("cgroup");
  view = Read();
  EXPECT_EQ(view.reserved_memory_bytes, std::nullopt);
  EXPECT_EQ(Reason(view, "reserved_memory"), "absent");
  Options options = node_.options();
  options.allocatable_memory_bytes = 1ull << 30;
  NodeView told(options, node_.surroundings());
  EXPECT_EQ(told.Read().reserved_memory_bytes, 3ull << 30);
}

// How long it takes: tests/bench/node_view_bench.
TEST_F(NodeViewTest, TenThousandQueuePairsAreReadToTheByte) {
  FillNode(node_, Provider::kRxe, 10'000);
  uint64_t queue_pairs = 0, bytes = 0;
  for (const Holding& holding : Read().holdings) {
    queue_pairs += holding.queue_pair_count();
    bytes += holding.bytes.node.exact;
  }
  EXPECT_EQ(queue_pairs, 10'000u);
  // A ring of 65 pages has its array in a small allocation.
  EXPECT_EQ(bytes, 20'000ull * 266'240 + 16u * 4'096);
}

TEST_F(NodeViewTest, AStopEndsAReading) {
  node_.AddDevice("rxe0", Provider::kRxe);
  node_.AddPodProcess(100, "pod-a", 'a');
  AddRxeHolder(100, 1, 0x100000);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(node_.MakeView()->Read(stop.get_token()).holdings.size(), 1u)
      << "what the mappings tell";
}

}  // namespace
}  // namespace purser::node_view
