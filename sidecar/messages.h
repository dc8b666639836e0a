// SPDX-License-Identifier: Apache-2.0
//
// The sidecar's objects as messages of purser.v1.
#pragma once

#include "ledger/ledger.h"
#include "purser/v1/sidecar.pb.h"
#include "sidecar/admission.h"
#include "sidecar/brokered_queue_pair.h"
#include "sidecar/brokered_shared_receive_queue.h"
#include "sidecar/budget.h"
#include "sidecar/device.h"
#include "sidecar/work_queue.h"

namespace purser::sidecar {

v1::ChargedBytes ChargedBytesMessage(queue_memory::Charge charge);
v1::QueueMemory QueueMemoryMessage(const queue_memory::QueueMemory& memory);
void Fill(const Traffic& traffic, v1::Traffic& message);
v1::SharedReceiveQueue SharedReceiveQueueMessage(
    const BrokeredSharedReceiveQueue& queue);
v1::Refusal RefusalMessage(const Refusal& refusal);
// The port as it is now; without it where it cannot be queried.
v1::Device DeviceMessage(const Device& device);
// What a peer needs to connect to a queue pair of this device, all but its
// number; without a GID while the port has none.
v1::Endpoint EndpointMessage(const Device& device);
v1::QueuePair QueuePairMessage(BrokeredQueuePair& queue_pair,
                               v1::Endpoint endpoint);
void AddCompletions(const std::vector<Completion>& completions,
                    v1::PollCompletionsResponse& response);
v1::MemoryPressure PressureMessage(PressureScope scope,
                                   const Pressure& pressure);
v1::GetBudgetResponse BudgetMessage(const Admission& admission,
                                    const ledger::Balance& balance);

}  // namespace purser::sidecar
