// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup_usage.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/file_tree.h"

namespace purser::base {
namespace {

using testing::HasSubstr;

constexpr char kStall[] =
    "some avg10=12.50 avg60=3.00 avg300=1.00 total=12345\n"
    "full avg10=4.25 avg60=1.00 avg300=0.50 total=2345\n";

class CgroupUsageTest : public testing::Test {
 protected:
  CgroupMemory Of(int version, uint64_t current,
                  std::optional<uint64_t> max = std::nullopt) {
    tree_.Directory("cgroup");
    return {.version = version,
            .path = tree_.path("cgroup"),
            .current_bytes = current,
            .max_bytes = max,
            .max_origin = max ? tree_.path("cgroup/memory.max") : ""};
  }
  void Write(const std::string& file, std::string_view text) {
    tree_.Write("cgroup/" + file, text);
  }
  fakes::FileTree tree_;
};

TEST_F(CgroupUsageTest, Version2) {
  Write("memory.stat", "anon 5\ninactive_file 300\nactive_file 7\n");
  Write("memory.high", "max\n");
  Write("memory.events", "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\n");
  Write("memory.pressure", kStall);
  const auto usage = ReadCgroupUsage(Of(2, 1000, 4096));
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(usage->working_set_bytes, 700u);
  EXPECT_EQ(usage->limit_bytes, 4096u);
  EXPECT_EQ(usage->limit_origin, tree_.path("cgroup/memory.max"));
  EXPECT_EQ(usage->limit_hits, 5u);
  EXPECT_EQ(usage->out_of_memory, 9u);
  ASSERT_TRUE(usage->stall.has_value());
  EXPECT_EQ(usage->stall->some_avg10, 12.5);
  EXPECT_EQ(usage->stall->full_avg10, 4.25);
}

TEST_F(CgroupUsageTest, TheSmallerOfMaxAndHighIsTheLimit) {
  Write("memory.high", "2048\n");
  EXPECT_EQ(ReadCgroupUsage(Of(2, 1000, 4096))->limit_bytes, 2048u);
  EXPECT_EQ(ReadCgroupUsage(Of(2, 1000, 4096))->limit_origin,
            tree_.path("cgroup/memory.high"));
  EXPECT_EQ(ReadCgroupUsage(Of(2, 1000, 1024))->limit_bytes, 1024u);
  EXPECT_EQ(ReadCgroupUsage(Of(2, 1000))->limit_bytes, 2048u);
}

// As a cgroup below the container's own sees it.
TEST_F(CgroupUsageTest, AnAncestorsLimitIsMetByWhatTheAncestorHas) {
  Write("memory.current", "4000\n");
  Write("memory.stat", "inactive_file 500\n");
  CgroupMemory memory = Of(2, 10, 4096);
  memory.path = tree_.path("cgroup/child");
  const auto usage = ReadCgroupUsage(memory);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(usage->working_set_bytes, 3500u);
  EXPECT_EQ(usage->limit_bytes, 4096u);
}

TEST_F(CgroupUsageTest, Version1) {
  Write("memory.stat", "inactive_file 1\ntotal_inactive_file 400\n");
  Write("memory.failcnt", "7\n");
  Write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  const auto usage = ReadCgroupUsage(Of(1, 1000));
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(usage->working_set_bytes, 600u);
  EXPECT_FALSE(usage->limit_bytes.has_value());
  EXPECT_EQ(usage->limit_hits, 7u);
  EXPECT_EQ(usage->out_of_memory, 2u);
  EXPECT_FALSE(usage->stall.has_value());
}

TEST_F(CgroupUsageTest, WhatAKernelDoesNotTellCountsAsNothing) {
  const auto usage = ReadCgroupUsage(Of(2, 1000));
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(usage->working_set_bytes, 1000u);
  EXPECT_EQ(usage->limit_hits, 0u);
  // More is inactive than is charged, for a moment.
  Write("memory.stat", "inactive_file 3000\n");
  EXPECT_EQ(ReadCgroupUsage(Of(2, 1000))->working_set_bytes, 0u);
}

TEST_F(CgroupUsageTest, GarbageIsNamedWithItsFile) {
  const struct {
    const char *file, *text;
  } kCases[] = {{"memory.stat", "inactive_file many\n"},
                {"memory.high", "-1\n"},
                {"memory.events", "high 2x\n"},
                {"memory.events", "oom_kill -4\n"}};
  for (const auto& [file, text] : kCases) {
    Write(file, text);
    const auto usage = ReadCgroupUsage(Of(2, 1000));
    EXPECT_THAT(std::string(usage.status().message()),
                HasSubstr(tree_.path(std::string("cgroup/") + file)));
    Write(file, "");
  }
  Write("memory.failcnt", "x");
  EXPECT_FALSE(ReadCgroupUsage(Of(1, 1000)).ok());
}

TEST_F(CgroupUsageTest, Stall) {
  EXPECT_TRUE(absl::IsNotFound(
      ReadMemoryStall(tree_.path("pressure/memory")).status()));
  tree_.Write("pressure/memory", "");
  EXPECT_TRUE(absl::IsUnavailable(
      ReadMemoryStall(tree_.path("pressure/memory")).status()));
  for (const char* text : {"some avg10=x\nfull avg10=0\n", "some avg10=1\n",
                           "some\nfull avg10=0.00\n", "none\n"}) {
    tree_.Write("pressure/memory", text);
    EXPECT_TRUE(absl::IsInternal(
        ReadMemoryStall(tree_.path("pressure/memory")).status()))
        << text;
  }
  tree_.Write("pressure/memory", kStall);
  EXPECT_EQ(ReadMemoryStall(tree_.path("pressure/memory"))->full_avg10, 4.25);
}

}  // namespace
}  // namespace purser::base
