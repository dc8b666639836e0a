// SPDX-License-Identifier: Apache-2.0
//
// What a queue pair and its completion queue cost now that they exist. Pure.
#pragma once

#include <string>

#include "ledger/ledger.h"
#include "queue_memory/queue_memory.h"
#include "rdma/verbs.h"
#include "sidecar/admission.h"

namespace purser::sidecar {

struct Actual {
  queue_memory::QueueMemory queue_pair, completion_queue;
  queue_memory::QueueMemory memory;  // both
  ledger::Charge charge;             // for both
  // Not empty: the capacities written back contradict the model; says how, for
  // the log. Count it as a model mismatch.
  std::string mismatch;
};

// The provider's rule applied to what was asked, checked against what
// ibv_create_qp wrote back to `cap` and ibv_create_cq (or ibv_resize_cq) to
// `cqe`: rings that could not hold those capacities are charged by the
// capacities instead, and capacities below what was asked are a mismatch as
// well. Some kernels write back less than the rings hold, which is none. A
// completion queue that was neither created nor grown is left out.
Actual ActualCharge(const Grant& grant, const ibv_qp_cap& cap, uint32_t cqe);

// Of the completion queue alone.
queue_memory::QueueMemory ActualCompletionQueue(const DeviceTraits& device,
                                                const CompletionChoice& choice,
                                                uint32_t cqe);

}  // namespace purser::sidecar
