// SPDX-License-Identifier: Apache-2.0
#include "plugin/endpoint_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file_descriptor.h"
#include "plugin/live_endpoints.h"
#include "tests/fakes/file_tree.h"

namespace purser::plugin {
namespace {

using ::testing::IsEmpty;

TEST(EndpointName, IsReadBackAsItWasWritten) {
  for (const char* resource :
       {"rdma/hca", "rdma/wqe-mib", "example.com/a_b-c.d",
        "rdma/a-name-that-is-longer-than-what-fits-in-a-socket-path"}) {
    const EndpointName name =
        EndpointName::Make(resource, {"a/b-c.d", 0x123456789ab}, 4294967295);
    EXPECT_EQ(EndpointName::Parse(name.text()), name) << name.text();
    // With /var/lib/kubelet/plugins_registry/ before it, and some more.
    EXPECT_LE(name.text().size(), 70u);
  }
}

TEST(EndpointName, TellsResourcesInstallationsAndProcessesApart) {
  const EndpointName name = EndpointName::Make("rdma/hca", {"a", 1}, 1);
  EXPECT_NE(EndpointName::Make("rdma/hcb", {"a", 1}, 1), name);
  EXPECT_NE(EndpointName::Make("rdma/hca", {"b", 1}, 1), name);
  EXPECT_NE(EndpointName::Make("rdma/hca", {"a", 2}, 1), name);
  EXPECT_NE(EndpointName::Make("rdma/hca", {"a", 1}, 2), name);
  const std::string longest(60, 'x');
  EXPECT_NE(ResourcePart(longest + "1"), ResourcePart(longest + "2"));
  // The hash is part of the protocol between versions.
  EXPECT_EQ(EndpointName::Make("rdma/hca", {"purser", 255}, 7).text(),
            "purser-rdma_hca-ef6ff536-ff.7.sock");
}

TEST(EndpointName, IsNotMistakenForAnotherProgramsSocket) {
  for (const char* other :
       {"kubelet.sock", "hca.sock", "purser-rdma_hca.sock", "purser-.sock",
        "purser-a-b-c.d.sock", "purser-a-1-2.sock", "purser-a-1-2.3",
        ".purser-123456", "purser-a-111111111-2.3.sock", ""}) {
    EXPECT_FALSE(EndpointName::Parse(other)) << other;
  }
}

class LiveEndpointsTest : public testing::Test {
 protected:
  // Served until it is closed.
  base::FileDescriptor Serve(const std::string& name) {
    base::FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    tree_.path(name).copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof address),
              0);
    EXPECT_EQ(listen(fd.get(), 1), 0);
    return fd;
  }
  bool Exists(const std::string& name) {
    return std::filesystem::exists(tree_.path(name));
  }
  fakes::FileTree tree_;
  const Identity own_{"a", 9};
};

TEST_F(LiveEndpointsTest, FindsThoseOfOthersAndRemovesTheDead) {
  const EndpointName live = EndpointName::Make("rdma/hca", {"a", 1}, 1);
  const EndpointName foreign = EndpointName::Make("rdma/hca", {"b", 2}, 1);
  const EndpointName dead = EndpointName::Make("rdma/hca", {"a", 3}, 1);
  const EndpointName mine = EndpointName::Make("rdma/hca", own_, 1);
  const EndpointName no_socket = EndpointName::Make("rdma/hca", {"a", 4}, 1);
  const auto a = Serve(live.text()), b = Serve(foreign.text());
  Serve(dead.text());
  Serve(mine.text());       // the registrar's to look after
  Serve("another.sock");    // another program's
  Serve(".purser-0a0b0c");  // about to listen
  tree_.Write(no_socket.text(), "");
  const auto found = FindLiveEndpoints(tree_.root().string(), own_);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 2u);
  const bool in_order = (*found)[0].name == live;
  EXPECT_EQ((*found)[in_order ? 0 : 1].name, live);
  EXPECT_EQ((*found)[in_order ? 1 : 0].name, foreign);
  EXPECT_LT(std::chrono::system_clock::now() - (*found)[0].bound_at,
            std::chrono::minutes(1));
  EXPECT_FALSE(Exists(dead.text()));
  EXPECT_TRUE(Exists(mine.text()));
  EXPECT_TRUE(Exists("another.sock"));
  EXPECT_TRUE(Exists(".purser-0a0b0c"));
  EXPECT_TRUE(Exists(no_socket.text()));
}

TEST_F(LiveEndpointsTest, RemovesWhatWasLeftUnderATemporaryName) {
  Serve(".purser-0a0b0c");
  std::filesystem::last_write_time(
      tree_.path(".purser-0a0b0c"),
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_TRUE(FindLiveEndpoints(tree_.root().string(), own_).ok());
  EXPECT_FALSE(Exists(".purser-0a0b0c"));
}

TEST_F(LiveEndpointsTest, NoDirectoryIsNoEndpointAndAFileIsAnError) {
  EXPECT_THAT(FindLiveEndpoints(tree_.path("none"), own_).value(), IsEmpty());
  tree_.Write("file", "");
  EXPECT_FALSE(FindLiveEndpoints(tree_.path("file"), own_).ok());
}

}  // namespace
}  // namespace purser::plugin
