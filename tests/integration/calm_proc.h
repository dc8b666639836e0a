// SPDX-License-Identifier: Apache-2.0
//
// A /proc and a memory cgroup for a sidecar under test: what it reads of the
// machine must not depend on how busy that is.
#pragma once

#include "tests/fakes/file_tree.h"

namespace purser::integration {

// Under proc/ and cgroup/ of the tree.
inline void WriteCalmProc(fakes::FileTree& tree) {
  tree.Write("proc/self/limits",
             "Limit                     Soft Limit           Hard Limit        "
             "   Units     \n"
             "Max locked memory         unlimited            unlimited         "
             "   bytes     \n");
  tree.Write("proc/self/status", "CapEff:\t0000000000000000\n");
  tree.Write("proc/self/cgroup", "0::/\n");
  tree.Write("proc/meminfo",
             "MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\n");
  tree.Write("cgroup/cgroup.controllers", "memory\n");
  tree.Write("cgroup/memory.current", "1048576\n");
  tree.Write("cgroup/memory.max", "max\n");
}

}  // namespace purser::integration
