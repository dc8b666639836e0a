// SPDX-License-Identifier: Apache-2.0
#include "rdma/kernel_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace purser::rdma {
namespace {

using namespace std::string_literals;

Bytes BytesOf(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string Uevent(const std::string& subsystem) {
  return "add@/devices/virtual/x/y\0ACTION=add\0DEVPATH=/devices/virtual/x/y\0"
         "SUBSYSTEM="s +
         subsystem + "\0SEQNUM=4711\0"s;
}

// Messages without a body, of these types.
std::string LinkMessages(const std::vector<uint16_t>& types) {
  std::string text;
  for (const uint16_t type : types) {
    nlmsghdr header{};
    header.nlmsg_len = sizeof header;
    header.nlmsg_type = type;
    text.append(reinterpret_cast<const char*>(&header), sizeof header);
  }
  return text;
}

// A unix socket pair stands for the kernel's.
class KernelEventsTest : public ::testing::Test {
 protected:
  KernelEventsTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
    here_ = base::FileDescriptor(fds[0]);
    kernel_ = base::FileDescriptor(fds[1]);
  }
  void Send(const std::string& datagram) {
    ASSERT_EQ(send(kernel_.get(), datagram.data(), datagram.size(), 0),
              static_cast<ssize_t>(datagram.size()));
  }

  base::FileDescriptor here_, kernel_;
};

TEST(UeventsTest, ThoseOfRdmaAndNetworkDevicesCount) {
  for (const char* subsystem :
       {"infiniband", "infiniband_verbs", "infiniband_mad", "net"})
    EXPECT_EQ(CountUevents(BytesOf(Uevent(subsystem))), 1u) << subsystem;
  for (const char* subsystem : {"block", "queues", "infiniband_", "", "netx"})
    EXPECT_EQ(CountUevents(BytesOf(Uevent(subsystem))), 0u) << subsystem;
}

TEST(UeventsTest, NoBytesMakeThemFail) {
  const std::string whole = Uevent("infiniband");
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_LE(CountUevents(BytesOf(whole).first(length)), 1u);
  for (const std::string& odd :
       {""s, "\0\0\0"s, "SUBSYSTEM="s, "SUBSYSTEM=\0SUBSYSTEM=net"s,
        "libudev\0SUBSYSTEM"s})
    EXPECT_EQ(CountUevents(BytesOf(odd)), 0u);
}

TEST(LinkEventsTest, LinksAndAddressesCount) {
  EXPECT_EQ(CountLinkEvents(BytesOf(LinkMessages(
                {RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_DELADDR}))),
            4u);
  EXPECT_EQ(CountLinkEvents(BytesOf(LinkMessages(
                {RTM_NEWROUTE, RTM_NEWNEIGH, RTM_NEWLINK, NLMSG_DONE}))),
            1u);
}

TEST(LinkEventsTest, NoBytesMakeThemFail) {
  const std::string whole = LinkMessages({RTM_NEWLINK, RTM_NEWLINK});
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_LE(CountLinkEvents(BytesOf(whole).first(length)), 1u);
  std::string odd = LinkMessages({RTM_NEWLINK});
  for (const uint32_t length : {0u, 1u, 15u, 17u, 0x7fffffffu, 0xffffffffu}) {
    std::memcpy(odd.data(), &length, sizeof length);
    EXPECT_EQ(CountLinkEvents(BytesOf(odd)), 0u) << length;
  }
}

TEST_F(KernelEventsTest, AreTakenWithoutWaiting) {
  EXPECT_EQ(TakeEvents(here_, CountUevents).value(), 0u);
  Send(Uevent("infiniband"));
  Send(Uevent("block"));
  Send(Uevent("net"));
  EXPECT_EQ(TakeEvents(here_, CountUevents).value(), 2u);
  EXPECT_EQ(TakeEvents(here_, CountUevents).value(), 0u);
}

TEST_F(KernelEventsTest, AMessageTooLongCounts) {
  Send(std::string(9000, 'x'));
  EXPECT_EQ(TakeEvents(here_, CountUevents).value(), 1u);
}

TEST_F(KernelEventsTest, AStormIsTakenInParts) {
  int sent = 0;
  const std::string datagram = Uevent("net");
  while (sent < 300 &&
         send(kernel_.get(), datagram.data(), datagram.size(), 0) > 0)
    ++sent;
  uint64_t taken = 0, at_once = 0;
  do {
    at_once = TakeEvents(here_, CountUevents).value();
    EXPECT_LE(at_once, 256u);
    taken += at_once;
  } while (at_once > 0);
  EXPECT_EQ(taken, static_cast<uint64_t>(sent));
}

TEST_F(KernelEventsTest, AnEndIsAnError) {
  kernel_ = base::FileDescriptor();
  EXPECT_TRUE(absl::IsUnavailable(TakeEvents(here_, CountUevents).status()));
  EXPECT_FALSE(TakeEvents(base::FileDescriptor(), CountUevents).ok());
}

TEST(KernelEventSocketsTest, OpenWithoutPrivilege) {
  EXPECT_TRUE(OpenUevents().ok()) << OpenUevents().status();
  EXPECT_TRUE(OpenLinkEvents().ok()) << OpenLinkEvents().status();
}

}  // namespace
}  // namespace purser::rdma
