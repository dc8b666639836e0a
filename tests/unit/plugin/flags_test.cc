// SPDX-License-Identifier: Apache-2.0
#include "plugin/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace purser::plugin {
namespace {

using ::testing::HasSubstr;

ParsedFlags Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "purser-device-plugin");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseFlags(static_cast<int>(argv.size()), argv.data(), "1");
}

TEST(PluginFlags, AnEmptyPathIsRefusedAndStandsForNoDefault) {
  for (const char* flag :
       {"--config", "--check-config", "--sysfs-root", "--dev-root"}) {
    EXPECT_EQ(Parse({flag, ""}).exit_code, 2) << flag;
    EXPECT_EQ(Parse({flag, "/x"}).exit_code, std::nullopt) << flag;
  }
  EXPECT_EQ(Parse({}).exit_code, std::nullopt);
}

TEST(PluginFlags, AMetricsAddressThatCannotBeServedIsRefused) {
  for (const char* bad : {"", "5", "foo", "foo:1", ":65536"}) {
    const absl::StatusOr<Config> config =
        ApplyFlags(Flags{.metrics_address = bad}, Config());
    EXPECT_TRUE(absl::IsInvalidArgument(config.status())) << bad;
    EXPECT_THAT(std::string(config.status().message()),
                HasSubstr("--metrics-address: address"));
  }
  EXPECT_TRUE(ApplyFlags(Flags{.metrics_address = "[::1]:0"}, Config()).ok());
}

}  // namespace
}  // namespace purser::plugin
