// SPDX-License-Identifier: Apache-2.0
#include "node_view/live_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "node_view/metrics.h"
#include "tests/unit/node_view/node.h"

namespace purser::node_view {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kLong = 20s;  // only a failing test waits that long

// Holds readings up until Open().
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void Open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool AwaitArrivals(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return arrived_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

TEST(LiveViewTest, AScrapeSeesWhatIsThenAndNotWhatWas) {
  FakeNode node;
  std::atomic<uint64_t> readings = 0;
  Surroundings surroundings = node.surroundings();
  surroundings.advertised_node_charged_bytes = [&] { return ++readings; };
  LiveView live(std::make_unique<NodeView>(node.options(), surroundings));
  EXPECT_EQ(live.Fresh(0ms), nullptr);
  live.Start();
  std::shared_ptr<const View> before = live.Fresh(kLong);
  ASSERT_NE(before, nullptr);
  for (int i = 0; i < 5; ++i) {
    // While it rests it gives out the last.
    std::shared_ptr<const View> after = live.Fresh(kLong);
    while (after == before) after = live.Fresh(kLong);
    EXPECT_GT(after->advertised_node_charged_bytes,
              before->advertised_node_charged_bytes);
    before = after;
  }
  live.Stop();
  live.Stop();
}

TEST(LiveViewTest, AReadingThatTakesLongHoldsUpNobody) {
  FakeNode node;
  Gate gate;
  std::atomic<int> readings = 0;
  Surroundings surroundings = node.surroundings();
  surroundings.advertised_node_charged_bytes = [&]() -> uint64_t {
    if (++readings > 1) gate.Pass();
    return static_cast<uint64_t>(readings);
  };
  LiveView live(std::make_unique<NodeView>(node.options(), surroundings));
  live.Start();
  std::shared_ptr<const View> first;
  while ((first = live.Fresh(1ms)) == nullptr)
    ;
  // The second is held up.
  while (live.Fresh(1ms) == first && readings < 2)
    ;
  ASSERT_TRUE(gate.AwaitArrivals(1));
  EXPECT_EQ(live.Fresh(1ms), first);
  EXPECT_EQ(live.Fresh(1ms)->advertised_node_charged_bytes, 1u);
  gate.Open();
  live.Stop();
}

std::string TextOf(const View& view) {
  return prometheus::TextSerializer().Serialize(MetricsOf(view));
}

TEST(ViewMetricsTest, ShowAllOfAView) {
  FakeNode node;
  node.AddDevice("rxe0", queue_memory::Provider::kRxe);
  node.AddPodProcess(100, "pod-a", 'a');
  node.AddContext("rxe0", 1, 100);
  node.AddQueuePair("rxe0", 17, 100, 1);
  node.kernel.Add("rxe0", {.id = 1, .kernel_owner = "ib_core", .type = 1});
  node.proc.SetRings(100, {{.bytes = 8192, .offset = 0},
                           {.bytes = 4096, .offset = 0x10000},
                           {.bytes = 4096, .offset = 0x20000}});
  node.proc.SetVmallocinfo({139264, 16384});
  node.kubelet.Give("ns", "pod-a", "app", "rdma/hca", 2);
  node.kubelet.Give("ns", "pod-b", "app", "rdma/hca", 3);
  node.advertised_node_charged_bytes = 3ull << 29;
  LiveView live(node.MakeView());
  live.Start();
  (void)live.Fresh(kLong);
  const std::string text =
      prometheus::TextSerializer().Serialize(ViewMetrics(live).Collect());
  const std::string owner = "namespace=\"ns\",pod=\"pod-a\",container=\"app\"";
  for (const std::string& line :
       {"purser_node_queue_memory_bytes{device=\"rxe0\"," + owner +
            ",charged_to=\"node\",exactness=\"exact\"} 16384\n",
        "purser_node_queue_memory_bytes{device=\"rxe0\"," + owner +
            ",charged_to=\"container\",exactness=\"exact\"} 808\n",
        "purser_node_queue_pairs{device=\"rxe0\"," + owner +
            ",type=\"RC\",state=\"RTS\"} 1\n",
        std::string("purser_node_queue_pairs{device=\"rxe0\",namespace=\"\","
                    "pod=\"\",container=\"kernel\",type=\"GSI\",state=\"RTS\"}"
                    " 1\n"),
        "purser_node_completion_queues{device=\"rxe0\"," + owner + "} 1\n",
        std::string("purser_node_undeclared_queue_memory_bytes{device=\"rxe0\"}"
                    " 17192\n"),
        std::string("purser_node_kernel_rings_bytes{driver=\"rxe\"} 155648\n"),
        std::string(
            "purser_node_unattributed_rings_bytes{driver=\"rxe\"} 139264\n"),
        "purser_node_allocated_units{resource=\"rdma/hca\"," + owner + "} 2\n",
        std::string(
            "purser_device_plugin_allocated{resource=\"rdma/hca\"} 5\n"),
        std::string("purser_node_reserved_memory_bytes 1073741824\n"),
        std::string("purser_node_unreserved_queue_memory_bytes 536870912\n"),
        std::string("purser_node_view_source_up{source=\"netlink\",reason=\"\"}"
                    " 1\n"),
        std::string("purser_node_view_source_up{source=\"raw_context\","
                    "reason=\"not_needed\"} 0\n"),
        std::string("purser_node_view_read_seconds ")})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(ViewMetricsTest, WhatIsNotKnownIsAbsentAndNotZero) {
  const std::string text = TextOf(View{});
  EXPECT_THAT(text, Not(HasSubstr("purser_device_plugin_allocated")));
  EXPECT_THAT(text, Not(HasSubstr("undeclared_queue_memory_bytes{")));
  EXPECT_THAT(text, Not(HasSubstr("reserved_memory_bytes")));
}

TEST(ViewMetricsTest, BeforeTheFirstReadingThereAreNone) {
  FakeNode node;
  LiveView live(node.MakeView());  // not started
  EXPECT_TRUE(ViewMetrics(live, 0ms).Collect().empty());
}

}  // namespace
}  // namespace purser::node_view
