// SPDX-License-Identifier: Apache-2.0
//
// Memory that clients registered: ranges of files in the shared volume. A
// region belongs to one client and ends with it. A post in flight keeps its
// regions registered; work that the device has not carried out when a region
// ends fails there (LOC_PROT_ERR), as in verbs. One that the device does not
// deregister stays mapped and is tried again. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "sidecar/clients.h"
#include "sidecar/counters.h"
#include "sidecar/device.h"
#include "sidecar/file_mapping.h"
#include "sidecar/undestroyed.h"

namespace purser::sidecar {

struct Region {
  uint64_t id = 0;
  std::string owner;  // client_id
  std::shared_ptr<OpenedDevice> device;
  FileMapping mapping;
  rdma::MemoryRegion mr;
};

// The verbs entry of `length` bytes from the region's start + `offset`.
// OutOfRange unless all of it lies in the region.
absl::StatusOr<ibv_sge> SgeOf(const Region& region, uint64_t offset,
                              uint32_t length);

class Regions {
 public:
  struct Request {
    std::string client_id;
    std::string path;
    uint64_t offset = 0, length = 0;
    uint32_t access = 0;  // ibv_access_flags
  };
  // FailedPrecondition when there is no such directory.
  static absl::StatusOr<std::unique_ptr<Regions>> Create(
      const std::string& shared_volume, const Clients& clients,
      Undestroyed& undestroyed, Counters& counters, std::string proc_root);

  absl::StatusOr<std::shared_ptr<const Region>> Register(
      const Device& device, const Request& request);
  absl::Status Deregister(const std::string& client_id, uint64_t region_id);
  // NotFound, PermissionDenied (another client's).
  absl::StatusOr<std::shared_ptr<const Region>> Find(
      const std::string& client_id, uint64_t region_id) const;

  // Ends what a client that was removed from Clients held.
  void EndClient(const std::string& client_id);
  // Ends all of a lost device; how many.
  size_t EndDevice(const Device& device);

  struct Held {
    uint32_t count = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string, Held> ByClient() const;  // by client_id
  uint64_t count() const;
  uint64_t bytes() const;

 private:
  Regions(base::FileDescriptor volume, const Clients& clients,
          Undestroyed& undestroyed, Counters& counters, std::string proc_root);
  // Where the last who holds it lets go.
  static void End(Region* region, Undestroyed& undestroyed);
  absl::Status RegistrationFailure(const absl::Status& status) const;
  template <typename Ends>
  size_t EndWhere(Ends ends);

  const base::FileDescriptor volume_;
  const Clients& clients_;
  Undestroyed& undestroyed_;
  Counters& counters_;
  const std::string proc_root_;
  mutable std::mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, std::shared_ptr<const Region>> regions_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::sidecar
