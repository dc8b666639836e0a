// SPDX-License-Identifier: Apache-2.0
//
// The verbs fake's queue pairs.
#include <algorithm>
#include <cerrno>

#include "rdma/queue_pair_states.h"
#include "spdlog/fmt/fmt.h"
#include "tests/fakes/fake_verbs_state.h"

namespace purser::fakes {

using rdma::StatusOf;

absl::StatusOr<ibv_qp*> FakeVerbs::CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr,
                                            uint64_t send_ops_flags) {
  Call call(*state_, "create_qp");
  auto& fake_pd = Live<FakePd>(*state_, pd, "ibv_create_qp");
  FakeContext& context = *fake_pd.fake_context;
  const FakeDevice& device = context.device_state->device;
  const ibv_qp_cap asked = attr->cap;
  FakeRings rings;
  int error = ContextError(call, context);
  const auto wr = static_cast<uint32_t>(device.attr.max_qp_wr);
  const auto sge = static_cast<uint32_t>(device.attr.max_sge);
  if (error == 0 && (attr->send_cq == nullptr || attr->recv_cq == nullptr ||
                     asked.max_send_wr > wr || asked.max_recv_wr > wr ||
                     asked.max_send_sge > sge || asked.max_recv_sge > sge ||
                     asked.max_inline_data > device.max_inline_data))
    error = EINVAL;
  if (error == 0)
    error = device.size_queue_pair(attr->qp_type, asked, send_ops_flags, rings);
  if (error == 0) error = TooMany(context, "qp", device.attr.max_qp);
  if (error != 0)
    return StatusOf(
        error,
        fmt::format("{} send {} wr x {} sge, receive {} wr x {} sge",
                    What("ibv_create_qp", context), asked.max_send_wr,
                    asked.max_send_sge, asked.max_recv_wr, asked.max_recv_sge));
  ++Live<FakeCq>(*state_, attr->send_cq, "ibv_create_qp").children;
  ++Live<FakeCq>(*state_, attr->recv_cq, "ibv_create_qp").children;
  ++fake_pd.children;
  if (attr->srq != nullptr) {
    ++Live<FakeSrq>(*state_, attr->srq, "ibv_create_qp").children;
    rings.recv_slots = rings.cap.max_recv_wr = rings.cap.max_recv_sge = 0;
  }
  auto* qp = state_->Add<FakeQp>("qp", &context);
  qp->qp_context = attr->qp_context;
  qp->srq = attr->srq;
  qp->send_ops_flags = send_ops_flags;
  qp->pd = pd;
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->qp_num = state_->fabric->next_qp_num++;
  qp->state = IBV_QPS_RESET;
  qp->qp_type = attr->qp_type;
  qp->rings = rings;
  qp->signal_all = attr->sq_sig_all != 0;
  state_->fabric->queue_pairs[qp->qp_num] = qp;
  attr->cap = rings.cap;
  return qp;
}

namespace {

bool IsZero(const ibv_gid& gid) {
  return std::all_of(std::begin(gid.raw), std::end(gid.raw),
                     [](uint8_t byte) { return byte == 0; });
}

// The kernel's and soft-RoCE's checks of attribute values.
int CheckValues(const FakeQp& qp, const ibv_qp_attr& attr, int mask) {
  const FakeDevice& device = qp.fake_context->device_state->device;
  const auto bad_port = [&](uint8_t port_num) {
    return port_num < 1 || port_num > device.ports.size();
  };
  if ((mask & IBV_QP_PORT) != 0 && bad_port(attr.port_num)) return EINVAL;
  const uint8_t port_num =
      (mask & IBV_QP_PORT) != 0 ? attr.port_num : qp.attr.port_num;
  if ((mask & IBV_QP_AV) != 0) {
    const ibv_ah_attr& ah = attr.ah_attr;
    if (bad_port(ah.port_num)) return EINVAL;
    const FakePort& port = device.ports[ah.port_num - 1u];
    if (ah.is_global == 0 && port.attr.link_layer == IBV_LINK_LAYER_ETHERNET)
      return EINVAL;
    if (ah.is_global != 0 && (ah.grh.sgid_index >= port.gids.size() ||
                              IsZero(port.gids[ah.grh.sgid_index])))
      return ENODATA;
  }
  // The kernel has alternate paths for InfiniBand alone.
  if ((mask & IBV_QP_ALT_PATH) != 0 &&
      device.ports[0].attr.link_layer == IBV_LINK_LAYER_ETHERNET)
    return EINVAL;
  if ((mask & IBV_QP_PATH_MTU) != 0 &&
      (bad_port(port_num) || attr.path_mtu < IBV_MTU_256 ||
       attr.path_mtu > device.ports[port_num - 1u].attr.max_mtu))
    return EINVAL;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 &&
      attr.max_rd_atomic > device.attr.max_qp_rd_atom)
    return EINVAL;
  if ((mask & IBV_QP_TIMEOUT) != 0 && attr.timeout > 31) return EINVAL;
  return 0;
}

void Reset(VerbsFabric& fabric, FakeQp& qp) {
  qp.sends.clear();
  qp.receives.clear();
  qp.sends_freed = qp.sends_posted;
  qp.receives_freed = qp.receives_posted;
  fabric.pending.erase(qp.qp_num);
  qp.attr = {};
  if (!qp.fake_context->device_state->device.hardware) return;
  for (ibv_cq* cq : {qp.send_cq, qp.recv_cq})
    std::erase_if(static_cast<FakeCq*>(cq)->entries,
                  [&](const Cqe& cqe) { return cqe.qp == &qp; });
}

void Store(FakeQp& qp, const ibv_qp_attr& attr, int mask) {
  const auto copy = [&](int bit, auto ibv_qp_attr::*field) {
    if ((mask & bit) != 0) qp.attr.*field = attr.*field;
  };
  copy(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  copy(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
  copy(IBV_QP_PORT, &ibv_qp_attr::port_num);
  copy(IBV_QP_QKEY, &ibv_qp_attr::qkey);
  copy(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  copy(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  copy(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
  copy(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  copy(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
  copy(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  copy(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  copy(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
  copy(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  copy(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  copy(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
  if ((mask & IBV_QP_RQ_PSN) != 0) qp.receive_psn = attr.rq_psn & 0xffffff;
  if ((mask & IBV_QP_SQ_PSN) != 0) qp.send_psn = attr.sq_psn & 0xffffff;
}

}  // namespace

absl::Status FakeVerbs::ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask) {
  Call call(*state_, "modify_qp");
  auto& fake = Live<FakeQp>(*state_, qp, "ibv_modify_qp");
  const std::string what = fmt::format(
      "{} qp {:#x}", What("ibv_modify_qp", *fake.fake_context), fake.qp_num);
  int error = ContextError(call, *fake.fake_context);
  const ibv_qp_state from = (attr_mask & IBV_QP_CUR_STATE) != 0
                                ? attr->cur_qp_state
                                : fake.device_state;
  const ibv_qp_state to =
      (attr_mask & IBV_QP_STATE) != 0 ? attr->qp_state : from;
  if (error == 0 && !rdma::CheckModify(fake.qp_type, from, to, attr_mask).ok())
    error = EINVAL;
  if (error == 0) error = CheckValues(fake, *attr, attr_mask);
  if (error != 0) return StatusOf(error, what);

  if ((attr_mask & IBV_QP_STATE) != 0) {
    fake.state = fake.device_state = to;
    if (to == IBV_QPS_RESET) Reset(*state_->fabric, fake);
    if (to == IBV_QPS_ERR) Flush(*state_->fabric, fake);
    if (to == IBV_QPS_SQD && from == IBV_QPS_RTS) {
      ibv_async_event event{};
      event.element.qp = qp;
      event.event_type = IBV_EVENT_SQ_DRAINED;
      PushAsyncEvent(*fake.fake_context, event);
    }
  }
  Store(fake, *attr, attr_mask);
  if (!state_->fabric->held) CarryAll(*state_->fabric);
  return absl::OkStatus();
}

absl::Status FakeVerbs::QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int attr_mask,
                                ibv_qp_init_attr* init_attr) {
  Call call(*state_, "query_qp");
  auto& fake = Live<FakeQp>(*state_, qp, "ibv_query_qp");
  if (const int error = ContextError(call, *fake.fake_context); error != 0)
    return StatusOf(error, What("ibv_query_qp", *fake.fake_context));
  *attr = fake.attr;
  attr->qp_state = fake.device_state;
  attr->cap = fake.rings.cap;
  attr->cap.max_send_wr = fake.rings.send_slots;
  attr->cap.max_recv_wr = fake.rings.recv_slots;
  *init_attr = {};
  init_attr->qp_context = fake.qp_context;
  init_attr->send_cq = fake.send_cq;
  init_attr->recv_cq = fake.recv_cq;
  init_attr->srq = fake.srq;
  init_attr->cap = attr->cap;
  init_attr->qp_type = fake.qp_type;
  init_attr->sq_sig_all = fake.signal_all ? 1 : 0;
  if ((attr_mask & IBV_QP_STATE) != 0) fake.state = fake.device_state;
  return absl::OkStatus();
}

absl::Status FakeVerbs::DestroyQp(ibv_qp* qp) {
  Call call(*state_, "destroy_qp");
  auto& fake = Live<FakeQp>(*state_, qp, "ibv_destroy_qp");
  if (const int error = DestroyError(call, fake); error != 0)
    return StatusOf(
        error,
        fmt::format("{} qp {:#x}", What("ibv_destroy_qp", *fake.fake_context),
                    fake.qp_num));
  call.AwaitAcknowledged(fake, "ibv_destroy_qp");
  DropAsyncEvents(fake);
  Reset(*state_->fabric, fake);
  state_->fabric->queue_pairs.erase(fake.qp_num);
  --static_cast<FakePd*>(fake.pd)->children;
  --static_cast<FakeCq*>(fake.send_cq)->children;
  --static_cast<FakeCq*>(fake.recv_cq)->children;
  if (fake.srq != nullptr) --fake.fake_srq()->children;
  state_->Retire(fake);
  return absl::OkStatus();
}

}  // namespace purser::fakes
