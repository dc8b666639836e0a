// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "queue_memory/queue_memory.h"
#include "rdma/discovery.h"

namespace purser::node_view {

// What the view needs to know of a device.
struct Device {
  std::string name;    // "rxe0"
  std::string uverbs;  // "uverbs0"
  queue_memory::Provider provider = queue_memory::Provider::kUnknown;
  queue_memory::DeviceLimits limits;  // of its kind, with the page size
};

Device DeviceOf(const rdma::SysfsDevice& sysfs, uint32_t page_size);

// Whether the device's rings are kernel memory that its character device maps
// into the process, each once: then a mapping is a ring, to the byte.
bool MapsItsRings(queue_memory::Provider provider);
// Whether a mapping's offset names one ring of the whole device (soft-RoCE), or
// only one of those of the process that opened it (soft-iWARP).
bool OffsetsAreOfTheDevice(queue_memory::Provider provider);

// Names of the kernel's ib_qp_type and ib_qp_state, as labels: "RC", "RTS".
const char* QueuePairTypeName(uint8_t ib_type);
const char* QueuePairStateName(uint8_t ib_state);

}  // namespace purser::node_view
