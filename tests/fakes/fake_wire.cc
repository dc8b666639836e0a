// SPDX-License-Identifier: Apache-2.0
//
// What the verbs fake does with sends that were posted: moving data between
// queue pairs, and completing.
#include <algorithm>
#include <cstring>
#include <optional>

#include "tests/fakes/fake_verbs_state.h"

namespace purser::fakes {
namespace {

const FakePort* PortOf(const FakeQp& qp) {
  const auto& ports = qp.fake_context->device_state->device.ports;
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

bool CarriesImmediate(const SendRequest& request) {
  return request.wr.opcode == IBV_WR_SEND_WITH_IMM ||
         request.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

uint32_t LengthOf(const std::vector<ibv_sge>& sges) {
  uint32_t length = 0;
  for (const ibv_sge& sge : sges) length += sge.length;
  return length;
}

// Takes the first send off its queue.
void FinishSend(VerbsFabric& fabric, FakeQp& qp, ibv_wc_status status) {
  const SendRequest request = std::move(qp.sends.front());
  qp.sends.pop_front();
  if (qp.sends.empty()) fabric.pending.erase(qp.qp_num);
  if (!IsHardware(qp)) qp.sends_freed = request.index + 1;
  if (status == IBV_WC_SUCCESS && !qp.signal_all &&
      (request.wr.send_flags & IBV_SEND_SIGNALED) == 0)
    return;
  Cqe cqe{.qp = &qp, .is_send = true, .index = request.index};
  cqe.wc.wr_id = request.wr.wr_id;
  cqe.wc.status = status;
  cqe.wc.qp_num = qp.qp_num;
  if (status == IBV_WC_SUCCESS) {  // undefined otherwise
    cqe.wc.opcode = WcOpcode(request.wr.opcode);
    cqe.wc.byte_len = LengthOf(request.sges);
    if (CarriesImmediate(request)) cqe.wc.wc_flags = IBV_WC_WITH_IMM;
  }
  PushCqe(*static_cast<FakeCq*>(qp.send_cq), cqe);
}

// Takes the first receive off its queue. `by` is the request that consumed it;
// nullptr for a flush, which leaves a shared receive queue alone.
void FinishReceive(FakeQp& qp, ibv_wc_status status, uint32_t length,
                   const SendRequest* by) {
  FakeSrq* const srq = qp.fake_srq();
  const ReceiveRequest request = std::move(qp.inbox().front());
  qp.inbox().pop_front();
  if (!IsHardware(qp)) {
    if (srq != nullptr)
      ++srq->freed;
    else
      qp.receives_freed = request.index + 1;
  }
  Cqe cqe{.qp = &qp, .srq = srq, .index = request.index};
  cqe.wc.wr_id = request.wr_id;
  cqe.wc.status = status;
  cqe.wc.qp_num = qp.qp_num;
  if (status == IBV_WC_SUCCESS && by != nullptr) {
    cqe.solicited = (by->wr.send_flags & IBV_SEND_SOLICITED) != 0;
    cqe.wc.opcode = by->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM
                        ? IBV_WC_RECV_RDMA_WITH_IMM
                        : IBV_WC_RECV;
    cqe.wc.byte_len = length;
    if (qp.attr.ah_attr.is_global != 0) cqe.wc.wc_flags = IBV_WC_GRH;
    if (CarriesImmediate(*by)) {
      cqe.wc.wc_flags |= IBV_WC_WITH_IMM;
      cqe.wc.imm_data = by->wr.imm_data;
    }
  }
  PushCqe(*static_cast<FakeCq*>(qp.recv_cq), cqe);
}

void Break(VerbsFabric& fabric, FakeQp& qp) {
  qp.device_state = IBV_QPS_ERR;
  Flush(fabric, qp);
}

// ---- Memory ----

// The memory behind [addr, addr + length) of a key, or nullptr: no such region,
// another protection domain, out of bounds, not allowed.
uint8_t* Memory(const VerbsFabric& fabric, const ibv_pd* pd, uint32_t key,
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

std::optional<std::vector<uint8_t>> Gather(const VerbsFabric& fabric,
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

bool Scatter(const VerbsFabric& fabric, const FakeQp& qp,
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
FakeQp* PeerOf(const VerbsFabric& fabric, const FakeQp& qp) {
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

Outcome DeliverToReceive(VerbsFabric& fabric, FakeQp& qp, FakeQp& peer,
                         const SendRequest& request,
                         const std::vector<uint8_t>& payload, bool scatter) {
  const bool reliable = qp.qp_type == IBV_QPT_RC;
  if (peer.inbox().empty()) {
    if (!reliable) return IBV_WC_SUCCESS;  // lost
    if (qp.attr.rnr_retry == 7) return std::nullopt;
    return IBV_WC_RNR_RETRY_EXC_ERR;
  }
  const ReceiveRequest& receive = peer.inbox().front();
  const uint32_t length = static_cast<uint32_t>(payload.size());
  const bool hardware = IsHardware(peer);
  const auto fail = [&](ibv_wc_status here, ibv_wc_status there) {
    FinishReceive(peer, hardware ? here : IBV_WC_LOC_QP_OP_ERR, 0, &request);
    Break(fabric, peer);
    return hardware ? there : IBV_WC_REM_OP_ERR;
  };
  if (scatter && length > LengthOf(receive.sges))
    return fail(IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
  if (scatter && !Scatter(fabric, peer, receive.sges, payload.data(), length))
    return fail(IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
  FinishReceive(peer, IBV_WC_SUCCESS, length, &request);
  return IBV_WC_SUCCESS;
}

// The memory that a request names at the peer, which breaks where it may not be
// touched.
struct Remote {
  uint8_t* memory = nullptr;
  ibv_wc_status status = IBV_WC_SUCCESS;
};
Remote RemoteMemory(VerbsFabric& fabric, FakeQp& peer,
                    const SendRequest& request, uint64_t length,
                    unsigned access) {
  if ((peer.attr.qp_access_flags & access) != access) {
    Break(fabric, peer);
    return {.status = IBV_WC_REM_INV_REQ_ERR};
  }
  uint8_t* memory =
      Memory(fabric, peer.pd, request.wr.wr.rdma.rkey,
             request.wr.wr.rdma.remote_addr, length, static_cast<int>(access));
  if (memory != nullptr) return {.memory = memory};
  Break(fabric, peer);
  return {.status = IBV_WC_REM_ACCESS_ERR};
}

Outcome Write(VerbsFabric& fabric, FakeQp& qp, FakeQp& peer,
              const SendRequest& request, const std::vector<uint8_t>& payload) {
  const bool with_imm = request.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (with_imm && peer.inbox().empty() && qp.qp_type == IBV_QPT_RC &&
      qp.attr.rnr_retry == 7)
    return std::nullopt;
  if (!payload.empty()) {
    const Remote to = RemoteMemory(fabric, peer, request, payload.size(),
                                   IBV_ACCESS_REMOTE_WRITE);
    if (to.memory == nullptr) return to.status;
    std::memcpy(to.memory, payload.data(), payload.size());
  }
  if (!with_imm) return IBV_WC_SUCCESS;
  return DeliverToReceive(fabric, qp, peer, request, payload, false);
}

Outcome Read(VerbsFabric& fabric, FakeQp& qp, FakeQp& peer,
             const SendRequest& request) {
  if (qp.attr.max_rd_atomic == 0) return std::nullopt;
  if (peer.attr.max_dest_rd_atomic == 0) return IBV_WC_REM_INV_REQ_ERR;
  const uint32_t length = LengthOf(request.sges);
  const Remote from =
      RemoteMemory(fabric, peer, request, length, IBV_ACCESS_REMOTE_READ);
  if (from.memory == nullptr) return from.status;
  if (!Scatter(fabric, qp, request.sges, from.memory, length))
    return IBV_WC_LOC_PROT_ERR;
  return IBV_WC_SUCCESS;
}

bool CanCarry(ibv_qp_type type, ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return true;
    case IBV_WR_RDMA_READ:
      return type == IBV_QPT_RC;
    default:
      return false;
  }
}

Outcome CarryOut(VerbsFabric& fabric, FakeQp& qp, const SendRequest& request) {
  const FakePort* port = PortOf(qp);
  if (port == nullptr || port->attr.state != IBV_PORT_ACTIVE)
    return IBV_WC_LOC_QP_OP_ERR;
  if (!CanCarry(qp.qp_type, request.wr.opcode)) return IBV_WC_LOC_QP_OP_ERR;
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

}  // namespace

bool CarryOne(VerbsFabric& fabric, FakeQp& qp) {
  if (qp.sends.empty() || qp.device_state != IBV_QPS_RTS ||
      qp.fake_context->device_state->disassociated)
    return false;
  const Outcome outcome = CarryOut(fabric, qp, qp.sends.front());
  if (!outcome) return false;
  // One that is its own peer may have been broken by it, and flushed it.
  if (qp.sends.empty()) return true;
  FinishSend(fabric, qp, *outcome);
  if (*outcome != IBV_WC_SUCCESS) Break(fabric, qp);
  return true;
}

void CarryAll(VerbsFabric& fabric) {
  for (bool moved = true; moved;) {
    moved = false;
    const auto pending = fabric.pending;
    for (const auto& [qp_num, qp] : pending)
      while (CarryOne(fabric, *qp)) moved = true;
  }
}

void FlushSends(VerbsFabric& fabric, FakeQp& qp) {
  while (!qp.sends.empty()) FinishSend(fabric, qp, IBV_WC_WR_FLUSH_ERR);
}

void Flush(VerbsFabric& fabric, FakeQp& qp) {
  FlushSends(fabric, qp);
  while (!qp.receives.empty())
    FinishReceive(qp, IBV_WC_WR_FLUSH_ERR, 0, nullptr);
}

void PushAsyncEvent(FakeContext& context, const ibv_async_event& event) {
  context.events.push_back(event);
  context.async.Add();
}

}  // namespace purser::fakes
