// SPDX-License-Identifier: Apache-2.0
#include "plugin/file_id.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "tests/fakes/file_tree.h"

namespace purser::plugin {
namespace {

TEST(FileId, TellsIncarnationsApartAndNothingElse) {
  fakes::FileTree tree;
  const std::string path = tree.path("kubelet.sock");
  EXPECT_EQ(IdentifyFile(path).value(), std::nullopt);
  EXPECT_EQ(IdentifyFile(tree.path("none/kubelet.sock")).value(), std::nullopt);
  tree.Write("kubelet.sock", "");
  const FileId first = IdentifyFile(path).value().value();
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  std::filesystem::create_hard_link(path, tree.path("other"));
  EXPECT_EQ(IdentifyFile(path).value(), first);
  // Made anew with the same inode, as file systems like to do.
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_NE(IdentifyFile(path).value(), first);
}

TEST(FileId, AFailureIsNotAbsence) {
  fakes::FileTree tree;
  tree.Link("loop", "loop");
  EXPECT_FALSE(IdentifyFile(tree.path("loop/kubelet.sock")).ok());
}

}  // namespace
}  // namespace purser::plugin
