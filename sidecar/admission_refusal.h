// SPDX-License-Identifier: Apache-2.0
//
// The words and numbers of a refusal: what was asked, what refused it, the
// arithmetic, and what to do. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ledger/ledger.h"
#include "queue_memory/queue_memory.h"
#include "sidecar/admission.h"
#include "sidecar/budget.h"

namespace purser::sidecar {

// "queue pair RC 4096/8 send, 4096/1 receive on rxe0".
std::string Describe(const DeviceTraits& device,
                     const queue_memory::QueuePairRequest& request);

// The request contradicts itself.
Refusal InvalidRequest(const std::string& what, std::string_view fault,
                       std::string remedy);

// `field` (as in verbs) exceeds the device's `limit`.
Refusal OverDeviceLimit(const std::string& what, std::string_view field,
                        uint64_t asked, std::string_view limit,
                        uint64_t allowed, std::string remedy);

// The provider's own rules refuse.
Refusal OverProviderLimit(const std::string& what, const DeviceTraits& device,
                          const queue_memory::QueuePairRequest& request,
                          const queue_memory::Refusal& by);

// The leases in the ledger file are not known, so none may be granted.
Refusal UnknownLeases(const std::string& what,
                      const ledger::ReserveResult& result);

// `bound` has less left than `needed` counts there. `largest_max_send_wr`: what
// would fit, 0 for none.
// More queue pairs than rdma/qp units allot.
Refusal OverQueuePairCount(const std::string& what, const Budget& budget,
                           const ledger::ReserveResult& result);
// `bytes`: of the request, that the scope would pay.
Refusal UnderPressure(const std::string& what, PressureScope scope,
                      const Pressure& pressure, uint64_t bytes);
// The ledger would take it, but what is left is promised to others, or the
// class has its share.
Refusal OverShare(const std::string& what, const Owner& owner,
                  const ShareRefusal& share, uint32_t largest_max_send_wr);
Refusal OverBudget(const std::string& what,
                   const queue_memory::QueuePairRequest& request,
                   const queue_memory::QueueMemory& needed, const Bound& bound,
                   const ledger::ReserveResult& result,
                   uint32_t largest_max_send_wr);

}  // namespace purser::sidecar
