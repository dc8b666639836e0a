// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "cli/exit_code.h"

namespace purser::cli {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Parsed {
  std::optional<Invocation> invocation;
  int exit_code = -1;
  std::string out, err;
  template <typename Command>
  const Command& command() const {
    return std::get<Command>(invocation.value().command);
  }
};

Parsed Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "purser");
  std::ostringstream out, err;
  Parsed parsed;
  parsed.invocation =
      ParseCommandLine(static_cast<int>(arguments.size()), arguments.data(),
                       out, err, &parsed.exit_code);
  parsed.out = out.str();
  parsed.err = err.str();
  return parsed;
}

TEST(CommandLineTest, Defaults) {
  unsetenv("PURSER_SOCKET");
  const Parsed parsed = Parse({"qp", "create"});
  ASSERT_TRUE(parsed.invocation.has_value()) << parsed.err;
  EXPECT_EQ(parsed.invocation->socket, "/run/purser/sidecar.sock");
  EXPECT_EQ(parsed.invocation->SharedVolume(), "/run/purser");
  EXPECT_EQ(parsed.invocation->rpc_timeout, milliseconds(5000));
  EXPECT_TRUE(parsed.invocation->HoldsUntilSignal());
  const auto& create = parsed.command<CreateCommand>();
  EXPECT_EQ(create.type, v1::QUEUE_PAIR_TYPE_RC);
  EXPECT_EQ(create.cap.max_send_wr(), 16u);
  EXPECT_EQ(create.cap.max_send_sge(), 1u);
  EXPECT_EQ(create.cap.max_recv_wr(), 16u);
  EXPECT_EQ(create.cap.max_recv_sge(), 1u);
  EXPECT_EQ(create.cap.max_inline_data(), 0u);
  EXPECT_EQ(create.count, 1u);
  EXPECT_FALSE(create.detach);
}

TEST(CommandLineTest, EveryOptionOfCreate) {
  const Parsed parsed = Parse({"--rpc-timeout",
                               "0.5",
                               "qp",
                               "create",
                               "--type",
                               "ud",
                               "--send-wr",
                               "1",
                               "--send-sge",
                               "2",
                               "--inline",
                               "3",
                               "--recv-wr",
                               "4",
                               "--recv-sge",
                               "5",
                               "--count",
                               "6",
                               "--device",
                               "d0",
                               "--name",
                               "me",
                               "--detach",
                               "-o",
                               "json",
                               "--socket",
                               "/s/x.sock",
                               "--shared-volume",
                               "/v"});
  ASSERT_TRUE(parsed.invocation.has_value()) << parsed.err;
  EXPECT_EQ(parsed.invocation->socket, "/s/x.sock");
  EXPECT_EQ(parsed.invocation->SharedVolume(), "/v");
  EXPECT_EQ(parsed.invocation->rpc_timeout, milliseconds(500));
  EXPECT_FALSE(parsed.invocation->HoldsUntilSignal());
  const auto& create = parsed.command<CreateCommand>();
  EXPECT_EQ(create.type, v1::QUEUE_PAIR_TYPE_UD);
  EXPECT_EQ(create.cap.max_send_wr(), 1u);
  EXPECT_EQ(create.cap.max_send_sge(), 2u);
  EXPECT_EQ(create.cap.max_inline_data(), 3u);
  EXPECT_EQ(create.cap.max_recv_wr(), 4u);
  EXPECT_EQ(create.cap.max_recv_sge(), 5u);
  EXPECT_EQ(create.count, 6u);
  EXPECT_EQ(create.device, "d0");
  EXPECT_EQ(create.name, "me");
  EXPECT_TRUE(create.detach);
  EXPECT_EQ(create.output, Output::kJson);
}

TEST(CommandLineTest, TheSocketComesFromTheEnvironmentUnlessGiven) {
  setenv("PURSER_SOCKET", "/e/env.sock", 1);
  EXPECT_EQ(Parse({"budget"}).invocation->socket, "/e/env.sock");
  EXPECT_EQ(Parse({"budget", "--socket", "/f.sock"}).invocation->socket,
            "/f.sock");
  unsetenv("PURSER_SOCKET");
}

TEST(CommandLineTest, TheSharedVolumeOfASocketWithoutDirectoryIsHere) {
  EXPECT_EQ(Parse({"budget", "--socket", "s"}).invocation->SharedVolume(), ".");
}

TEST(CommandLineTest, ExtremesReachTheSidecarAsTheyAre) {
  const Parsed parsed =
      Parse({"qp", "create", "--send-wr", "4294967295", "--recv-wr", "0"});
  EXPECT_EQ(parsed.command<CreateCommand>().cap.max_send_wr(), 4294967295u);
  EXPECT_EQ(parsed.command<CreateCommand>().cap.max_recv_wr(), 0u);
}

TEST(CommandLineTest, OtherCommands) {
  EXPECT_EQ(Parse({"qp", "list", "-o", "json"}).command<ListCommand>().output,
            Output::kJson);
  EXPECT_EQ(
      Parse({"budget", "--output", "table"}).command<BudgetCommand>().output,
      Output::kTable);
  EXPECT_THAT(Parse({"qp", "destroy", "3", "18446744073709551615"})
                  .command<DestroyCommand>()
                  .ids,
              ElementsAre(3, UINT64_MAX));
  const Parsed fill = Parse({"qp", "fill", "--send-wr", "100", "--burst", "7"});
  EXPECT_EQ(fill.command<FillCommand>().cap.max_send_wr(), 100u);
  EXPECT_EQ(fill.command<FillCommand>().burst, 7u);
  EXPECT_FALSE(fill.invocation->HoldsUntilSignal());
}

TEST(CommandLineTest, PingBothSides) {
  EXPECT_EQ(
      Parse({"qp", "ping", "--listen", "0"}).command<PingCommand>().listen,
      "0");
  EXPECT_EQ(Parse({"qp", "ping", "--listen", "[::1]:7100"})
                .command<PingCommand>()
                .listen,
            "[::1]:7100");
  const Parsed parsed =
      Parse({"qp", "ping", "--connect", "host:7100", "--size", "8Ki",
             "--iterations", "3", "--bytes", "64Mi", "--chunk", "1Mi",
             "--timeout", "2.5", "--device", "d0"});
  const auto& ping = parsed.command<PingCommand>();
  EXPECT_EQ(ping.connect, "host:7100");
  EXPECT_EQ(ping.message_bytes, 8192u);
  EXPECT_EQ(ping.iterations, 3u);
  EXPECT_EQ(ping.stream_bytes, 64u << 20);
  EXPECT_EQ(ping.chunk_bytes, 1u << 20);
  EXPECT_EQ(ping.timeout, milliseconds(2500));
  EXPECT_EQ(ping.device, "d0");
}

TEST(CommandLineTest, HelpAndVersionAreNoErrors) {
  for (const std::vector<const char*>& arguments :
       std::vector<std::vector<const char*>>{
           {"--help"}, {"qp", "--help"}, {"qp", "create", "-h"}}) {
    const Parsed parsed = Parse(arguments);
    EXPECT_FALSE(parsed.invocation.has_value());
    EXPECT_EQ(parsed.exit_code, kOk);
    EXPECT_THAT(parsed.out, HasSubstr("Exit codes: 0 done"));
    EXPECT_THAT(parsed.err, IsEmpty());
  }
  EXPECT_THAT(Parse({"--version"}).out, HasSubstr("purser "));
}

struct Wrong {
  std::vector<const char*> arguments;
  const char* message;
};

class WrongUsageTest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongUsageTest, IsExitCode2AndSaysWhatIsWrong) {
  const Parsed parsed = Parse(GetParam().arguments);
  EXPECT_FALSE(parsed.invocation.has_value());
  EXPECT_EQ(parsed.exit_code, kUsage);
  EXPECT_THAT(parsed.err, HasSubstr(GetParam().message));
  EXPECT_THAT(parsed.out, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongUsageTest,
    testing::Values(
        Wrong{{}, "Usage: purser"}, Wrong{{"qp"}, "Usage: purser qp"},
        Wrong{{"qp", "crate"}, "crate"}, Wrong{{"bugdet"}, "bugdet"},
        Wrong{{"qp", "list", "--outptu", "json"}, "--outptu"},
        Wrong{{"qp", "list", "-o", "xml"}, "'xml' is none of table, json"},
        Wrong{{"qp", "create", "--type", "xrc"}, "'xrc' is none of rc, uc, ud"},
        Wrong{{"qp", "create", "--send-wr", "-1"}, "--send-wr"},
        Wrong{{"qp", "create", "--send-wr", "4294967296"}, "--send-wr"},
        Wrong{{"qp", "create", "--count", "0"}, "--count"},
        Wrong{{"qp", "create", "--send-wr"}, "--send-wr"},
        Wrong{{"qp", "destroy"}, "needs ids, or --all"},
        Wrong{{"qp", "destroy", "--all", "1"}, "excludes"},
        Wrong{{"qp", "destroy", "x"}, "x"},
        Wrong{{"qp", "fill", "--burst", "4097"}, "--burst"},
        Wrong{{"--rpc-timeout", "0", "budget"}, "--rpc-timeout"},
        Wrong{{"--wait", "-1", "budget"}, "--wait"},
        Wrong{{"qp", "ping"}, "--listen PORT or --connect HOST:PORT"},
        Wrong{{"qp", "ping", "--listen", "1", "--connect", "h:2"},
              "excludes --connect"},
        Wrong{{"qp", "ping", "--listen", "1", "--bytes", "1"},
              "--bytes requires --connect"},
        Wrong{{"qp", "ping", "--listen", "65536"}, "'65536' is no port"},
        Wrong{{"qp", "ping", "--connect", "h"}, "'h' is no HOST:PORT"},
        Wrong{{"qp", "ping", "--connect", "h:0"}, "'0' is no port"},
        Wrong{{"qp", "ping", "--connect", "::1:7"}, "brackets"},
        Wrong{{"qp", "ping", "--connect", "h:1", "--size", "0"}, "--size"},
        Wrong{{"qp", "ping", "--connect", "h:1", "--size", "17Mi"},
              "not within 1 and 16777216 bytes"},
        Wrong{{"qp", "ping", "--connect", "h:1", "--bytes", "64Q"}, "64Q"}));

}  // namespace
}  // namespace purser::cli
