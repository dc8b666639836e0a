// SPDX-License-Identifier: Apache-2.0
#include "sidecar/regions.h"

#include <fcntl.h>

#include <cerrno>
#include <iterator>
#include <utility>

#include "base/quantity.h"
#include "base/status_macros.h"
#include "sidecar/memlock_hint.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

// Each is a mapping, of which a process has 65,530 (vm.max_map_count).
constexpr uint64_t kMaxRegions = 16384;

absl::Status CheckAccess(uint32_t access) {
  constexpr uint32_t kWritesByPeer =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  constexpr uint32_t kKnown =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | kWritesByPeer;
  if ((access & ~kKnown) != 0)
    return absl::InvalidArgumentError(fmt::format(
        "access {:#x}: only LOCAL_WRITE (1), REMOTE_WRITE (2), REMOTE_READ (4) "
        "and REMOTE_ATOMIC (8) are taken",
        access));
  if ((access & kWritesByPeer) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0)
    return absl::InvalidArgumentError(
        fmt::format("access {:#x}: REMOTE_WRITE and REMOTE_ATOMIC need "
                    "LOCAL_WRITE (1) as well (man ibv_reg_mr)",
                    access));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ibv_sge> SgeOf(const Region& region, uint64_t offset,
                              uint32_t length) {
  const uint64_t size = region.mapping.length();
  if (offset > size || length > size - offset)
    return absl::OutOfRangeError(
        fmt::format("offset {} + length {} is beyond the {} bytes of region {}",
                    offset, length, size, region.id));
  return ibv_sge{
      .addr = reinterpret_cast<uintptr_t>(region.mapping.address()) + offset,
      .length = length,
      .lkey = region.mr->lkey};
}

Regions::Regions(base::FileDescriptor volume, const Clients& clients,
                 Undestroyed& undestroyed, Counters& counters,
                 std::string proc_root)
    : volume_(std::move(volume)),
      clients_(clients),
      undestroyed_(undestroyed),
      counters_(counters),
      proc_root_(std::move(proc_root)) {}

absl::StatusOr<std::unique_ptr<Regions>> Regions::Create(
    const std::string& shared_volume, const Clients& clients,
    Undestroyed& undestroyed, Counters& counters, std::string proc_root) {
  base::FileDescriptor volume(
      open(shared_volume.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!volume.valid()) {
    const int error = errno;
    return absl::FailedPreconditionError(fmt::format(
        "shared volume {}: {}; mount the volume that the pod's containers "
        "share (emptyDir, medium: Memory) there",
        shared_volume, rdma::ErrnoName(error)));
  }
  return std::unique_ptr<Regions>(new Regions(
      std::move(volume), clients, undestroyed, counters, std::move(proc_root)));
}

void Regions::End(Region* region, Undestroyed& undestroyed) {
  const std::shared_ptr<Region> ended(region);
  const absl::Status status = rdma::Destroy(ended->mr);
  if (!status.ok())
    undestroyed.Add(*ended->device, "mr", status,
                    [ended] { return rdma::Destroy(ended->mr); });
}

absl::StatusOr<std::shared_ptr<const Region>> Regions::Register(
    const Device& device, const Request& request) {
  PURSER_RETURN_IF_ERROR(clients_.NameOf(request.client_id).status());
  PURSER_RETURN_IF_ERROR(CheckAccess(request.access));
  PURSER_ASSIGN_OR_RETURN(
      FileMapping mapping,
      FileMapping::Map(volume_, request.path, request.offset, request.length));
  PURSER_ASSIGN_OR_RETURN(std::shared_ptr<OpenedDevice> opened,
                          device.Opened());
  absl::StatusOr<rdma::MemoryRegion> mr =
      rdma::RegMr(opened->verbs(), opened->pd(), mapping.address(),
                  mapping.length(), static_cast<int>(request.access));
  const absl::Status lost = absl::UnavailableError(
      fmt::format("device {} was lost meanwhile", device.name()));
  if (!mr.ok()) {
    if (opened->lost()) return lost;
    counters_.create_failures.Add("mr",
                                  rdma::ErrnoName(rdma::ErrnoOf(mr.status())));
    return RegistrationFailure(mr.status());
  }
  const std::shared_ptr<Region> region(
      new Region{.owner = request.client_id,
                 .device = std::move(opened),
                 .mapping = std::move(mapping),
                 .mr = *std::move(mr)},
      [&undestroyed = undestroyed_](Region* ended) {
        End(ended, undestroyed);
      });
  std::lock_guard lock(mutex_);
  if (!clients_.IsLive(request.client_id))
    return absl::UnauthenticatedError(
        "the client's Attach stream ended during the registration");
  if (region->device->lost()) return lost;
  if (regions_.size() >= kMaxRegions)
    return absl::ResourceExhaustedError(
        fmt::format("{} memory regions are registered, the most that the "
                    "sidecar holds: register fewer, larger ranges",
                    regions_.size()));
  region->id = ++last_id_;
  bytes_ += region->mapping.length();
  regions_.emplace(region->id, region);
  return region;
}

absl::Status Regions::RegistrationFailure(const absl::Status& status) const {
  const std::string text(status.message());
  switch (rdma::ErrnoOf(status)) {
    case EPERM:  // a limit of 0
    case ENOMEM:
      return absl::ResourceExhaustedError(fmt::format(
          "{}: registered memory is pinned, and {} bytes are "
          "registered already{}",
          text, base::FormatCount(bytes()), MemlockHint(proc_root_)));
    case EFAULT:
      return absl::FailedPreconditionError(
          text +
          ": the pages cannot be pinned. The file was truncated meanwhile, or "
          "its file system does not take it: the shared volume should be an "
          "emptyDir with medium: Memory");
    default:
      return status;
  }
}

absl::Status Regions::Deregister(const std::string& client_id,
                                 uint64_t region_id) {
  PURSER_RETURN_IF_ERROR(clients_.NameOf(client_id).status());
  PURSER_ASSIGN_OR_RETURN(std::shared_ptr<const Region> region,
                          Find(client_id, region_id));
  std::lock_guard lock(mutex_);
  if (regions_.erase(region_id) == 0)
    return absl::NotFoundError(
        fmt::format("region {} was deregistered meanwhile", region_id));
  bytes_ -= region->mapping.length();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Region>> Regions::Find(
    const std::string& client_id, uint64_t region_id) const {
  std::lock_guard lock(mutex_);
  const auto found = regions_.find(region_id);
  if (found == regions_.end())
    return absl::NotFoundError(
        fmt::format("no memory region {}: it was never registered, was "
                    "deregistered, or ended with its device",
                    region_id));
  if (found->second->owner != client_id)
    return absl::PermissionDeniedError(
        fmt::format("memory region {} belongs to another client", region_id));
  return found->second;
}

template <typename Ends>
size_t Regions::EndWhere(Ends ends) {
  std::vector<std::shared_ptr<const Region>> ending;  // without the lock
  std::lock_guard lock(mutex_);
  for (auto entry = regions_.begin(); entry != regions_.end();) {
    const auto next = std::next(entry);
    if (ends(*entry->second)) {
      bytes_ -= entry->second->mapping.length();
      ending.push_back(std::move(entry->second));
      regions_.erase(entry);
    }
    entry = next;
  }
  return ending.size();
}

void Regions::EndClient(const std::string& client_id) {
  EndWhere([&](const Region& region) { return region.owner == client_id; });
}

size_t Regions::EndDevice(const Device& device) {
  return EndWhere([&](const Region& region) {
    return region.device->name() == device.name();
  });
}

std::map<std::string, Regions::Held> Regions::ByClient() const {
  std::map<std::string, Held> clients;
  std::lock_guard lock(mutex_);
  for (const auto& [id, region] : regions_) {
    Held& held = clients[region->owner];
    ++held.count;
    held.bytes += region->mapping.length();
  }
  return clients;
}

uint64_t Regions::count() const {
  std::lock_guard lock(mutex_);
  return regions_.size();
}

uint64_t Regions::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace purser::sidecar
