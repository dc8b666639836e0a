// SPDX-License-Identifier: Apache-2.0
#include "sidecar/messages.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string>

#include "sidecar/send_operations.h"

namespace purser::sidecar {
namespace {

uint32_t MtuBytes(ibv_mtu mtu) { return 128u << mtu; }

v1::ChargedBytes ChargedBytesMessage(uint64_t container, uint64_t node) {
  v1::ChargedBytes message;
  message.set_container_bytes(container);
  message.set_node_bytes(node);
  return message;
}

v1::Exactness ExactnessOf(queue_memory::Exactness exactness) {
  switch (exactness) {
    case queue_memory::Exactness::kExact:
      return v1::EXACTNESS_EXACT;
    case queue_memory::Exactness::kEstimated:
      return v1::EXACTNESS_ESTIMATED;
    case queue_memory::Exactness::kFallback:
      return v1::EXACTNESS_FALLBACK;
  }
  return v1::EXACTNESS_UNSPECIFIED;
}

v1::BudgetSource BudgetSourceOf(BudgetSource source) {
  switch (source) {
    case BudgetSource::kExplicit:
      return v1::BUDGET_SOURCE_EXPLICIT;
    case BudgetSource::kPlugin:
      return v1::BUDGET_SOURCE_PLUGIN;
    case BudgetSource::kCgroup:
      return v1::BUDGET_SOURCE_CGROUP;
    case BudgetSource::kMemlock:
      return v1::BUDGET_SOURCE_MEMLOCK;
  }
  return v1::BUDGET_SOURCE_UNSPECIFIED;
}

v1::Reason ReasonOf(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::kBudget:
      return v1::REASON_BUDGET;
    case RefusalReason::kDeviceLimit:
      return v1::REASON_DEVICE_LIMIT;
    case RefusalReason::kInvalid:
      return v1::REASON_INVALID;
    case RefusalReason::kCreateFailed:
      return v1::REASON_CREATE_FAILED;
    case RefusalReason::kQueuePairCount:
      return v1::REASON_QUEUE_PAIR_COUNT;
    case RefusalReason::kPressure:
      return v1::REASON_PRESSURE;
    case RefusalReason::kClassShare:
      return v1::REASON_CLASS_SHARE;
  }
  return v1::REASON_UNSPECIFIED;
}

v1::LinkLayer LinkLayerOf(uint8_t link_layer) {
  switch (link_layer) {
    case IBV_LINK_LAYER_INFINIBAND:
      return v1::LINK_LAYER_INFINIBAND;
    case IBV_LINK_LAYER_ETHERNET:
      return v1::LINK_LAYER_ETHERNET;
    default:
      return v1::LINK_LAYER_UNSPECIFIED;
  }
}

v1::Capabilities CapabilitiesMessage(const ibv_qp_cap& cap) {
  v1::Capabilities message;
  message.set_max_send_wr(cap.max_send_wr);
  message.set_max_recv_wr(cap.max_recv_wr);
  message.set_max_send_sge(cap.max_send_sge);
  message.set_max_recv_sge(cap.max_recv_sge);
  message.set_max_inline_data(cap.max_inline_data);
  return message;
}

v1::WorkCompletion CompletionMessage(const Completion& completion) {
  const ibv_wc& wc = completion.wc;
  v1::WorkCompletion message;
  message.set_wr_id(wc.wr_id);
  message.set_status(wc.status);
  message.set_status_name(CompletionStatusName(wc.status));
  message.set_qp_num(wc.qp_num);
  message.set_vendor_err(wc.vendor_err);
  message.set_receive(completion.receive);
  // All else is undefined on errors (man ibv_poll_cq).
  if (wc.status != IBV_WC_SUCCESS) return message;
  message.set_opcode(wc.opcode);
  message.set_byte_len(wc.byte_len);
  if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0)
    message.set_imm_data(ntohl(wc.imm_data));
  return message;
}

}  // namespace

v1::ChargedBytes ChargedBytesMessage(queue_memory::Charge charge) {
  return ChargedBytesMessage(charge.container, charge.node);
}

v1::QueueMemory QueueMemoryMessage(const queue_memory::QueueMemory& memory) {
  v1::QueueMemory message;
  *message.mutable_send() = ChargedBytesMessage(memory.send);
  *message.mutable_receive() = ChargedBytesMessage(memory.receive);
  *message.mutable_completion() = ChargedBytesMessage(memory.completion);
  *message.mutable_shared_receive() =
      ChargedBytesMessage(memory.shared_receive);
  *message.mutable_arrays() = ChargedBytesMessage(memory.arrays);
  *message.mutable_overhead() = ChargedBytesMessage(memory.overhead);
  message.set_total_bytes(memory.total().total());
  message.set_exactness(ExactnessOf(memory.exactness));
  return message;
}

void Fill(const Traffic& traffic, v1::Traffic& message) {
  message.set_posts(traffic.posts);
  message.set_post_failures(traffic.post_failures);
  message.set_completions(traffic.completions);
  message.set_completion_errors(traffic.completion_errors);
}

v1::SharedReceiveQueue SharedReceiveQueueMessage(
    const BrokeredSharedReceiveQueue& queue) {
  const BrokeredSharedReceiveQueue::Facts& facts = queue.facts();
  v1::SharedReceiveQueue message;
  message.set_id(facts.id);
  message.set_device(facts.device->name());
  message.set_client_name(facts.owner->client);
  message.set_class_(facts.owner->class_name);
  message.set_max_wr(facts.attr.max_wr);
  message.set_max_sge(facts.attr.max_sge);
  message.set_slots(facts.slots);
  message.set_outstanding_receives(queue.outstanding());
  message.set_queue_pairs(queue.users());
  *message.mutable_memory() = QueueMemoryMessage(facts.memory);
  return message;
}

v1::Refusal RefusalMessage(const Refusal& refusal) {
  v1::Refusal message;
  message.set_reason(ReasonOf(refusal.reason));
  if (refusal.reason == RefusalReason::kBudget) {
    *message.mutable_needed() = QueueMemoryMessage(refusal.needed);
    message.set_bound(BudgetSourceOf(refusal.bound));
  }
  message.set_needed_bytes(refusal.needed_bytes);
  message.set_used_bytes(refusal.used_bytes);
  message.set_budget_bytes(refusal.budget_bytes);
  message.set_largest_max_send_wr(refusal.largest_max_send_wr);
  message.set_limit(refusal.limit);
  message.set_limit_value(refusal.limit_value);
  message.set_asked_value(refusal.asked_value);
  message.set_remedy(refusal.remedy);
  return message;
}

v1::Device DeviceMessage(const Device& device) {
  const ibv_device_attr attr = device.capabilities().attr;
  v1::Device message;
  message.set_name(device.name());
  message.set_provider(queue_memory::ProviderName(device.provider()));
  message.set_port_num(device.port_num());
  if (const auto port = device.QueryPort(); port.ok()) {
    message.set_link_layer(LinkLayerOf(port->link_layer));
    message.set_port_state(static_cast<v1::PortState>(port->state));
    message.set_active_mtu(MtuBytes(port->active_mtu));
    message.set_lid(port->lid);
  }
  message.set_max_qp(static_cast<uint32_t>(std::max(attr.max_qp, 0)));
  message.set_max_qp_wr(static_cast<uint32_t>(std::max(attr.max_qp_wr, 0)));
  message.set_max_sge(static_cast<uint32_t>(std::max(attr.max_sge, 0)));
  message.set_max_cqe(static_cast<uint32_t>(std::max(attr.max_cqe, 0)));
  if (attr.max_srq > 0) {
    message.set_max_srq_wr(static_cast<uint32_t>(std::max(attr.max_srq_wr, 0)));
    message.set_max_srq_sge(
        static_cast<uint32_t>(std::max(attr.max_srq_sge, 0)));
  }
  return message;
}

v1::Endpoint EndpointMessage(const Device& device) {
  v1::Endpoint message;
  message.set_port_num(device.port_num());
  if (const auto gid = device.PreferredGid(); gid.ok()) {
    message.set_gid(gid->gid.raw, sizeof(gid->gid.raw));
    message.set_gid_index(static_cast<uint32_t>(gid->index));
  }
  if (const auto port = device.QueryPort(); port.ok()) {
    message.set_lid(port->lid);
    message.set_mtu(MtuBytes(port->active_mtu));
  }
  return message;
}

v1::QueuePair QueuePairMessage(BrokeredQueuePair& queue_pair,
                               v1::Endpoint endpoint) {
  const BrokeredQueuePair::Facts& facts = queue_pair.facts();
  const WorkQueue& work_queue = queue_pair.work_queue();
  v1::QueuePair message;
  message.set_id(facts.id);
  message.set_qp_num(facts.qp_num);
  message.set_device(facts.device->name());
  message.set_type(static_cast<v1::QueuePairType>(facts.shape->type));
  message.set_state(
      static_cast<v1::QueuePairState>(queue_pair.CurrentState() + 1));
  *message.mutable_cap() = CapabilitiesMessage(facts.shape->cap);
  message.set_send_slots(facts.shape->send_slots());
  message.set_recv_slots(facts.shape->recv_slots());
  *message.mutable_memory() = QueueMemoryMessage(facts.shape->memory);
  message.mutable_memory()->set_textbook_bytes(
      queue_memory::TextbookBytes(facts.shape->request));
  endpoint.set_qp_num(facts.qp_num);
  *message.mutable_local() = std::move(endpoint);
  message.set_client_name(facts.owner->client);
  message.set_detached(facts.detached);
  message.set_class_(facts.owner->class_name);
  message.set_dest_qp_num(queue_pair.dest_qp_num());
  message.set_outstanding_sends(work_queue.outstanding_sends());
  message.set_outstanding_receives(work_queue.outstanding_receives());
  for (int opcode = v1::SendOpcode_MIN; opcode <= v1::SendOpcode_MAX; ++opcode)
    if ((facts.shape->send_ops &
         SendOpOf(static_cast<ibv_wr_opcode>(opcode))) != 0)
      message.add_send_operations(static_cast<v1::SendOpcode>(opcode));
  message.set_completion_queue_id(facts.completion_queue_id);
  message.set_shared_receive_queue_id(facts.shared_receive_queue_id);
  message.set_completion_backlog(work_queue.backlog());
  Fill(work_queue.traffic(), *message.mutable_traffic());
  return message;
}

void AddCompletions(const std::vector<Completion>& completions,
                    v1::PollCompletionsResponse& response) {
  for (const Completion& completion : completions)
    *response.add_completions() = CompletionMessage(completion);
}

v1::MemoryPressure PressureMessage(PressureScope scope,
                                   const Pressure& pressure) {
  v1::MemoryPressure message;
  message.set_scope(scope == PressureScope::kContainer
                        ? v1::PRESSURE_SCOPE_CONTAINER
                        : v1::PRESSURE_SCOPE_NODE);
  message.set_state(
      static_cast<v1::PressureState>(static_cast<int>(pressure.state) + 1));
  message.set_why(pressure.why);
  return message;
}

v1::GetBudgetResponse BudgetMessage(const Admission& admission,
                                    const ledger::Balance& balance) {
  const std::shared_ptr<const Budget> budget = admission.budget();
  v1::GetBudgetResponse message;
  if (budget->queue_pairs())
    message.set_queue_pair_limit(budget->queue_pairs()->limit);
  for (const PressureScope scope :
       {PressureScope::kContainer, PressureScope::kNode})
    *message.add_memory_pressure() =
        PressureMessage(scope, admission.pressure(scope));
  message.set_overcommitted_bytes(admission.OvercommittedBytes());
  for (const ClassUse& use : admission.accounts().Use()) {
    v1::GetBudgetResponse::Class* added = message.add_classes();
    added->set_name(use.name);
    added->set_core(use.core);
    added->set_floor_bytes(use.floor_bytes);
    added->set_fair_bytes(use.fair_bytes);
    added->set_max_bytes(use.max_bytes);
    added->set_used_bytes(use.used_bytes);
  }
  *message.mutable_used() =
      ChargedBytesMessage(balance.held.container, balance.held.node);
  v1::GetBudgetResponse::Bound* binding = nullptr;
  uint64_t least = UINT64_MAX;
  for (const Bound& bound : budget->bounds()) {
    const uint64_t used =
        bound.container_only ? balance.held.container : balance.held.total();
    const uint64_t left =
        bound.limit_bytes > used ? bound.limit_bytes - used : 0;
    v1::GetBudgetResponse::Bound* added = message.add_bounds();
    added->set_source(BudgetSourceOf(bound.source));
    added->set_limit_bytes(bound.limit_bytes);
    added->set_container_only(bound.container_only);
    added->set_used_bytes(used);
    added->set_origin(bound.origin);
    if (binding != nullptr && left >= least) continue;
    binding = added;
    least = left;
  }
  if (binding != nullptr) {
    binding->set_binding(true);
    message.set_headroom_bytes(least);
  }
  return message;
}

}  // namespace purser::sidecar
