// SPDX-License-Identifier: Apache-2.0
#include "node_view/reserved_memory.h"

#include <gtest/gtest.h>

#include "tests/fakes/file_tree.h"

namespace purser::node_view {
namespace {

constexpr uint64_t kNode = 4ull << 30;

TEST(ReservedMemoryTest, IsTheNodesLessThePodsLimit) {
  for (const char* file : {"kubepods/memory.max", "kubepods.slice/memory.max",
                           "kubelet/kubepods/memory.max",
                           "kubelet.slice/kubelet-kubepods.slice/memory.max",
                           "memory/kubepods/memory.limit_in_bytes",
                           "memory/kubepods.slice/memory.limit_in_bytes"}) {
    fakes::FileTree tree;
    tree.Write(file, "3221225472\n");
    const auto reserved = ReservedByPodsCgroup(tree.root(), kNode);
    ASSERT_TRUE(reserved.ok()) << file << " " << reserved.status();
    EXPECT_EQ(*reserved, 1ull << 30) << file;
    EXPECT_EQ(*ReservedByPodsCgroup(tree.root(), 1 << 20), 0u);
  }
}

TEST(ReservedMemoryTest, IsNotKnownWithoutALimit) {
  fakes::FileTree tree;
  EXPECT_TRUE(
      absl::IsNotFound(ReservedByPodsCgroup(tree.root(), kNode).status()));
  tree.Write("kubepods/memory.max", "max\n");
  EXPECT_TRUE(
      absl::IsNotFound(ReservedByPodsCgroup(tree.root(), kNode).status()));
  tree.Write("kubepods/memory.max", "lots\n");
  EXPECT_TRUE(
      absl::IsDataLoss(ReservedByPodsCgroup(tree.root(), kNode).status()));
}

}  // namespace
}  // namespace purser::node_view
