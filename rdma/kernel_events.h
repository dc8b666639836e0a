// SPDX-License-Identifier: Apache-2.0
//
// What the kernel tells, unasked, to whoever listens: that devices come, go and
// are renamed (uevents), and that network interfaces and their addresses change
// (rtnetlink). Neither needs a privilege. A message is only a hint that
// something may have changed: it may come before the change can be read in
// sysfs, and some changes have none (a port's state). Pure but for the opening
// and reading of the sockets.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "rdma/resource_messages.h"

namespace purser::rdma {

// Sockets, not blocking. Uevents of infiniband_verbs reach every network
// namespace that belongs to the initial user namespace, so those of pods;
// those of infiniband and of net, and all of rtnetlink, only the device's own.
absl::StatusOr<base::FileDescriptor> OpenUevents();
absl::StatusOr<base::FileDescriptor> OpenLinkEvents();

// How many events a datagram holds that are about RDMA devices, their
// character devices, or network interfaces. No byte sequence makes them fail.
uint64_t CountUevents(Bytes datagram);
uint64_t CountLinkEvents(Bytes datagram);

// Takes what the socket holds (of a storm, a part: it stays readable) and adds
// up what `count` says of the kernel's datagrams. Messages that were lost count
// as one.
absl::StatusOr<uint64_t> TakeEvents(const base::FileDescriptor& socket,
                                    absl::FunctionRef<uint64_t(Bytes)> count);

}  // namespace purser::rdma
