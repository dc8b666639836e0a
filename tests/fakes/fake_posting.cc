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

// The bit of ibv_qp_create_send_ops_flags.
uint64_t OperationOf(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return IBV_QP_EX_WITH_RDMA_WRITE;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    case IBV_WR_SEND:
      return IBV_QP_EX_WITH_SEND;
    case IBV_WR_SEND_WITH_IMM:
      return IBV_QP_EX_WITH_SEND_WITH_IMM;
    case IBV_WR_RDMA_READ:
      return IBV_QP_EX_WITH_RDMA_READ;
    default:
      return UINT64_MAX;
  }
}

int PostOneSend(VerbsFabric& fabric, FakeQp& qp, const ibv_send_wr& wr) {
  if (qp.send_ops_flags != 0 &&
      (qp.send_ops_flags & OperationOf(wr.opcode)) != OperationOf(wr.opcode))
    Die("ibv_post_send of an operation that was not in send_ops_flags");
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
  if (qp.srq != nullptr) return EINVAL;
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

int PostOneSrqRecv(FakeSrq& srq, const ibv_recv_wr& wr) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > srq.max_sge)
    return EINVAL;
  if (srq.posted - srq.freed >= srq.slots) return ENOMEM;
  srq.receives.push_back({.wr_id = wr.wr_id,
                          .sges = {wr.sg_list, wr.sg_list + wr.num_sge},
                          .index = srq.posted++});
  return 0;
}

int PostSrqRecv(ibv_srq* verbs_srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  FakeVerbs::State& state = *static_cast<FakeSrq*>(verbs_srq)->owner;
  Call call(state, "post_srq_recv");
  FakeSrq& srq = Live<FakeSrq>(state, verbs_srq, "ibv_post_srq_recv");
  int error = call.injected();
  *bad_wr = wr;
  for (; wr != nullptr && error == 0; wr = wr->next) {
    *bad_wr = wr;
    error = PostOneSrqRecv(srq, *wr);
  }
  if (error == 0) *bad_wr = nullptr;
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
    if (cqe.srq != nullptr) {
      ++cqe.srq->freed;
      continue;
    }
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
  ops.post_srq_recv = PostSrqRecv;
  ops.poll_cq = PollCq;
  ops.req_notify_cq = ReqNotifyCq;
  return ops;
}

}  // namespace purser::fakes
