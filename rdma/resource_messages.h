// SPDX-License-Identifier: Apache-2.0
//
// Messages of the kernel's RDMA netlink (NETLINK_RDMA, nldev): what is asked
// of it, and what its answers hold. Pure functions over bytes; no byte
// sequence makes them fail otherwise than by a status. The numbers are those of
// linux/rdma_netlink.h, the layout of drivers/infiniband/core/nldev.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace purser::rdma {

using Bytes = std::span<const std::byte>;

enum class ResourceKind {
  kContext,
  kProtectionDomain,
  kCompletionQueue,
  kSharedReceiveQueue,
  kQueuePair,
};
const char* ResourceKindName(ResourceKind kind);  // "queue pairs", …

struct NetlinkDevice {
  uint32_t index = 0;  // of the kernel's, for requests
  std::string name;    // mlx5_0
};

// Whether an RDMA device is seen by one network namespace alone (`rdma
// system`).
enum class NamespaceMode { kShared, kExclusive };

// One object that the kernel tracks. The views end with the message.
struct ResourceRecord {
  ResourceKind kind = ResourceKind::kQueuePair;
  // By kind: context, protection domain, CQ or SRQ number; of a queue pair
  // nothing, see local_qpn.
  std::optional<uint32_t> id;
  // Whose it is, as numbers of this device's contexts and protection domains.
  std::optional<uint32_t> context, protection_domain;
  // The thread that made it, in the reader's pid namespace; nullopt: of the
  // kernel, ended, or not visible from here.
  std::optional<uint32_t> pid;
  std::string_view kernel_owner;  // "ib_core"; empty: of a process
  uint32_t local_qpn = 0;
  std::optional<uint32_t> remote_qpn;
  uint8_t type = 0;   // ib_qp_type, ib_srq_type
  uint8_t state = 0;  // ib_qp_state
  uint32_t cqe = 0;
  Bytes driver;  // ForEachDriverAttribute()

  bool of_kernel() const { return !kernel_owner.empty(); }
};

enum class Answer { kMore, kDone };

// Requests.
std::vector<std::byte> DevicesRequest();
std::vector<std::byte> NamespaceModeRequest();
std::vector<std::byte> ResourcesRequest(ResourceKind kind,
                                        uint32_t device_index);
std::vector<std::byte> RawQueuePairRequest(uint32_t device_index,
                                           uint32_t local_qpn);

// One datagram of an answer, with any number of messages in it. The kernel's
// refusal comes as the status of its errno.
absl::StatusOr<Answer> ParseDevices(Bytes datagram,
                                    std::vector<NetlinkDevice>* devices);
absl::StatusOr<Answer> ParseNamespaceMode(Bytes datagram,
                                          std::optional<NamespaceMode>* mode);
absl::StatusOr<Answer> ParseResources(
    Bytes datagram, ResourceKind kind,
    absl::FunctionRef<void(const ResourceRecord&)> visit);
absl::StatusOr<Answer> ParseRawQueuePair(Bytes datagram,
                                         std::vector<std::byte>* raw);

// The named numbers that a driver adds to an object; those that are text, or
// below zero, are left out.
void ForEachDriverAttribute(
    Bytes driver,
    absl::FunctionRef<void(std::string_view name, uint64_t value)> visit);

}  // namespace purser::rdma
