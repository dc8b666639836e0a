// SPDX-License-Identifier: Apache-2.0
#include "rdma/uverbs_entry.h"

#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "base/status_macros.h"
#include "rdma/sysfs.h"

namespace purser::rdma {
namespace {

// 0: gone.
std::optional<uint64_t> Inode(const std::filesystem::path& path) {
  struct stat entry {};
  if (stat(path.c_str(), &entry) == 0) return entry.st_ino;
  if (errno == ENOENT || errno == ENOTDIR || errno == ENODEV) return 0;
  return std::nullopt;  // cannot be told
}

}  // namespace

absl::StatusOr<std::optional<UverbsEntry>> FindUverbsEntry(
    const std::filesystem::path& sysfs_root, const std::string& device) {
  const std::filesystem::path root = sysfs_root / "class" / "infiniband_verbs";
  const auto names = ListDirectory(root);
  if (IsGone(names.status())) return std::nullopt;
  PURSER_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    const absl::StatusOr<std::string> ibdev =
        ReadAttribute(root / name / "ibdev");
    if (!ibdev.ok() || *ibdev != device) continue;
    const uint64_t inode = Inode(root / name).value_or(0);
    if (inode != 0) return UverbsEntry{root / name, inode};
  }
  return std::nullopt;
}

bool IsThere(const UverbsEntry& entry) {
  return Inode(entry.path).value_or(entry.inode) == entry.inode;
}

}  // namespace purser::rdma
