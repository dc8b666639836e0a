// SPDX-License-Identifier: Apache-2.0
//
// What an object takes that the kernel lists: by what its driver tells of it,
// put through the memory model, which adds what the provider allocates beside
// the rings; else by the model alone, for a shape that is assumed. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "node_view/device.h"
#include "node_view/mlx5_context.h"
#include "queue_memory/queue_memory.h"
#include "rdma/resource_messages.h"

namespace purser::node_view {

struct Size {
  queue_memory::Charge charge;
  bool exact = false;
};

// bnxt_re and hns tell the sizes of each queue pair. nullopt: the driver tells
// none, or what the model cannot produce.
std::optional<Size> SizeByDriver(const Device& device,
                                 const rdma::ResourceRecord& queue_pair);
// nullopt: what the model cannot produce.
std::optional<Size> SizeOfMlx5(const Device& device, const Mlx5Rings& rings);
// For 128 work requests of one SGE each way.
Size AssumedQueuePair(const Device& device, uint8_t ib_type);

// The kernel tells the entries of a completion queue; of shared receive queues
// nothing: 128 work requests of one SGE.
Size SizeOfCompletionQueue(const Device& device, uint32_t cqe);
Size AssumedSharedReceiveQueue(const Device& device);

// The provider's structs in the process, where the rings are kernel memory.
struct Structs {
  uint64_t queue_pair = 0, completion_queue = 0, shared_receive_queue = 0;
};
Structs StructsOf(const Device& device);
// What the kernel takes for a ring of so many mapped bytes: the ring and the
// array of its pages.
uint64_t KernelBytesOfRing(const Device& device, uint64_t mapped_bytes);

}  // namespace purser::node_view
