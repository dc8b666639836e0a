// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rdma/resource_messages.h"

namespace purser::rdma {

// A question to RDMA netlink and its answer, as bytes: the seam that the tests'
// fake stands at.
class NetlinkTransport {
 public:
  virtual ~NetlinkTransport() = default;
  // Sends the request and hands over the datagrams of its answer, one after the
  // other, until `on_datagram` says kDone or an error, which is returned.
  // DeadlineExceeded: the kernel does not answer.
  virtual absl::Status Exchange(
      Bytes request, absl::FunctionRef<absl::StatusOr<Answer>(Bytes datagram)>
                         on_datagram) = 0;
};

// A socket of NETLINK_RDMA (libnl). It shows the devices of the own network
// namespace; in shared mode (`rdma system`), all. Needs no privilege.
// Unimplemented: a kernel without RDMA.
absl::StatusOr<std::unique_ptr<NetlinkTransport>> OpenRdmaNetlink(
    std::chrono::milliseconds timeout);

// What the kernel tells of every RDMA object of the node, whoever made it.
// Stateless; a failed exchange may leave messages in the transport: open
// another. One thread.
class ResourceNetlink {
 public:
  explicit ResourceNetlink(NetlinkTransport& transport)
      : transport_(transport) {}

  absl::StatusOr<std::vector<NetlinkDevice>> Devices();
  absl::StatusOr<NamespaceMode> Mode();
  // Errors name the device's index and the kind. InvalidArgument: a kernel that
  // does not have the command, or no such device (any more).
  absl::Status Dump(ResourceKind kind, uint32_t device_index,
                    absl::FunctionRef<void(const ResourceRecord&)> visit);
  // The device's own record of a queue pair, in the driver's format.
  // PermissionDenied without CAP_NET_ADMIN.
  absl::StatusOr<std::vector<std::byte>> RawQueuePair(uint32_t device_index,
                                                      uint32_t local_qpn);

 private:
  NetlinkTransport& transport_;
};

}  // namespace purser::rdma
