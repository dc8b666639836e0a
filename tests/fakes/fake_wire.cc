// SPDX-License-Identifier: Apache-2.0
//
// The verbs fake's data path: posting, polling, and what goes over the wire.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "tests/fakes/fake_verbs_state.h"

namespace purser::fakes {
namespace {

FakeDevice& DeviceOf(const FakeQp& qp) {
  return qp.fake_context->device_state->device;
}

const FakePort* PortOf(const FakeQp& qp) {
  const auto& ports = DeviceOf(qp).ports;
  const size_t port_num = qp.attr.port_num;
  return port_num >= 1 && port_num <= ports.size() ? &ports[port_num - 1]
                                                   : nullptr;
}

bool SameGid(const ibv_gid& a, const ibv_gid& b) {
  return std::memcmp(a.raw, b.raw, sizeof(a.raw)) == 0;
}

// ---- Completion queues ----

void Notify(FakeCq& cq, bool solicited) {
  if (cq.channel == nullptr || cq.notify == FakeCq::Notify::kNone) return;
  if (cq.notify == FakeCq::Notify::kSolicited && !solicited) return;
  cq.notify = FakeCq::Notify::kNone;
  FakeChannel& channel = *static_cast<FakeChannel*>(cq.channel);
  channel.events.push_back(&cq);
  channel.event.Add();
}

void PushCqe(FakeCq& cq, Cqe cqe) {
  if (cq.entries.size() >= static_cast<size_t>(cq.cqe)) {
    ibv_async_event event{};
    event.element.cq = &cq;
    event.event_type = IBV_EVENT_CQ_ERR;
    PushAsyncEvent(*cq.fake_context, event);
    return;
  }
  const bool solicited = cqe.solicited || cqe.wc.status != IBV_WC_SUCCESS;
  cq.entries.push_back(cqe);
  Notify(cq, solicited);
}

ibv_wc_opcode WcOpcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    default:
      return IBV_WC_SEND;
  }
}

uint32_t LengthOf(const std::vector<ibv_sge>& sges) {
  uint32_t length = 0;
  for (const ibv_sge& sge : sges) length += sge.length;
  return length;
}

// Takes the first send off its queue.
void FinishSend(FakeFabric& fabric, FakeQp& qp, ibv_wc_status status) {
  const SendRequest request = std::move(qp.sends.front());
  qp.sends.pop_front();
  if (qp.sends.empty()) fabric.pending.erase(qp.qp_num);
  if (!DeviceOf(qp).slots_freed_by_poll) qp.sends_freed = request.index + 1;
  if (status == IBV_WC_SUCCESS && !qp.signal_all &&
      (request.wr.send_flags & IBV_SEND_SIGNALED) == 0)
    return;
  Cqe cqe{.qp = &qp, .is_send = true, .index = request.index};
  cqe.wc.wr_id = request.wr.wr_id;
  cqe.wc.status = status;
  cqe.wc.opcode = WcOpcode(request.wr.opcode);
  cqe.wc.byte_len = request.inline_data.empty()
                        ? LengthOf(request.sges)
                        : static_cast<uint32_t>(request.inline_data.size());
  cqe.wc.qp_num = qp.qp_num;
  PushCqe(*static_cast<FakeCq*>(qp.send_cq), cqe);
}

// Takes the first receive off its queue. `by` is the request that consumed it;
// nullptr for a flush.
void FinishReceive(FakeQp& qp, ibv_wc_status status, uint32_t length,
                   const SendRequest* by) {
  const ReceiveRequest request = std::move(qp.receives.front());
  qp.receives.pop_front();
  if (!DeviceOf(qp).slots_freed_by_poll) qp.receives_freed = request.index + 1;
  Cqe cqe{.qp = &qp, .index = request.index};
  cqe.wc.wr_id = request.wr_id;
  cqe.wc.status = status;
  cqe.wc.opcode = IBV_WC_RECV;
  cqe.wc.byte_len = length;
  cqe.wc.qp_num = qp.qp_num;
  cqe.wc.src_qp = qp.attr.dest_qp_num;
  if (by != nullptr) {
    cqe.solicited = (by->wr.send_flags & IBV_SEND_SOLICITED) != 0;
    const bool write = by->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if (write) cqe.wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    if (write || by->wr.opcode == IBV_WR_SEND_WITH_IMM) {
      cqe.wc.wc_flags = IBV_WC_WITH_IMM;
      cqe.wc.imm_data = by->wr.imm_data;
    }
  }
  PushCqe(*static_cast<FakeCq*>(qp.recv_cq), cqe);
}

void Break(FakeFabric& fabric, FakeQp& qp) {
  qp.device_state = IBV_QPS_ERR;
  Flush(fabric, qp);
}

// ---- Memory ----

// The memory behind [addr, addr + length) of a key, or nullptr: no such region,
// another protection domain, out of bounds, not allowed.
uint8_t* Memory(const FakeFabric& fabric, const ibv_pd* pd, uint32_t key,
                uint64_t addr, uint64_t length, int access) {
  const auto found = fabric.regions.find(key);
  if (found == fabric.regions.end()) return nullptr;
  const FakeMr& mr = *found->second;
  const uint64_t begin = reinterpret_cast<uint64_t>(mr.addr);
  if (mr.pd != pd || (mr.access & access) != access || addr < begin ||
      length > mr.length || addr - begin > mr.length - length)
    return nullptr;
  return static_cast<uint8_t*>(mr.addr) + (addr - begin);
}

std::optional<std::vector<uint8_t>> Gather(const FakeFabric& fabric,
                                           const FakeQp& qp,
                                           const SendRequest& request) {
  if ((request.wr.send_flags & IBV_SEND_INLINE) != 0)
    return request.inline_data;
  std::vector<uint8_t> payload;
  for (const ibv_sge& sge : request.sges) {
    const uint8_t* from =
        Memory(fabric, qp.pd, sge.lkey, sge.addr, sge.length, 0);
    if (from == nullptr) return std::nullopt;
    payload.insert(payload.end(), from, from + sge.length);
  }
  return payload;
}

bool Scatter(const FakeFabric& fabric, const FakeQp& qp,
             const std::vector<ibv_sge>& sges, const uint8_t* data,
             size_t length) {
  for (const ibv_sge& sge : sges) {
    const size_t part = std::min<size_t>(sge.length, length);
    if (part == 0) continue;
    uint8_t* to = Memory(fabric, qp.pd, sge.lkey, sge.addr, sge.length,
                         IBV_ACCESS_LOCAL_WRITE);
    if (to == nullptr) return false;
    std::memcpy(to, data, part);
    data += part;
    length -= part;
  }
  return true;
}

// ---- The wire ----

// The queue pair at the other end; nullptr when the address leads nowhere.
FakeQp* PeerOf(const FakeFabric& fabric, const FakeQp& qp) {
  const auto found = fabric.queue_pairs.find(qp.attr.dest_qp_num);
  if (found == fabric.queue_pairs.end()) return nullptr;
  FakeQp& peer = *found->second;
  if (peer.qp_type != qp.qp_type ||
      peer.fake_context->device_state->disassociated)
    return nullptr;
  if (peer.device_state < IBV_QPS_RTR) return &peer;  // no address yet
  const FakePort* port = PortOf(peer);
  if (port == nullptr) return nullptr;
  if (!qp.attr.ah_attr.is_global)
    return qp.attr.ah_attr.dlid == port->attr.lid ? &peer : nullptr;
  const bool reached = std::any_of(
      port->gids.begin(), port->gids.end(), [&](const ibv_gid& gid) {
        return SameGid(gid, qp.attr.ah_attr.grh.dgid);
      });
  return reached ? &peer : nullptr;
}

// nullopt: cannot go on now, something else may let it.
using Outcome = std::optional<ibv_wc_status>;

Outcome DeliverToReceive(FakeFabric& fabric, FakeQp& qp, FakeQp& peer,
                         const SendRequest& request,
                         const std::vector<uint8_t>& payload, bool scatter) {
  const bool reliable = qp.qp_type == IBV_QPT_RC;
  if (peer.receives.empty()) {
    if (!reliable) return IBV_WC_SUCCESS;  // lost
    if (qp.attr.rnr_retry == 7) return std::nullopt;
    return IBV_WC_RNR_RETRY_EXC_ERR;
  }
  const ReceiveRequest& receive = peer.receives.front();
  const uint32_t length = static_cast<uint32_t>(payload.size());
  if (scatter && length > LengthOf(receive.sges)) {
    FinishReceive(peer, IBV_WC_LOC_LEN_ERR, 0, &request);
    Break(fabric, peer);
    return IBV_WC_REM_INV_REQ_ERR;
  }
  if (scatter && !Scatter(fabric, peer, receive.sges, payload.data(), length)) {
    FinishReceive(peer, IBV_WC_LOC_PROT_ERR, 0, &request);
    Break(fabric, peer);
    return IBV_WC_REM_OP_ERR;
  }
  FinishReceive(peer, IBV_WC_SUCCESS, length, &request);
  return IBV_WC_SUCCESS;
}

Outcome RemoteAccessError(FakeFabric& fabric, FakeQp& peer) {
  Break(fabric, peer);
  ibv_async_event event{};
  event.element.qp = &peer;
  event.event_type = IBV_EVENT_QP_ACCESS_ERR;
  PushAsyncEvent(*peer.fake_context, event);
  return IBV_WC_REM_ACCESS_ERR;
}

uint8_t* RemoteMemory(const FakeFabric& fabric, const FakeQp& peer,
                      const SendRequest& request, uint64_t length,
                      unsigned access) {
  if ((peer.attr.qp_access_flags & access) != access) return nullptr;
  return Memory(fabric, peer.pd, request.wr.wr.rdma.rkey,
                request.wr.wr.rdma.remote_addr, length,
                static_cast<int>(access));
}

Outcome Write(FakeFabric& fabric, FakeQp& qp, FakeQp& peer,
              const SendRequest& request, const std::vector<uint8_t>& payload) {
  const bool with_imm = request.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (with_imm && peer.receives.empty() && qp.qp_type == IBV_QPT_RC &&
      qp.attr.rnr_retry == 7)
    return std::nullopt;
  if (!payload.empty()) {
    uint8_t* to = RemoteMemory(fabric, peer, request, payload.size(),
                               IBV_ACCESS_REMOTE_WRITE);
    if (to == nullptr) return RemoteAccessError(fabric, peer);
    std::memcpy(to, payload.data(), payload.size());
  }
  if (!with_imm) return IBV_WC_SUCCESS;
  return DeliverToReceive(fabric, qp, peer, request, payload, false);
}

Outcome Read(FakeFabric& fabric, FakeQp& qp, FakeQp& peer,
             const SendRequest& request) {
  if (qp.attr.max_rd_atomic == 0) return std::nullopt;
  if (peer.attr.max_dest_rd_atomic == 0) return IBV_WC_REM_INV_REQ_ERR;
  const uint32_t length = LengthOf(request.sges);
  const uint8_t* from =
      RemoteMemory(fabric, peer, request, length, IBV_ACCESS_REMOTE_READ);
  if (from == nullptr) return RemoteAccessError(fabric, peer);
  if (!Scatter(fabric, qp, request.sges, from, length))
    return IBV_WC_LOC_PROT_ERR;
  return IBV_WC_SUCCESS;
}

Outcome CarryOut(FakeFabric& fabric, FakeQp& qp, const SendRequest& request) {
  const FakePort* port = PortOf(qp);
  if (port == nullptr || port->attr.state != IBV_PORT_ACTIVE)
    return IBV_WC_LOC_QP_OP_ERR;
  std::vector<uint8_t> payload;
  if (request.wr.opcode != IBV_WR_RDMA_READ) {
    auto gathered = Gather(fabric, qp, request);
    if (!gathered) return IBV_WC_LOC_PROT_ERR;
    payload = *std::move(gathered);
  }

  const bool reliable = qp.qp_type == IBV_QPT_RC;
  FakeQp* peer = PeerOf(fabric, qp);
  if (peer != nullptr && peer->device_state < IBV_QPS_RTR && reliable)
    return std::nullopt;
  const bool reached = peer != nullptr && peer->device_state >= IBV_QPS_RTR &&
                       peer->device_state != IBV_QPS_ERR &&
                       (!reliable || peer->receive_psn == qp.send_psn);
  if (!reached) return reliable ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;

  Outcome outcome;
  switch (request.wr.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      outcome = DeliverToReceive(fabric, qp, *peer, request, payload, true);
      break;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      outcome = Write(fabric, qp, *peer, request, payload);
      break;
    default:
      outcome = Read(fabric, qp, *peer, request);
  }
  if (outcome == IBV_WC_SUCCESS) {
    const uint32_t mtu = 128u << qp.attr.path_mtu;
    const size_t length = request.wr.opcode == IBV_WR_RDMA_READ
                              ? LengthOf(request.sges)
                              : payload.size();
    const uint32_t packets =
        static_cast<uint32_t>(std::max<size_t>(1, (length + mtu - 1) / mtu));
    qp.send_psn = (qp.send_psn + packets) & 0xffffff;
    peer->receive_psn = (peer->receive_psn + packets) & 0xffffff;
  }
  return outcome;
}

// ---- Verbs ----

int CheckSend(const FakeQp& qp, const ibv_send_wr& wr) {
  if (wr.num_sge < 0 ||
      static_cast<uint32_t>(wr.num_sge) > qp.rings.cap.max_send_sge)
    return EINVAL;
  if (qp.qp_type == IBV_QPT_UD) return EINVAL;  // the fake has no AHs
  switch (wr.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      break;
    case IBV_WR_RDMA_READ:
      if (qp.qp_type != IBV_QPT_RC) return EINVAL;
      break;
    default:
      return EINVAL;
  }
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) return 0;
  uint64_t length = 0;
  for (int i = 0; i < wr.num_sge; ++i) length += wr.sg_list[i].length;
  return length > qp.rings.cap.max_inline_data ? EINVAL : 0;
}

int PostOneSend(FakeFabric& fabric, FakeQp& qp, const ibv_send_wr& wr) {
  if (qp.device_state < IBV_QPS_RTS) return EINVAL;
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
  if (qp.device_state == IBV_QPS_ERR) Flush(*state.fabric, qp);
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
  if (qp.device_state == IBV_QPS_ERR) Flush(*state.fabric, qp);
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
    if (!DeviceOf(*cqe.qp).slots_freed_by_poll) continue;
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

bool CarryOne(FakeFabric& fabric, FakeQp& qp) {
  if (qp.sends.empty() || qp.device_state != IBV_QPS_RTS ||
      qp.fake_context->device_state->disassociated)
    return false;
  const Outcome outcome = CarryOut(fabric, qp, qp.sends.front());
  if (!outcome) return false;
  FinishSend(fabric, qp, *outcome);
  if (*outcome != IBV_WC_SUCCESS) Break(fabric, qp);
  return true;
}

void CarryAll(FakeFabric& fabric) {
  for (bool moved = true; moved;) {
    moved = false;
    const auto pending = fabric.pending;
    for (const auto& [qp_num, qp] : pending)
      while (CarryOne(fabric, *qp)) moved = true;
  }
}

void Flush(FakeFabric& fabric, FakeQp& qp) {
  while (!qp.sends.empty()) FinishSend(fabric, qp, IBV_WC_WR_FLUSH_ERR);
  while (!qp.receives.empty())
    FinishReceive(qp, IBV_WC_WR_FLUSH_ERR, 0, nullptr);
}

void PushAsyncEvent(FakeContext& context, const ibv_async_event& event) {
  context.events.push_back(event);
  context.async.Add();
}

}  // namespace purser::fakes
