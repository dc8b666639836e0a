// SPDX-License-Identifier: Apache-2.0
#include "rdma/sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

#include "rdma/verbs.h"

namespace purser::rdma {

absl::StatusOr<std::string> ReadAttribute(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return StatusOf(errno, "open " + path.string());
  char buffer[4096];
  ssize_t length;
  do {
    length = read(fd, buffer, sizeof(buffer));
  } while (length < 0 && errno == EINTR);
  const int error = errno;
  close(fd);
  if (length < 0) return StatusOf(error, "read " + path.string());
  std::string text(buffer, static_cast<size_t>(length));
  text.erase(text.find_last_not_of(" \t\n") + 1);
  return text;
}

absl::StatusOr<std::vector<std::string>> ListDirectory(
    const std::filesystem::path& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()),
                                                      closedir);
  if (directory == nullptr) return StatusOf(errno, "list " + path.string());
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  if (errno != 0) return StatusOf(errno, "list " + path.string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string OptionalAttribute(const std::filesystem::path& path) {
  return ReadAttribute(path).value_or("");
}

std::vector<std::string> OptionalDirectory(const std::filesystem::path& path) {
  return ListDirectory(path).value_or(std::vector<std::string>{});
}

int64_t LeadingNumber(std::string_view text, int64_t otherwise) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  int64_t value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

std::string LinkName(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path target =
      std::filesystem::read_symlink(path, error);
  return error ? "" : target.filename().string();
}

bool IsGone(const absl::Status& status) {
  const int error = ErrnoOf(status);
  return error == ENOENT || error == ENODEV || error == ENXIO;
}

}  // namespace purser::rdma
