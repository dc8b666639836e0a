// SPDX-License-Identifier: Apache-2.0
#include "sidecar/actual_charge.h"

#include <algorithm>
#include <string>

#include "sidecar/admission_refusal.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

using queue_memory::QueueMemory;
using queue_memory::QueuePairRequest;

std::string MismatchOf(const Grant& grant, const ibv_qp_cap& cap, uint32_t cqe,
                       bool contradicted) {
  struct Check {
    const char* field;
    uint32_t asked, granted;
  };
  const QueuePairRequest& asked = grant.request;
  const bool sends = asked.max_send_wr > 0;
  const bool receives = asked.max_recv_wr > 0 && !asked.uses_srq;
  std::string list;
  for (const Check& check : {
           Check{"max_send_wr", asked.max_send_wr, cap.max_send_wr},
           Check{"max_send_sge", sends ? asked.max_send_sge : 0,
                 cap.max_send_sge},
           Check{"max_inline_data", sends ? asked.max_inline_data : 0,
                 cap.max_inline_data},
           Check{"max_recv_wr", receives ? asked.max_recv_wr : 0,
                 cap.max_recv_wr},
           Check{"max_recv_sge", receives ? asked.max_recv_sge : 0,
                 cap.max_recv_sge},
           Check{"cqe", grant.completion.cqe, cqe},
       }) {
    if (check.granted < check.asked)
      list += fmt::format("; {} {} granted of {} asked", check.field,
                          check.granted, check.asked);
  }
  if (contradicted)
    list += fmt::format(
        "; written back {}/{} send, {}/{} receive, {} bytes inline, {} cqe do "
        "not fit the rings predicted",
        cap.max_send_wr, cap.max_send_sge, cap.max_recv_wr, cap.max_recv_sge,
        cap.max_inline_data, cqe);
  if (list.empty()) return list;
  return Describe(grant.device, asked) + ": " + list.substr(2);
}

// What would have had to be asked, where more was written back than predicted.
uint32_t Asked(uint32_t asked, uint32_t predicted, uint32_t written_back) {
  return written_back > predicted ? std::max(asked, written_back) : asked;
}

QueuePairRequest AtCapacities(const Grant& grant, const ibv_qp_cap& cap) {
  const QueueMemory& predicted = grant.queue_pair;
  QueuePairRequest request = grant.request;
  request.max_send_wr =
      Asked(request.max_send_wr, predicted.cap_send_wr, cap.max_send_wr);
  request.max_send_sge =
      Asked(request.max_send_sge, predicted.cap_send_sge, cap.max_send_sge);
  request.max_inline_data = Asked(
      request.max_inline_data, predicted.cap_inline_data, cap.max_inline_data);
  request.max_recv_wr =
      Asked(request.max_recv_wr, predicted.cap_recv_wr, cap.max_recv_wr);
  request.max_recv_sge =
      Asked(request.max_recv_sge, predicted.cap_recv_sge, cap.max_recv_sge);
  return request;
}

// Capacities written back may exceed the limits on asking.
queue_memory::DeviceLimits Unlimited(const DeviceTraits& device) {
  queue_memory::DeviceLimits limits = device.limits;
  limits.max_qp_wr = limits.max_sge = limits.max_inline_data = UINT32_MAX;
  limits.max_cqe = UINT32_MAX;
  return limits;
}

bool Exceeds(const QueueMemory& memory, const QueueMemory& predicted) {
  return memory.total().total() > predicted.total().total();
}

QueueMemory CompletionQueueAt(const DeviceTraits& device,
                              const CompletionChoice& choice, uint32_t cqe) {
  if (cqe <= choice.memory.cap_cqe) return choice.memory;
  return queue_memory::CompletionQueueMemory(
      device.provider, Unlimited(device),
      Asked(choice.cqe, choice.memory.cap_cqe, cqe));
}

}  // namespace

QueueMemory ActualCompletionQueue(const DeviceTraits& device,
                                  const CompletionChoice& choice,
                                  uint32_t cqe) {
  if (choice.cqe == 0) return {};
  const QueueMemory at_capacity = CompletionQueueAt(device, choice, cqe);
  return Exceeds(at_capacity, choice.memory) ? at_capacity : choice.memory;
}

Actual ActualCharge(const Grant& grant, const ibv_qp_cap& cap, uint32_t cqe) {
  const QueueMemory at_capacities = queue_memory::QueuePairMemory(
      grant.device.provider, Unlimited(grant.device), AtCapacities(grant, cap));
  bool contradicted =
      Exceeds(at_capacities, grant.queue_pair) || at_capacities.refusal;
  Actual actual{.queue_pair = Exceeds(at_capacities, grant.queue_pair)
                                  ? at_capacities
                                  : grant.queue_pair,
                .completion_queue =
                    ActualCompletionQueue(grant.device, grant.completion, cqe)};
  actual.memory = actual.queue_pair;
  if (grant.completion.cqe != 0) {
    const QueueMemory queue =
        CompletionQueueAt(grant.device, grant.completion, cqe);
    contradicted |= Exceeds(queue, grant.completion.memory) || queue.refusal;
    actual.memory =
        queue_memory::Sum(actual.queue_pair, actual.completion_queue);
  }
  actual.charge = ToLedger(actual.memory.total());
  // An estimate predicts no capacities that could be contradicted.
  contradicted &= grant.predicted.exactness == queue_memory::Exactness::kExact;
  actual.mismatch = MismatchOf(grant, cap, cqe, contradicted);
  return actual;
}

}  // namespace purser::sidecar
