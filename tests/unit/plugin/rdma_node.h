// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "tests/fakes/fake_sysfs.h"
#include "tests/fakes/file_tree.h"

namespace purser::plugin {

// A node as the plugin sees it: sysfs, /dev, /proc (3 GiB of memory) and the
// kubelet's root, in a file tree. Devices come and go as files do.
class RdmaNode {
 public:
  RdmaNode() {
    tree_.Write("proc/meminfo",
                "MemTotal:        3145728 kB\nMemFree:   1000000 kB\n"
                "MemAvailable:    2000000 kB\n");
    sysfs_.AddRdmaCm();
  }

  void AddRxe(const std::string& name) {
    sysfs_.AddDevice(fakes::SysfsRxe(name, "eth0"));
  }
  // Makes every scan fail, until RepairSysfs().
  void BreakSysfs() {
    std::filesystem::rename(tree_.path("sys/class"), tree_.path("sys/hidden"));
    tree_.Write("sys/class/infiniband", "a file, no directory");
  }
  void RepairSysfs() {
    tree_.Remove("sys/class");
    std::filesystem::rename(tree_.path("sys/hidden"), tree_.path("sys/class"));
  }

  fakes::FakeSysfs& sysfs() { return sysfs_; }
  fakes::FileTree& tree() { return tree_; }
  std::string sysfs_root() const { return sysfs_.sysfs_root().string(); }
  std::string dev_root() const { return sysfs_.dev_root().string(); }
  std::string proc_root() const { return tree_.path("proc"); }
  std::string kubelet_root() const { return tree_.path("kubelet"); }

 private:
  fakes::FileTree tree_;
  fakes::FakeSysfs sysfs_{tree_};
};

}  // namespace purser::plugin
