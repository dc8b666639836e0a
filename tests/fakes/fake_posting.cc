// SPDX-License-Identifier: Apache-2.0
//
// The verbs fake's data path as callers see it: posting, polling, arming.
#include <cerrno>

#include "tests/fakes/fake_verbs_state.h"

namespace purser::fakes {
namespace {

int CheckSend(const FakeQp& qp, const ibv_send_wr& wr) {
  if (wr.num_sge < 0 ||
      static_cast<uint32_t>(wr.num_sge) > qp.rings.cap.max_send_sge)
    return EINVAL;
  if (qp.qp_type == IBV_QPT_UD) return EINVAL;  // the fake has no AHs
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) return 0;
  uint64_t length = 0;
  for (int i = 0; i < wr.num_sge; ++i) length += wr.sg_list[i].length;
  return length > qp.rings.cap.max_inline_data ? EINVAL : 0;
}

int PostOneSend(VerbsFabric& fabric, FakeQp& qp, const ibv_send_wr& wr) {
  if (qp.device_state < IBV_QPS_RTS && IsHardware(qp)) return EINVAL;
  if (const int error = CheckSend(qp, wr); error != 0) return error;
  if (qp.sends_posted - qp.sends_freed >= qp.rings.send_slots) return ENOMEM;
  SendRequest request{.wr = wr,
                      .sges = {wr.sg_list, wr.sg_list + wr.num_sge},
                      .index = qp.sends_posted++};
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    for (const ibv_sge& sge : request.sges) {
      const auto* data = reinterpret_cast<const uint8_t*>(sge.addr);
      request.inline_data.insert(request.inline_data.end(), data,
                                 data + sge.length);
    }
  }
  qp.sends.push_back(std::move(request));
  fabric.pending[qp.qp_num] = &qp;
  return 0;
}

int PostSend(ibv_qp* verbs_qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  FakeVerbs::State& state = *static_cast<FakeQp*>(verbs_qp)->owner;
  Call call(state, "post_send");
  FakeQp& qp = Live<FakeQp>(state, verbs_qp, "ibv_post_send");
  int error = call.injected();
  *bad_wr = wr;
  for (; wr != nullptr && error == 0; wr = wr->next) {
    *bad_wr = wr;
    error = PostOneSend(*state.fabric, qp, *wr);
  }
  if (error == 0) *bad_wr = nullptr;
  // Soft-RoCE puts the requests into the ring and only then finds that it may
  // not send: it refuses them, names no culprit, and sends them at RTS.
  if (qp.device_state < IBV_QPS_RTS && call.injected() == 0) error = EINVAL;
  if (qp.device_state == IBV_QPS_ERR) FlushSends(*state.fabric, qp);
  if (!state.fabric->held) CarryAll(*state.fabric);
  return error;
}

int PostOneRecv(FakeQp& qp, const ibv_recv_wr& wr) {
  if (qp.device_state == IBV_QPS_RESET) return EINVAL;
  if (wr.num_sge < 0 ||
      static_cast<uint32_t>(wr.num_sge) > qp.rings.cap.max_recv_sge)
    return EINVAL;
  if (qp.receives_posted - qp.receives_freed >= qp.rings.recv_slots)
    return ENOMEM;
  qp.receives.push_back({.wr_id = wr.wr_id,
                         .sges = {wr.sg_list, wr.sg_list + wr.num_sge},
                         .index = qp.receives_posted++});
  return 0;
}

int PostRecv(ibv_qp* verbs_qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  FakeVerbs::State& state = *static_cast<FakeQp*>(verbs_qp)->owner;
  Call call(state, "post_recv");
  FakeQp& qp = Live<FakeQp>(state, verbs_qp, "ibv_post_recv");
  int error = call.injected();
  *bad_wr = wr;
  for (; wr != nullptr && error == 0; wr = wr->next) {
    *bad_wr = wr;
    error = PostOneRecv(qp, *wr);
  }
  if (error == 0) *bad_wr = nullptr;
  if (qp.device_state == IBV_QPS_ERR && IsHardware(qp))
    Flush(*state.fabric, qp);
  if (!state.fabric->held) CarryAll(*state.fabric);
  return error;
}

int PollCq(ibv_cq* verbs_cq, int max_entries, ibv_wc* completions) {
  FakeVerbs::State& state = *static_cast<FakeCq*>(verbs_cq)->owner;
  Call call(state, "poll_cq");
  FakeCq& cq = Live<FakeCq>(state, verbs_cq, "ibv_poll_cq");
  if (call.injected() != 0) return -call.injected();
  int count = 0;
  for (; count < max_entries && !cq.entries.empty(); ++count) {
    const Cqe cqe = cq.entries.front();
    cq.entries.pop_front();
    completions[count] = cqe.wc;
    if (!IsHardware(*cqe.qp)) continue;
    (cqe.is_send ? cqe.qp->sends_freed : cqe.qp->receives_freed) =
        cqe.index + 1;
  }
  return count;
}

int ReqNotifyCq(ibv_cq* verbs_cq, int solicited_only) {
  FakeVerbs::State& state = *static_cast<FakeCq*>(verbs_cq)->owner;
  Call call(state, "req_notify_cq");
  FakeCq& cq = Live<FakeCq>(state, verbs_cq, "ibv_req_notify_cq");
  if (call.injected() != 0) return call.injected();
  if (solicited_only == 0) cq.notify = FakeCq::Notify::kNext;
  if (cq.notify == FakeCq::Notify::kNone)
    cq.notify = FakeCq::Notify::kSolicited;
  return 0;
}

}  // namespace

ibv_context_ops DataPathOps() {
  ibv_context_ops ops{};
  ops.post_send = PostSend;
  ops.post_recv = PostRecv;
  ops.poll_cq = PollCq;
  ops.req_notify_cq = ReqNotifyCq;
  return ops;
}

}  // namespace purser::fakes
