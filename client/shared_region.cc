// SPDX-License-Identifier: Apache-2.0
#include "client/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::client {
namespace {

constexpr char kNameStart[] = "region-";
// The sidecar may run as another user: the volume's group (fsGroup) joins them.
constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP;

absl::Status Failed(int error_number, const char* what,
                    const std::string& path) {
  return absl::ErrnoToStatus(error_number, fmt::format("{} {}", what, path));
}

absl::Status Allocate(int fd, size_t bytes, const std::string& path) {
  if (fchmod(fd, kMode) != 0) return Failed(errno, "fchmod", path);
  const int error_number = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (error_number == ENOSPC)
    return absl::ResourceExhaustedError(fmt::format(
        "the shared volume has no room for {} bytes at {}: raise its sizeLimit",
        bytes, path));
  if (error_number != 0) return Failed(error_number, "posix_fallocate", path);
  return absl::OkStatus();
}

}  // namespace

SharedRegion::SharedRegion(Client& client, std::byte* data, size_t size,
                           v1::RegisterMemoryResponse registration)
    : client_(&client),
      data_(data),
      size_(size),
      registration_(std::move(registration)) {}

absl::StatusOr<SharedRegion> SharedRegion::Create(Client& client,
                                                  const std::string& shared_dir,
                                                  size_t bytes, uint32_t access,
                                                  const std::string& device) {
  if (bytes == 0)
    return absl::InvalidArgumentError("a shared region needs at least 1 byte");
  std::string path = fmt::format("{}/{}XXXXXX", shared_dir, kNameStart);
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return Failed(errno, "create", path);
  absl::Cleanup remove = [&] {
    unlink(path.c_str());
    close(fd);
  };
  PURSER_RETURN_IF_ERROR(Allocate(fd, bytes, path));
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return Failed(errno, "mmap", path);
  absl::Cleanup unmap = [&] { munmap(data, bytes); };
  PURSER_ASSIGN_OR_RETURN(
      v1::RegisterMemoryResponse registration,
      client.RegisterMemory(path.substr(shared_dir.size() + 1), 0, bytes,
                            access, device));
  std::move(unmap).Cancel();
  return SharedRegion(client, static_cast<std::byte*>(data), bytes,
                      std::move(registration));
}

SharedRegion::SharedRegion(SharedRegion&& other) noexcept
    : client_(std::exchange(other.client_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      registration_(std::move(other.registration_)) {}

SharedRegion& SharedRegion::operator=(SharedRegion&& other) noexcept {
  if (this == &other) return *this;
  Release();
  client_ = std::exchange(other.client_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  registration_ = std::move(other.registration_);
  return *this;
}

SharedRegion::~SharedRegion() { Release(); }

void SharedRegion::Release() {
  Client* client = std::exchange(client_, nullptr);
  if (client == nullptr) return;
  // Whatever fails here, the end of the Attach stream mends.
  (void)client->DeregisterMemory(registration_.region_id());
  munmap(data_, size_);
}

v1::Sge SharedRegion::Slice(uint64_t offset, uint32_t length) const {
  v1::Sge sge;
  sge.set_region_id(registration_.region_id());
  sge.set_offset(offset);
  sge.set_length(length);
  return sge;
}

}  // namespace purser::client
