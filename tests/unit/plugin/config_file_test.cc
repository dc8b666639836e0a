// SPDX-License-Identifier: Apache-2.0
#include "plugin/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/fakes/file_tree.h"

namespace purser::plugin {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string Pool(const std::string& name) {
  return "version: v1\nresources: {pools: [{resourceName: " + name + "}]}\n";
}

class ConfigFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<ConfigFile> Open(const std::string& path,
                                   ConfigFileIntervals intervals = {
                                       .settle = 0ms}) {
    Flags flags;
    flags.config = tree_.path(path);
    flags.metrics_address = "127.0.0.1:1";
    absl::StatusOr<std::unique_ptr<ConfigFile>> file =
        ConfigFile::Open(flags, intervals);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  // Waits for the event, as App does; what it shows is believed when it is read
  // again.
  static std::optional<absl::StatusOr<Config>> Next(ConfigFile& file) {
    AwaitEvent(file);
    EXPECT_EQ(PoolOf(file.TakeChange()), "");
    return file.TakeChange(/*anyway=*/true);
  }
  static void AwaitEvent(const ConfigFile& file) {
    pollfd waited{file.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&waited, 1, 60'000), 1);
  }
  // "rdma/a", or what is wrong, or "" for no change.
  static std::string PoolOf(const std::optional<absl::StatusOr<Config>>& got) {
    if (!got) return "";
    if (!got->ok()) return std::string(got->status().message());
    EXPECT_EQ((*got)->metrics_address, "127.0.0.1:1");
    return (*got)->pools[0].full_name();
  }

  fakes::FileTree tree_;
};

TEST_F(ConfigFileTest, WithoutAFileTheDefaultsHoldForEver) {
  const auto file = ConfigFile::Open(Flags{.metrics_address = ":1"});
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->first().metrics_address, ":1");
  EXPECT_EQ((*file)->fd(), -1);
  EXPECT_EQ((*file)->next(), ConfigFile::TimePoint::max());
  EXPECT_FALSE((*file)->TakeChange(/*anyway=*/true));
}

TEST_F(ConfigFileTest, ABadFileIsToldAtTheStart) {
  tree_.Write("c.yaml", "version: v1\nx: 1\n");
  Flags flags;
  flags.config = tree_.path("c.yaml");
  EXPECT_THAT(std::string(ConfigFile::Open(flags).status().message()),
              HasSubstr("c.yaml:2:1: x: unknown key"));
  flags.config = tree_.path("none.yaml");
  EXPECT_TRUE(absl::IsNotFound(ConfigFile::Open(flags).status()));
  flags.config = "";
  flags.kubelet_root_dir = "relative";
  EXPECT_TRUE(absl::IsInvalidArgument(ConfigFile::Open(flags).status()));
}

TEST_F(ConfigFileTest, APipeInItsPlaceIsRefusedNotWaitedFor) {
  tree_.Write("c.yaml", Pool("a"));
  const auto file = Open("c.yaml");
  ASSERT_NE(file, nullptr);
  tree_.Remove("c.yaml");
  ASSERT_EQ(mkfifo(tree_.path("c.yaml").c_str(), 0644), 0);
  EXPECT_THAT(PoolOf(Next(*file)), HasSubstr("name a regular file"));
  Flags flags;
  flags.config = tree_.path("c.yaml");
  EXPECT_TRUE(absl::IsInvalidArgument(ConfigFile::Open(flags).status()));
}

TEST_F(ConfigFileTest, EditedInPlace) {
  tree_.Write("c.yaml", Pool("a"));
  const auto file = Open("c.yaml");
  EXPECT_EQ(file->first().pools[0].full_name(), "rdma/a");
  EXPECT_EQ(PoolOf(file->TakeChange()), "");
  tree_.Write("c.yaml", Pool("b"));
  EXPECT_EQ(PoolOf(Next(*file)), "rdma/b");
  // Written anew with the same text: an event, and no change.
  tree_.Write("c.yaml", Pool("b"));
  EXPECT_EQ(PoolOf(Next(*file)), "");
}

TEST_F(ConfigFileTest, ReplacedByAnotherFile) {
  tree_.Write("c.yaml", Pool("a"));
  const auto file = Open("c.yaml");
  tree_.Write("new", Pool("b"));
  std::filesystem::rename(tree_.path("new"), tree_.path("c.yaml"));
  EXPECT_EQ(PoolOf(Next(*file)), "rdma/b");
}

// As the kubelet does: a new directory, and a link to it that is renamed.
TEST_F(ConfigFileTest, AConfigMapIsSwapped) {
  tree_.Write("cm/..2026_1/config.yaml", Pool("a"));
  tree_.Link("cm/..data", "..2026_1");
  tree_.Link("cm/config.yaml", "..data/config.yaml");
  const auto file = Open("cm/config.yaml");
  for (const char* name : {"b", "c", "d"}) {
    const std::string directory = std::string("cm/..2026_") + name;
    tree_.Write(directory + "/config.yaml", Pool(name));
    tree_.Link("cm/..data_tmp", "..2026_" + std::string(name));
    std::filesystem::rename(tree_.path("cm/..data_tmp"),
                            tree_.path("cm/..data"));
    EXPECT_EQ(PoolOf(Next(*file)), std::string("rdma/") + name);
  }
}

TEST_F(ConfigFileTest, ABadTextIsToldOnceAndAGoodOneAgain) {
  tree_.Write("c.yaml", Pool("a"));
  const auto file = Open("c.yaml");
  tree_.Write("c.yaml", "version: v2\n");
  EXPECT_THAT(PoolOf(Next(*file)), HasSubstr("c.yaml:1:10: version"));
  EXPECT_EQ(PoolOf(file->TakeChange(/*anyway=*/true)), "");
  tree_.Write("c.yaml", Pool("a"));
  EXPECT_EQ(PoolOf(Next(*file)), "rdma/a");
}

TEST_F(ConfigFileTest, AFileThatIsGoneIsToldOnceAndMayComeBack) {
  tree_.Write("c.yaml", Pool("a"));
  const auto file = Open("c.yaml");
  tree_.Remove("c.yaml");
  EXPECT_THAT(PoolOf(Next(*file)), HasSubstr("c.yaml"));
  EXPECT_EQ(PoolOf(file->TakeChange(/*anyway=*/true)), "");
  tree_.Write("c.yaml", Pool("b"));
  EXPECT_EQ(PoolOf(Next(*file)), "rdma/b");
}

// A change of a link's target in another directory is no event.
TEST_F(ConfigFileTest, WhatNoEventShowsIsFoundByTheClock) {
  tree_.Write("far/c.yaml", Pool("a"));
  tree_.Link("near/c.yaml", "../far/c.yaml");
  const auto patient = Open("near/c.yaml");
  const auto file = Open("near/c.yaml", {.check = 0ms, .settle = 0ms});
  tree_.Write("far/c.yaml", Pool("b"));
  EXPECT_EQ(PoolOf(patient->TakeChange()), "");
  EXPECT_EQ(PoolOf(file->TakeChange()), "");
  EXPECT_EQ(PoolOf(file->TakeChange()), "rdma/b");
  EXPECT_EQ(PoolOf(patient->TakeChange(/*anyway=*/true)), "");
  EXPECT_EQ(PoolOf(patient->TakeChange()), "rdma/b");
}

// Read twice with the same text, and that for a while.
TEST_F(ConfigFileTest, WhatIsStillChangingIsNotTaken) {
  tree_.Write("c.yaml", Pool("a"));
  const auto file = Open("c.yaml");
  for (const char* name : {"b", "c", "d"}) {
    tree_.Write("c.yaml", Pool(name));
    EXPECT_EQ(PoolOf(file->TakeChange(/*anyway=*/true)), "");
  }
  tree_.Remove("c.yaml");
  EXPECT_EQ(PoolOf(file->TakeChange(/*anyway=*/true)), "");
  // Back to what is in use: no change, and nothing to wait for.
  tree_.Write("c.yaml", Pool("a"));
  EXPECT_EQ(PoolOf(file->TakeChange(/*anyway=*/true)), "");
  EXPECT_EQ(PoolOf(file->TakeChange(/*anyway=*/true)), "");
  tree_.Write("c.yaml", Pool("d"));
  EXPECT_EQ(PoolOf(file->TakeChange(/*anyway=*/true)), "");
  EXPECT_EQ(PoolOf(file->TakeChange(/*anyway=*/true)), "rdma/d");
}

TEST_F(ConfigFileTest, AChangeIsTakenWhenItHasLasted) {
  tree_.Write("c.yaml", Pool("a"));
  const auto file = Open("c.yaml", {.settle = 1h});
  tree_.Write("c.yaml", Pool("b"));
  const ConfigFile::TimePoint before = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(PoolOf(file->TakeChange(/*anyway=*/true)), "");
  const auto soon = Open("c.yaml", {.settle = 5ms});
  tree_.Write("c.yaml", Pool("c"));
  EXPECT_EQ(PoolOf(soon->TakeChange()), "");
  EXPECT_LE(soon->next(), std::chrono::steady_clock::now() + 5ms);
  EXPECT_GT(file->next(), before + 5s);  // its own check, not the hour
}

// The kernel tells: however long its writer pauses.
TEST_F(ConfigFileTest, AFileThatIsOpenForWritingIsNotTaken) {
  tree_.Write("c.yaml", Pool("a"));
  const auto file = Open("c.yaml");
  std::ofstream writer(tree_.path("c.yaml"), std::ios::trunc);
  // Valid as it is, and not all of it.
  writer << Pool("half") << std::flush;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(PoolOf(file->TakeChange(/*anyway=*/true)), "");
  // Until the writer is done, nothing but its end or the clock is waited for.
  EXPECT_GT(file->next(), std::chrono::steady_clock::now() + 5s);
  writer << "logLevel: warn\n";
  writer.close();
  AwaitEvent(*file);
  EXPECT_EQ(PoolOf(file->TakeChange()), "");
  const auto config = file->TakeChange(/*anyway=*/true);
  ASSERT_TRUE(config && config->ok());
  EXPECT_EQ((*config)->log_level, base::LogLevel::kWarn);
}

}  // namespace
}  // namespace purser::plugin
