// SPDX-License-Identifier: Apache-2.0
//
// Two `purser qp ping`, each with a sidecar of its own; the sidecars' queue
// pairs reach each other through one fabric.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/tcp_listener.h"
#include "cli/peer_channel.h"
#include "tests/unit/cli/cli_fixture.h"

namespace purser::cli {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class PingTest : public CliTest {
 protected:
  ~PingTest() override {
    if (listening_.joinable()) listening_.join();
  }
  void Listen(std::vector<std::string> more = {},
              const std::string& port = "0") {
    more.insert(more.begin(), {"qp", "ping", "--listen", "127.0.0.1:" + port});
    listening_ = std::thread(
        [this, more] { listener_exit_ = listener_(At(other_sidecar_, more)); });
    ASSERT_TRUE(listener_.out.WaitFor("\n")) << listener_.err.text();
    port_ =
        listener_.out.text().substr(std::string("listening on port ").size());
    port_.pop_back();
  }
  std::string Address() const { return "127.0.0.1:" + port_; }
  int Connect(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"qp", "ping", "--connect", Address()});
    return purser_(Here(more));
  }
  int ListenerExit() {
    listening_.join();
    return listener_exit_;
  }
  void ExpectNothingLeft() {
    EXPECT_TRUE(sidecar_.WaitForClients(0));
    EXPECT_TRUE(other_sidecar_.WaitForClients(0));
    EXPECT_EQ(sidecar_.queue_pairs() + other_sidecar_.queue_pairs(), 0u);
    EXPECT_EQ(fabric_.regions(), 0u);
  }

  fakes::FileTree other_volume_;
  fakes::FakeSidecarService other_sidecar_{other_volume_.root().string(),
                                           fabric_};
  Purser purser_, listener_;
  std::thread listening_;
  int listener_exit_ = -1;
  std::string port_;
};

TEST_F(PingTest, MovesAndVerifiesDataBothWays) {
  Listen();
  EXPECT_EQ(Connect({"--iterations", "5", "--size", "1001", "--bytes", "100001",
                     "--chunk", "1000"}),
            kOk)
      << purser_.err.text();
  EXPECT_EQ(ListenerExit(), kOk) << listener_.err.text();
  for (const Purser* side : {&purser_, &listener_})
    EXPECT_THAT(
        side->out.text(),
        AllOf(HasSubstr("5 x 1,001 bytes there and back, 10,010 bytes"),
              HasSubstr("100,001 bytes"), HasSubstr("all 110,011 bytes")));
  EXPECT_THAT(purser_.out.text(), HasSubstr("round trip"));
  EXPECT_THAT(listener_.out.text(), Not(HasSubstr("round trip")));
  ExpectNothingLeft();
}

class PingShapeTest : public PingTest,
                      public testing::WithParamInterface<
                          std::tuple<const char*, const char*, const char*>> {};

TEST_P(PingShapeTest, EndsWellAtEveryEdge) {
  const auto [iterations, bytes, chunk] = GetParam();
  Listen();
  EXPECT_EQ(Connect({"--iterations", iterations, "--size", "1", "--bytes",
                     bytes, "--chunk", chunk}),
            kOk)
      << purser_.err.text();
  EXPECT_EQ(ListenerExit(), kOk) << listener_.err.text();
}

INSTANTIATE_TEST_SUITE_P(
    All, PingShapeTest,
    testing::Values(std::tuple("0", "0", "1"), std::tuple("1", "0", "1"),
                    std::tuple("2", "1", "1"), std::tuple("3", "1", "64Ki"),
                    std::tuple("0", "8000", "1000"),   // half a window
                    std::tuple("1", "16000", "1000"),  // a window
                    std::tuple("1", "17000", "1000"),  // and a chunk
                    std::tuple("0", "24001", "1000"),  // and a half and a byte
                    std::tuple("0", "1Mi", "4Ki")));

TEST_F(PingTest, ADamagedMessageIsExitCode1OnBothSides) {
  Listen();
  fabric_.CorruptDelivery(3);
  EXPECT_EQ(Connect({"--iterations", "5"}), kFailure);
  EXPECT_EQ(ListenerExit(), kFailure);
  for (const Purser* side : {&purser_, &listener_}) {
    EXPECT_THAT(side->out.text(), HasSubstr("1 byte wrong"));
    EXPECT_THAT(side->err.text(), HasSubstr("damaged"));
  }
}

TEST_F(PingTest, ADamagedChunkIsExitCode1OnBothSides) {
  Listen();
  fabric_.CorruptDelivery(20);
  EXPECT_EQ(
      Connect({"--iterations", "0", "--bytes", "40000", "--chunk", "1000"}),
      kFailure);
  EXPECT_EQ(ListenerExit(), kFailure);
  EXPECT_THAT(purser_.out.text(), HasSubstr("1 byte wrong, 39,999"));
}

TEST_F(PingTest, AFailedSendIsToldToBothSides) {
  Listen();
  fabric_.FailNextSend(12, "transport retry counter exceeded");
  EXPECT_EQ(Connect({"--iterations", "2"}), kFailure);
  EXPECT_EQ(ListenerExit(), kFailure);
  EXPECT_THAT(purser_.err.text(),
              HasSubstr("a send failed: transport retry counter exceeded "
                        "(ibv_wc_status 12"));
  EXPECT_THAT(listener_.err.text(),
              AllOf(HasSubstr("gave up"), HasSubstr("retry counter exceeded")));
  ExpectNothingLeft();
}

TEST_F(PingTest, AListenerThatIsRefusedTellsItsPeer) {
  other_sidecar_.SetBudget(100);
  Listen();
  EXPECT_EQ(Connect(), kFailure);
  EXPECT_EQ(ListenerExit(), kRefused);
  EXPECT_THAT(purser_.err.text(), HasSubstr("gave up: queue memory budget"));
  EXPECT_THAT(listener_.err.text(), HasSubstr("needed"));
}

TEST_F(PingTest, AConnectingSideThatIsRefusedDoesNotConnect) {
  sidecar_.SetBudget(100);
  Listen({"--timeout", "0.2"});
  EXPECT_EQ(Connect(), kRefused);
  EXPECT_EQ(ListenerExit(), kFailure);
  EXPECT_THAT(listener_.err.text(), HasSubstr("no peer connected"));
}

TEST_F(PingTest, StrangersAreTurnedAwayAndThePeerStillServed) {
  Listen();
  v1::PingMessage credit, huge;
  credit.mutable_credit()->set_chunks(1);
  huge.mutable_hello()->mutable_plan()->set_message_bytes(UINT32_MAX);
  for (const v1::PingMessage& message : {credit, huge}) {
    auto stranger = PeerChannel::Connect(Address(), milliseconds(5000));
    ASSERT_TRUE(stranger.ok());
    ASSERT_TRUE(stranger->Send(message, milliseconds(5000)).ok());
  }
  // Says nothing and goes.
  (void)PeerChannel::Connect(Address(), milliseconds(5000));
  EXPECT_EQ(Connect({"--iterations", "1"}), kOk) << purser_.err.text();
  EXPECT_EQ(ListenerExit(), kOk);
  EXPECT_THAT(listener_.err.text(),
              AllOf(HasSubstr("did not begin with a hello"),
                    HasSubstr("message_bytes 4294967295 is not within"),
                    HasSubstr("ended the connection")));
}

TEST_F(PingTest, AListenerThatComesLaterIsReached) {
  {
    auto port = base::ListenTcp("127.0.0.1:0");
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = std::to_string(port->port);
  }
  int exit = -1;
  std::thread connecting([&] { exit = Connect({"--iterations", "1"}); });
  EXPECT_TRUE(purser_.err.WaitFor("trying again for 30 s")) << exit;
  Listen({}, port_);
  connecting.join();
  EXPECT_EQ(exit, kOk) << purser_.err.text();
  EXPECT_EQ(ListenerExit(), kOk);
}

TEST_F(PingTest, APeerThatNeverComesIsGivenUp) {
  {
    auto port = base::ListenTcp("127.0.0.1:0");
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = std::to_string(port->port);
  }
  EXPECT_EQ(Connect({"--timeout", "0.3"}), kFailure);
  EXPECT_THAT(purser_.err.text(),
              AllOf(HasSubstr("cannot connect to " + Address()),
                    HasSubstr("Connection refused")));
  ExpectNothingLeft();
}

TEST_F(PingTest, APeerThatVanishesIsNoticed) {
  Listen();
  {
    auto stranger = PeerChannel::Connect(Address(), milliseconds(5000));
    ASSERT_TRUE(stranger.ok());
    v1::PingMessage hello;
    v1::PingPlan& plan = *hello.mutable_hello()->mutable_plan();
    plan.set_message_bytes(1);
    plan.set_iterations(1);
    plan.set_chunk_bytes(1);
    plan.set_window_chunks(2);
    v1::Endpoint& endpoint = *hello.mutable_hello()->mutable_endpoint();
    endpoint.set_gid(std::string(16, 'x'));
    endpoint.set_mtu(1024);
    ASSERT_TRUE(stranger->Send(hello, milliseconds(5000)).ok());
    ASSERT_TRUE(stranger->Receive(milliseconds(5000)).ok());
  }
  EXPECT_EQ(ListenerExit(), kFailure);
  EXPECT_THAT(listener_.err.text(), HasSubstr("ended the connection"));
  ExpectNothingLeft();
}

TEST_F(PingTest, ASilentPeerIsTimedOut) {
  Listen({"--timeout", "0.3"});
  auto stranger = PeerChannel::Connect(Address(), milliseconds(5000));
  EXPECT_EQ(ListenerExit(), kFailure);
  EXPECT_THAT(listener_.err.text(),
              AllOf(HasSubstr("says nothing"), HasSubstr("no peer connected")));
}

TEST_F(PingTest, ASidecarThatDiesIsNoticedByBothSides) {
  Listen();
  std::thread stop([this] {
    EXPECT_TRUE(purser_.out.WaitFor("connected with"));
    other_sidecar_.Stop();
  });
  EXPECT_EQ(Connect({"--iterations", "1000000", "--size", "1"}), kFailure);
  stop.join();
  EXPECT_EQ(ListenerExit(), kFailure);
  EXPECT_THAT(listener_.err.text(), HasSubstr("is gone"));
  EXPECT_THAT(purser_.err.text(), HasSubstr("gave up"));
}

}  // namespace
}  // namespace purser::cli
