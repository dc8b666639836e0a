// SPDX-License-Identifier: Apache-2.0
//
// A file tree under a temporary root, removed at the end: the fake for sysfs,
// cgroup, proc, dev and ConfigMap volumes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace purser::fakes {

class FileTree {
 public:
  FileTree() {
    // In memory where that is possible: a tree has hundreds of small files.
    std::error_code ignored;
    const std::filesystem::path parent =
        std::filesystem::is_directory("/dev/shm", ignored)
            ? "/dev/shm"
            : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "purser-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw std::runtime_error("mkdtemp " + pattern);
    root_ = pattern;
  }
  ~FileTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FileTree(const FileTree&) = delete;
  FileTree& operator=(const FileTree&) = delete;

  const std::filesystem::path& root() const { return root_; }
  std::string path(std::string_view relative) const {
    return (root_ / relative).string();
  }

  // Each makes the directories above it.
  void Write(std::string_view relative, std::string_view content) {
    std::filesystem::create_directories((root_ / relative).parent_path());
    std::ofstream(root_ / relative, std::ios::binary | std::ios::trunc)
        << content;
  }
  void Directory(std::string_view relative) {
    std::filesystem::create_directories(root_ / relative);
  }
  // Replaces an existing link. `target` is taken as it is: absolute, or
  // relative to the link's directory.
  void Link(std::string_view relative, std::string_view target) {
    std::filesystem::create_directories((root_ / relative).parent_path());
    std::filesystem::remove(root_ / relative);
    std::filesystem::create_symlink(target, root_ / relative);
  }
  void Remove(std::string_view relative) {
    std::filesystem::remove_all(root_ / relative);
  }

 private:
  std::filesystem::path root_;
};

}  // namespace purser::fakes
