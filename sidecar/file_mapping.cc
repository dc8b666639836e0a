// SPDX-License-Identifier: Apache-2.0
#include "sidecar/file_mapping.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/status_macros.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

absl::Status OpenFailure(int error, const std::string& name) {
  switch (error) {
    case EXDEV:
    case ELOOP:
    case EAGAIN:
      return absl::InvalidArgumentError(
          fmt::format("path {} must name a file below the shared volume, "
                      "relative to it, without symbolic links or \"..\"",
                      name));
    case ENOSYS:
      return absl::UnimplementedError(
          "openat2 is missing: registering memory needs Linux 5.6 or later");
    default:
      return absl::ErrnoToStatus(
          error, fmt::format("open {} in the shared volume", name));
  }
}

// O_NONBLOCK and O_NOCTTY: whatever a client puts there, opening it neither
// waits nor has effects.
absl::StatusOr<base::FileDescriptor> OpenBeneath(
    const base::FileDescriptor& volume, const std::string& path) {
  open_how how{.flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                          RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
  const long fd =
      syscall(SYS_openat2, volume.get(), path.c_str(), &how, sizeof(how));
  if (fd < 0) return OpenFailure(errno, base::QuoteForMessage(path));
  return base::FileDescriptor(static_cast<int>(fd));
}

absl::Status CheckRange(const base::FileDescriptor& file,
                        const std::string& name, uint64_t offset,
                        uint64_t length) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0)
    return absl::ErrnoToStatus(errno, fmt::format("stat {}", name));
  if (!S_ISREG(status.st_mode))
    return absl::InvalidArgumentError(
        fmt::format("{} is not a regular file", name));
  const uint64_t size = static_cast<uint64_t>(status.st_size);
  if (offset > size || length > size - offset)
    return absl::OutOfRangeError(
        fmt::format("{} has {} bytes; offset {} + length {} is beyond its end "
                    "(ftruncate it to its size before registering)",
                    name, size, offset, length));
  // Pages that do not exist yet would be charged to this process.
  const uint64_t allocated = static_cast<uint64_t>(status.st_blocks) * 512;
  if (allocated >= size) return absl::OkStatus();
  // In a file that has holes the range may be between them. (What tmpfs has
  // allocated and nobody has written counts as a hole then.)
  const off_t hole = lseek(file.get(), static_cast<off_t>(offset), SEEK_HOLE);
  if (allocated >= length && hole >= 0 &&
      static_cast<uint64_t>(hole) >= offset + length)
    return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "{} has holes: {} bytes of its {} are allocated, offset {} + length {} "
      "are to be registered; allocate all of it first (posix_fallocate), so "
      "that its pages are charged to your container and not to the sidecar's",
      name, allocated, size, offset, length));
}

}  // namespace

absl::StatusOr<FileMapping> FileMapping::Map(const base::FileDescriptor& volume,
                                             const std::string& path,
                                             uint64_t offset, uint64_t length) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (length == 0)
    return absl::InvalidArgumentError("length 0: there is nothing to register");
  if (offset % page != 0)
    return absl::InvalidArgumentError(fmt::format(
        "offset {} is not a multiple of the page size {}", offset, page));
  if (path.find('\0') != std::string::npos)
    return absl::InvalidArgumentError("path contains a NUL byte");
  const std::string name = base::QuoteForMessage(path);
  PURSER_ASSIGN_OR_RETURN(const base::FileDescriptor file,
                          OpenBeneath(volume, path));
  PURSER_RETURN_IF_ERROR(CheckRange(file, name, offset, length));
  void* address = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED,
                       file.get(), static_cast<off_t>(offset));
  if (address == MAP_FAILED)
    return absl::ErrnoToStatus(errno, fmt::format("mmap {} offset {} length {}",
                                                  name, offset, length));
  return FileMapping(address, length);
}

FileMapping::FileMapping(FileMapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)),
      length_(std::exchange(other.length_, 0)) {}

FileMapping& FileMapping::operator=(FileMapping&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(length_, other.length_);
  return *this;
}

FileMapping::~FileMapping() {
  if (address_ != nullptr) munmap(address_, length_);
}

}  // namespace purser::sidecar
