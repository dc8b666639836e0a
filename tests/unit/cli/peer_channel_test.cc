// SPDX-License-Identifier: Apache-2.0
#include "cli/peer_channel.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "base/tcp_listener.h"

namespace purser::cli {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kSoon(50), kLong(5000);

class PeerChannelTest : public testing::Test {
 protected:
  PeerChannelTest() {
    auto listener = base::ListenTcp("127.0.0.1:0");
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = std::move(*listener);
  }
  std::string Address() const {
    return "127.0.0.1:" + std::to_string(listener_.port);
  }
  // A peer that is no PeerChannel.
  base::FileDescriptor Stranger() const {
    base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(listener_.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
    return socket;
  }
  PeerChannel Accepted() const {
    auto channel = PeerChannel::Accept(listener_.socket.get(), kLong);
    EXPECT_TRUE(channel.ok()) << channel.status();
    return std::move(*channel);
  }
  // What Receive() says to these bytes.
  absl::Status ReceiveAfter(const std::string& bytes, bool and_close) const {
    base::FileDescriptor stranger = Stranger();
    PeerChannel channel = Accepted();
    EXPECT_EQ(send(stranger.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    if (and_close) shutdown(stranger.get(), SHUT_WR);
    return channel.Receive(kSoon).status();
  }
  static v1::PingMessage Hello() {
    v1::PingMessage message;
    message.mutable_hello()->set_psn(7);
    return message;
  }

  base::TcpListener listener_;
};

TEST_F(PeerChannelTest, CarriesMessagesBothWays) {
  auto near = PeerChannel::Connect(Address(), kLong);
  ASSERT_TRUE(near.ok()) << near.status();
  PeerChannel far = Accepted();
  EXPECT_EQ(near->peer(), Address());
  EXPECT_FALSE(far.Pending());
  ASSERT_TRUE(near->Send(Hello(), kLong).ok());
  ASSERT_TRUE(near->Send(Hello(), kLong).ok());
  for (int i = 0; i < 2; ++i) {
    auto message = far.Receive(kLong);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(message->hello().psn(), 7u);
  }
  ASSERT_TRUE(far.Send(Hello(), kLong).ok());
  EXPECT_TRUE(near->Receive(kLong).ok());
}

TEST_F(PeerChannelTest, WorksOverIpv6) {
  auto listener = base::ListenTcp("[::1]:0");
  if (!listener.ok()) GTEST_SKIP() << listener.status();
  const std::string address = "[::1]:" + std::to_string(listener->port);
  auto near = PeerChannel::Connect(address, kLong);
  ASSERT_TRUE(near.ok()) << near.status();
  EXPECT_EQ(near->peer(), address);
}

TEST_F(PeerChannelTest, NamesAnIpv4PeerOfABothFamiliesSocketAsIpv4) {
  auto listener = base::ListenTcp(":0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  auto near = PeerChannel::Connect(
      "127.0.0.1:" + std::to_string(listener->port), kLong);
  ASSERT_TRUE(near.ok()) << near.status();
  auto far = PeerChannel::Accept(listener->socket.get(), kLong);
  ASSERT_TRUE(far.ok()) << far.status();
  EXPECT_THAT(far->peer(), testing::StartsWith("127.0.0.1:"));
}

TEST_F(PeerChannelTest, RefusesWhatIsNoFrame) {
  EXPECT_THAT(
      std::string(ReceiveAfter("GET / HTTP/1.1\r\n\r\n", false).message()),
      HasSubstr("does not speak the protocol"));
  EXPECT_THAT(
      std::string(
          ReceiveAfter(std::string("PRS\x02\0\0\0\0", 8), false).message()),
      HasSubstr("speaks version 2 of the ping protocol, this side version 1"));
  EXPECT_THAT(
      std::string(ReceiveAfter("PRS\x01\xff\xff\xff\xff", false).message()),
      HasSubstr("4294967295 bytes, at most 65536"));
  EXPECT_THAT(
      std::string(
          ReceiveAfter(std::string("PRS\x01\0\0\0\x03\xff\xff\xff", 11), false)
              .message()),
      HasSubstr("cannot be understood"));
  EXPECT_THAT(
      std::string(
          ReceiveAfter(std::string("PRS\x01\0\0\0\0", 8), false).message()),
      HasSubstr("cannot be understood"));
}

TEST_F(PeerChannelTest, APeerThatStopsInTheMiddleIsTimedOut) {
  for (const std::string& part : {std::string(), std::string("PR"),
                                  std::string("PRS\x01\0\0\0\x09half", 12)})
    EXPECT_EQ(ReceiveAfter(part, false).code(),
              absl::StatusCode::kDeadlineExceeded);
}

TEST_F(PeerChannelTest, APeerThatEndsInTheMiddleIsToldSo) {
  for (const std::string& part : {std::string(), std::string("PR"),
                                  std::string("PRS\x01\0\0\0\x09half", 12)})
    EXPECT_THAT(std::string(ReceiveAfter(part, true).message()),
                HasSubstr("ended the connection"));
}

TEST_F(PeerChannelTest, APeerThatTakesNothingIsTimedOut) {
  base::FileDescriptor stranger = Stranger();
  PeerChannel channel = Accepted();
  v1::PingMessage message;
  message.mutable_result()->set_error(std::string(60'000, 'x'));
  absl::Status status;
  for (int i = 0; status.ok() && i < 10'000; ++i)
    status = channel.Send(message, kSoon);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST_F(PeerChannelTest, NobodyConnecting) {
  EXPECT_EQ(PeerChannel::Accept(listener_.socket.get(), kSoon).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(PeerChannelTest, NobodyListening) {
  const std::string address = Address();
  listener_ = base::TcpListener();
  auto channel = PeerChannel::Connect(address, kLong);
  EXPECT_FALSE(channel.ok());
  EXPECT_THAT(std::string(channel.status().message()),
              testing::AllOf(HasSubstr("cannot connect to " + address),
                             HasSubstr("Connection refused"),
                             HasSubstr("qp ping --listen")));
}

TEST(SplitHostPortTest, TakesNamesAndBothFamilies) {
  EXPECT_EQ(SplitHostPort("host:1")->host, "host");
  EXPECT_EQ(SplitHostPort("10.0.0.1:23")->port, "23");
  EXPECT_EQ(SplitHostPort("[fe80::1%eth0]:1")->host, "fe80::1%eth0");
  for (const char* wrong :
       {"", "host", ":1", "host:", "::1:7", "[]:1", "[::1]"})
    EXPECT_EQ(SplitHostPort(wrong).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong;
}

}  // namespace
}  // namespace purser::cli
