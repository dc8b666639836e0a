// SPDX-License-Identifier: Apache-2.0
#include "plugin/events/event_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "plugin/events/netlink_source.h"
#include "spdlog/fmt/fmt.h"
#include "tests/fakes/file_tree.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kUevents = RefreshCause::kUevents;
constexpr auto kRtnetlink = RefreshCause::kRtnetlink;

// The kernel's end of a source's socket. A datagram counts unless it is "-".
class FakeKernel {
 public:
  FakeKernel() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
    source_ = base::FileDescriptor(fds[0]);
    kernel_ = base::FileDescriptor(fds[1]);
  }
  absl::StatusOr<std::unique_ptr<EventSource>> Source() {
    return std::make_unique<NetlinkSource>(
        std::move(source_), [](rdma::Bytes datagram) -> uint64_t {
          return datagram.front() == std::byte{'-'} ? 0 : 1;
        });
  }
  void Send(const char* datagram) {
    EXPECT_EQ(send(kernel_.get(), datagram, 1, 0), 1);
  }
  void End() { kernel_ = base::FileDescriptor(); }

 private:
  base::FileDescriptor source_, kernel_;
};

class EventSourcesTest : public ::testing::Test {
 protected:
  EventSourceState State(RefreshCause cause) const {
    return sources_.States()[static_cast<size_t>(cause)];
  }
  std::vector<RefreshCause> WaitNot() {
    return sources_.Wait({other_.get()}, steady_clock::now());
  }
  std::vector<RefreshCause> WaitLong() {
    return sources_.Wait({other_.get()}, steady_clock::now() + 1h);
  }

  base::FileDescriptor other_{eventfd(0, EFD_CLOEXEC)};
  FakeKernel uevents_, links_;
  EventSources sources_;
};

TEST_F(EventSourcesTest, SayWhatHadEvents) {
  sources_.Add(kUevents, uevents_.Source());
  sources_.Add(kRtnetlink, links_.Source());
  EXPECT_THAT(WaitNot(), IsEmpty());
  uevents_.Send("+");
  EXPECT_THAT(WaitLong(), ElementsAre(kUevents));
  links_.Send("+");
  links_.Send("+");
  uevents_.Send("+");
  EXPECT_THAT(WaitLong(), ElementsAre(kUevents, kRtnetlink));
  EXPECT_THAT(WaitNot(), IsEmpty());
  EXPECT_EQ(State(kUevents).events, 2u);
  EXPECT_EQ(State(kRtnetlink).events, 2u);
  EXPECT_EQ(State(kUevents).reason, "");
}

TEST_F(EventSourcesTest, WhatIsNotOfConcernIsNoEvent) {
  sources_.Add(kUevents, uevents_.Source());
  uevents_.Send("-");
  EXPECT_THAT(WaitLong(), IsEmpty());
  EXPECT_EQ(State(kUevents).events, 0u);
}

TEST_F(EventSourcesTest, AnotherDescriptorEndsTheWait) {
  sources_.Add(kUevents, uevents_.Source());
  eventfd_write(other_.get(), 1);
  EXPECT_THAT(WaitLong(), IsEmpty());
}

TEST_F(EventSourcesTest, TheWaitEndsNoEarlierThanTold) {
  const auto until = steady_clock::now() + 20ms;
  EXPECT_THAT(sources_.Wait({other_.get()}, until), IsEmpty());
  EXPECT_GE(steady_clock::now(), until);
}

TEST_F(EventSourcesTest, EachMayBeMissingAndSaysWhy) {
  EXPECT_EQ(State(kUevents).reason, "off");
  sources_.Add(kUevents, absl::PermissionDeniedError("no"));
  sources_.Add(kRtnetlink, absl::UnimplementedError("no such protocol"));
  sources_.Add(RefreshCause::kAsync, absl::InternalError("?"));
  EXPECT_EQ(State(kUevents).reason, "not_permitted");
  EXPECT_EQ(State(kRtnetlink).reason, "absent");
  EXPECT_EQ(State(RefreshCause::kAsync).reason, "failed");
  EXPECT_THAT(WaitNot(), IsEmpty());
  sources_.Judge(kUevents, "");
  EXPECT_EQ(State(kUevents).reason, "not_permitted");
}

TEST_F(EventSourcesTest, ASourceThatEndsIsAnEventAndThenAbsent) {
  sources_.Add(kUevents, uevents_.Source());
  sources_.Add(kRtnetlink, links_.Source());
  uevents_.End();
  EXPECT_THAT(WaitLong(), ElementsAre(kUevents));
  EXPECT_EQ(State(kUevents).reason, "failed");
  EXPECT_THAT(WaitNot(), IsEmpty());
  links_.Send("+");
  EXPECT_THAT(WaitLong(), ElementsAre(kRtnetlink));
}

TEST_F(EventSourcesTest, ASourceMayTellOfAnotherPlace) {
  sources_.Add(kRtnetlink, links_.Source());
  sources_.Judge(kRtnetlink, "other_netns");
  EXPECT_EQ(State(kRtnetlink).reason, "other_netns");
  links_.Send("+");
  EXPECT_THAT(WaitLong(), ElementsAre(kRtnetlink));
  sources_.Judge(kRtnetlink, "");
  EXPECT_EQ(State(kRtnetlink).reason, "");
  sources_.Remove(kRtnetlink, "off");
  EXPECT_EQ(State(kRtnetlink).reason, "off");
}

TEST(IsOtherNamespaceTest, ComparesWhatSysfsShowsWithWhatIsHere) {
  fakes::FileTree tree;
  const auto is_other = [&](std::set<std::string> netdevs) {
    return IsOtherNamespace(tree.root(), netdevs);
  };
  const auto show = [&](const std::string& netdev, unsigned index,
                        unsigned link) {
    tree.Write("class/net/" + netdev + "/ifindex", fmt::format("{}\n", index));
    tree.Write("class/net/" + netdev + "/iflink", fmt::format("{}\n", link));
  };
  const unsigned lo = if_nametoindex("lo");
  ASSERT_GT(lo, 0u);
  EXPECT_FALSE(is_other({}));
  EXPECT_FALSE(is_other({"lo"}));  // cannot be told
  show("lo", lo, lo);
  EXPECT_FALSE(is_other({"lo"}));
  show("lo", lo + 7, lo + 7);  // the host's
  EXPECT_TRUE(is_other({"lo"}));
  show("lo", lo, lo + 7);  // a pod's own, of the same name
  EXPECT_TRUE(is_other({"lo"}));
  show("nosuch0", 3, 3);
  EXPECT_TRUE(is_other({"nosuch0"}));
  // Sysfs itself is another namespace's than the device.
  EXPECT_TRUE(is_other({"nosuch1"}));
  show("lo", lo, lo);
  EXPECT_FALSE(is_other({"lo", "nosuch0"}));
}

}  // namespace
}  // namespace purser::plugin
