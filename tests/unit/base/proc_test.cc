// SPDX-License-Identifier: Apache-2.0
#include "base/proc.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/file_tree.h"

namespace purser::base {
namespace {

using testing::HasSubstr;

constexpr char kIpcLock[] = "0000000000004000";
constexpr char kAllCapabilities[] = "000001ffffffffff";
constexpr char kNoIpcLock[] = "00000000a80425fb";  // a container's usual set

class ProcTest : public testing::Test {
 protected:
  void Limits(const std::string& soft) {
    tree_.Write("self/limits",
                "Limit                     Soft Limit           Hard Limit"
                "           Units     \n"
                "Max cpu time              unlimited            unlimited"
                "            seconds   \n"
                "Max locked memory         " +
                    soft + "             unlimited            bytes     \n");
  }
  void Capabilities(const std::string& effective) {
    tree_.Write("self/status",
                "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t" + effective +
                    "\nCapBnd:\t0\n");
  }
  absl::StatusOr<MemlockLimit> Memlock() {
    return ProcReader(tree_.root()).Memlock();
  }
  absl::StatusOr<NodeMemory> Memory() {
    return ProcReader(tree_.root()).Memory();
  }

  fakes::FileTree tree_;
};

TEST_F(ProcTest, MemlockBindsUnlessUnlimitedOrPrivileged) {
  const struct {
    std::string soft, capabilities;
    std::optional<uint64_t> bytes;
    bool ipc_lock, binds;
  } kCases[] = {
      {"8388608", kNoIpcLock, 8388608, false, true},
      {"0", kNoIpcLock, 0, false, true},
      {"unlimited", kNoIpcLock, std::nullopt, false, false},
      {"65536", kIpcLock, 65536, true, false},
      {"65536", kAllCapabilities, 65536, true, false},
      {"unlimited", kIpcLock, std::nullopt, true, false},
  };
  for (const auto& c : kCases) {
    Limits(c.soft);
    Capabilities(c.capabilities);
    const absl::StatusOr<MemlockLimit> limit = Memlock();
    ASSERT_TRUE(limit.ok()) << limit.status();
    EXPECT_EQ(limit->soft_bytes, c.bytes);
    EXPECT_EQ(limit->ipc_lock, c.ipc_lock);
    EXPECT_EQ(limit->binds(), c.binds);
  }
}

TEST_F(ProcTest, CapabilityCountsInTheInitialUserNamespaceAlone) {
  Limits("65536");
  Capabilities(kAllCapabilities);
  const struct {
    std::string uid_map;
    bool ipc_lock;
  } kCases[] = {
      {"         0          0 4294967295\n", true},
      {"         0     100000      65536\n", false},
      {"         0       1000          1\n", false},
      {"         0 0 1\n 1 100000 65536\n", false},
      {"", false},  // not mapped yet
  };
  for (const auto& c : kCases) {
    tree_.Write("self/uid_map", c.uid_map);
    EXPECT_EQ(Memlock()->ipc_lock, c.ipc_lock) << c.uid_map;
  }
  tree_.Remove("self/uid_map");
  tree_.Directory("self/uid_map");
  EXPECT_THAT(std::string(Memlock().status().message()),
              HasSubstr(tree_.path("self/uid_map")));
}

TEST_F(ProcTest, GarbledMemlockNamesTheFile) {
  Capabilities(kNoIpcLock);
  for (const std::string soft : {"", "-1", "12k", "many"}) {
    Limits(soft);
    if (soft.empty()) tree_.Write("self/limits", "Max locked memory\n");
    const absl::Status status = Memlock().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(status.message(),
              tree_.path("self/limits") + ": \"Max locked memory\" is \"" +
                  soft + "\", not a number; mount the kernel's own /proc");
  }
  Limits("65536");
  Capabilities("lots");
  EXPECT_THAT(
      std::string(Memlock().status().message()),
      HasSubstr(tree_.path("self/status") + ": \"CapEff:\" is \"lots\""));
}

TEST_F(ProcTest, MissingMemlock) {
  Limits("65536");
  EXPECT_EQ(Memlock().status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Memlock().status().message()),
              HasSubstr(tree_.path("self/status")));
  tree_.Write("self/status", "Name:\tx\n");
  EXPECT_EQ(Memlock().status().message(),
            tree_.path("self/status") +
                " has no line \"CapEff:\"; mount the kernel's own /proc");
  tree_.Remove("self/limits");
  EXPECT_THAT(std::string(Memlock().status().message()),
              HasSubstr(tree_.path("self/limits")));
}

TEST_F(ProcTest, NodeMemory) {
  tree_.Write("meminfo",
              "MemTotal:        2526392 kB\nMemFree:          123456 kB\n"
              "MemAvailable:    1998340 kB\nHugePages_Total:       0\n");
  const absl::StatusOr<NodeMemory> memory = Memory();
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->total_bytes, 2526392u * 1024);
  EXPECT_EQ(memory->available_bytes, 1998340u * 1024);
}

TEST_F(ProcTest, NetdevsOfTheDefaultRoute) {
  EXPECT_THAT(ProcReader(tree_.root()).DefaultRouteNetdevs(),
              testing::IsEmpty());
  tree_.Write("net/route",
              "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\t"
              "Mask\t\tMTU\tWindow\tIRTT\n"
              "eth0\t00000000\t0102000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
              "tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n"
              "eth1\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
              "cut\t00000000\n");
  EXPECT_THAT(ProcReader(tree_.root()).DefaultRouteNetdevs(),
              testing::ElementsAre("eth0"));
}

TEST_F(ProcTest, HugePagesOfTheDefaultSize) {
  const ProcReader proc(tree_.root());
  tree_.Write("meminfo", "HugePages_Free: 12\nHugepagesize:  2048 kB\n");
  const auto pages = proc.FindHugePages();
  ASSERT_TRUE(pages.ok()) << pages.status();
  EXPECT_EQ(pages->page_bytes, 2u << 20);
  EXPECT_EQ(pages->free_pages, 12u);
  for (const char* garbled : {"HugePages_Free: 12\n", "Hugepagesize: 2048 kB\n",
                              "HugePages_Free: x\nHugepagesize: 2048 kB\n",
                              "HugePages_Free: 12\nHugepagesize: 0 kB\n"}) {
    tree_.Write("meminfo", garbled);
    EXPECT_TRUE(absl::IsInternal(proc.FindHugePages().status())) << garbled;
  }
}

TEST_F(ProcTest, GarbledNodeMemory) {
  EXPECT_EQ(Memory().status().code(), absl::StatusCode::kNotFound);
  tree_.Write("meminfo", "MemTotal: 1 kB\n");
  EXPECT_THAT(std::string(Memory().status().message()),
              HasSubstr("has no line \"MemAvailable:\""));
  tree_.Write("meminfo", "MemTotal: 1 kB\nMemAvailable: kB\n");
  EXPECT_THAT(std::string(Memory().status().message()),
              HasSubstr("\"MemAvailable:\" is \"kB\", not a number"));
  tree_.Write("meminfo", "MemTotal: 99999999999999999999 kB\n");
  EXPECT_EQ(Memory().status().code(), absl::StatusCode::kInternal);
  // 2^54 KiB is 2^64 bytes.
  tree_.Write("meminfo", "MemTotal: 18014398509481984 kB\n");
  EXPECT_EQ(Memory().status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace purser::base
