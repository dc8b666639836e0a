// SPDX-License-Identifier: Apache-2.0
//
// Processes as /proc shows them, in a file tree: what the node view reads of
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spdlog/fmt/fmt.h"
#include "tests/fakes/file_tree.h"

namespace purser::fakes {

struct FakeRing {
  std::string uverbs = "uverbs0";
  uint64_t bytes = 0;
  uint64_t offset = 0;
  uint64_t start = 0;  // 0: anywhere
};

class FakeProc {
 public:
  // Below `root`, "proc" unless said otherwise.
  explicit FakeProc(FileTree& tree, std::string root = "proc")
      : tree_(tree), root_(std::move(root)) {}

  // `cgroup` is the text of /proc/PID/cgroup. A thread has its process's pid as
  // `tgid`.
  void AddProcess(int pid, const std::string& name, const std::string& cgroup,
                  int tgid = 0) {
    Write(pid, "status",
          fmt::format("Name:\t{}\nUmask:\t0022\nState:\tS (sleeping)\n"
                      "Tgid:\t{}\nNgid:\t0\nPid:\t{}\n",
                      name, tgid == 0 ? pid : tgid, pid));
    Write(pid, "cgroup", cgroup);
    SetRings(pid, {});
  }
  void SetRings(int pid, const std::vector<FakeRing>& rings) {
    std::string maps =
        "55d0c0e00000-55d0c0e02000 r--p 00000000 08:01 393   /usr/bin/app\n";
    uint64_t address = 0x7f0000000000;
    for (const FakeRing& ring : rings) {
      const uint64_t start = ring.start == 0 ? address : ring.start;
      maps +=
          fmt::format("{:x}-{:x} rw-s {:08x} 00:06 211    /dev/infiniband/{}\n",
                      start, start + ring.bytes, ring.offset, ring.uverbs);
      address += ring.bytes + 4096;
    }
    maps += "7ffc1f1e0000-7ffc1f201000 rw-p 00000000 00:00 0   [stack]\n";
    Write(pid, "maps", maps);
  }
  void RemoveProcess(int pid) {
    tree_.Remove(fmt::format("{}/{}", root_, pid));
  }
  // In KiB.
  void SetMemory(uint64_t total) {
    tree_.Write(root_ + "/meminfo",
                fmt::format("MemTotal: {} kB\nMemAvailable: 1 kB\n", total));
  }
  // Areas of rxe_queue_init, in bytes without their guard page.
  void SetVmallocinfo(const std::vector<uint64_t>& areas) {
    std::string text =
        "0xffffc90000000000-0xffffc90000005000   20480 "
        "gen_pool_add_owner+0x42/0xb0 pages=4 vmalloc N0=4\n";
    for (const uint64_t area : areas)
      text += fmt::format(
          "0x0000000000000000-0x0000000000000000 {:>7} "
          "rxe_queue_init+0x9a/0x150 [rdma_rxe] pages={} vmalloc N0={}\n",
          area + 4096, area / 4096, area / 4096);
    tree_.Write(root_ + "/vmallocinfo", text);
  }
  std::string root() const { return tree_.path(root_); }

 private:
  void Write(int pid, const char* file, const std::string& text) {
    tree_.Write(fmt::format("{}/{}/{}", root_, pid, file), text);
  }

  FileTree& tree_;
  const std::string root_;
};

}  // namespace purser::fakes
