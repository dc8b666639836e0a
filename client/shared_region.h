// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace purser::client {

// Memory that this process and the sidecar share and that the device reads and
// writes: a file in the shared volume, mapped here, registered there. The file
// loses its name as soon as the sidecar has mapped it, so that nothing is left
// behind however the process ends. Its pages are real from the start (a full
// volume is an error here, not a SIGBUS later), zero, and charged to this
// container. Must not outlive its Client. Moving keeps data() where it is.
class SharedRegion {
 public:
  // `shared_dir`: where the shared volume is mounted in this container.
  // `bytes`: at least 1; the mapping is rounded up to pages. NOT_FOUND and
  // PERMISSION_DENIED name the directory, RESOURCE_EXHAUSTED the volume that is
  // full.
  static absl::StatusOr<SharedRegion> Create(
      Client& client, const std::string& shared_dir, size_t bytes,
      uint32_t access = kLocalWrite | kRemoteWrite | kRemoteRead,
      const std::string& device = {});
  SharedRegion(SharedRegion&& other) noexcept;
  SharedRegion& operator=(SharedRegion&& other) noexcept;
  ~SharedRegion();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // For the peer's RDMA WRITE and READ: name of the first byte, and the key.
  uint64_t remote_addr() const { return registration_.remote_addr(); }
  uint32_t rkey() const { return registration_.rkey(); }
  // For work requests. `offset` in bytes from data().
  v1::Sge Slice(uint64_t offset, uint32_t length) const;

 private:
  SharedRegion(Client& client, std::byte* data, size_t size,
               v1::RegisterMemoryResponse registration);
  void Release();

  Client* client_;  // nullptr once moved from
  std::byte* data_;
  size_t size_;
  v1::RegisterMemoryResponse registration_;
};

}  // namespace purser::client
