// SPDX-License-Identifier: Apache-2.0
//
// Devices for the verbs fake, with the sizing rules of their providers.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "tests/fakes/fake_verbs_state.h"

namespace purser::fakes {
namespace {

constexpr uint64_t kPlainSendOps =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
    IBV_QP_EX_WITH_RDMA_READ;
constexpr uint64_t kAtomicSendOps =
    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
constexpr uint64_t kRxeSendOps =
    kPlainSendOps | kAtomicSendOps | IBV_QP_EX_WITH_LOCAL_INV |
    IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;

// Kernel's drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_init_req: one slot of a
// power of two stays empty; Linux 6.1 writes the counts back as asked.
int SizeRxe(ibv_qp_type type, const ibv_qp_cap& asked, uint64_t send_ops_flags,
            FakeRings& rings) {
  if (type != IBV_QPT_RC && type != IBV_QPT_UC && type != IBV_QPT_UD)
    return EOPNOTSUPP;
  if ((send_ops_flags & ~kRxeSendOps) != 0) return EOPNOTSUPP;
  rings.send_slots = std::bit_ceil(asked.max_send_wr + 1) - 1;
  rings.recv_slots = std::bit_ceil(asked.max_recv_wr + 1) - 1;
  rings.cap = asked;
  rings.cap.max_inline_data = std::max(
      asked.max_send_sge * uint32_t{sizeof(ibv_sge)}, asked.max_inline_data);
  rings.cap.max_send_sge = rings.cap.max_inline_data / sizeof(ibv_sge);
  return 0;
}

uint32_t SizeRxeCq(uint32_t asked) { return std::bit_ceil(asked + 1) - 1; }

uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// rdma-core's providers/mlx5/verbs.c, _sq_overhead: of RC and UC.
uint64_t Mlx5SendOverhead(uint64_t send_ops_flags) {
  if (send_ops_flags == 0 ||
      (send_ops_flags & ~(kPlainSendOps | kAtomicSendOps)) != 0)
    return 192;
  if ((send_ops_flags & kAtomicSendOps) != 0) return 48;
  constexpr uint64_t kSends =
      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  return (send_ops_flags & ~kSends) != 0 ? 32 : 16;
}

// rdma-core's providers/mlx5/verbs.c, mlx5_calc_wq_size.
int SizeMlx5(ibv_qp_type type, const ibv_qp_cap& asked, uint64_t send_ops_flags,
             FakeRings& rings) {
  constexpr uint64_t kMaxSendWqe = 1024, kMaxSendRing = 32768 * 64;
  uint64_t overhead = Mlx5SendOverhead(send_ops_flags);
  if (type == IBV_QPT_UD) overhead = 64;
  if (type == IBV_QPT_RAW_PACKET) overhead = 48;
  uint64_t wqe = overhead + 16 * uint64_t{asked.max_send_sge};
  if (asked.max_inline_data > 0)
    wqe = std::max(wqe,
                   overhead + RoundUp(4 + uint64_t{asked.max_inline_data}, 16));
  wqe = RoundUp(wqe, 64);
  const uint64_t send_ring = std::bit_ceil(asked.max_send_wr * wqe);
  if (wqe > kMaxSendWqe || send_ring > kMaxSendRing) return EINVAL;

  rings.cap = asked;
  rings.cap.max_send_wr =
      asked.max_send_wr == 0 ? 0 : static_cast<uint32_t>(send_ring / wqe);
  rings.cap.max_inline_data = static_cast<uint32_t>(wqe - overhead - 4);
  rings.cap.max_recv_wr =
      asked.max_recv_wr == 0 ? 0 : std::bit_ceil(asked.max_recv_wr);
  rings.cap.max_recv_sge = std::bit_ceil(std::max(asked.max_recv_sge, 1u));
  if (rings.cap.max_recv_wr != 0)
    rings.cap.max_recv_wr =
        std::max(rings.cap.max_recv_wr, 64 / (16 * rings.cap.max_recv_sge));
  rings.send_slots = rings.cap.max_send_wr;
  rings.recv_slots = rings.cap.max_recv_wr;
  return 0;
}

uint32_t SizeMlx5Cq(uint32_t asked) { return std::bit_ceil(asked + 1) - 1; }

ibv_gid LinkLocalGid(uint8_t last) {
  ibv_gid gid{};
  gid.raw[0] = 0xfe;
  gid.raw[1] = 0x80;
  gid.raw[8] = 0x02;
  gid.raw[11] = 0xff;
  gid.raw[12] = 0xfe;
  gid.raw[15] = last;
  return gid;
}

FakePort EthernetPort(int gid_table_length) {
  FakePort port;
  port.attr.state = IBV_PORT_ACTIVE;
  port.attr.phys_state = 5;
  port.attr.max_mtu = IBV_MTU_4096;
  port.attr.active_mtu = IBV_MTU_1024;
  port.attr.gid_tbl_len = gid_table_length;
  port.attr.pkey_tbl_len = 1;
  port.attr.max_msg_sz = 1u << 23;
  port.attr.link_layer = IBV_LINK_LAYER_ETHERNET;
  port.gids.resize(static_cast<size_t>(gid_table_length));
  return port;
}

}  // namespace

ibv_gid Ipv4Gid(std::string_view ipv4) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  const char* at = ipv4.data();
  const char* const end = ipv4.data() + ipv4.size();
  for (int i = 12; i < 16; ++i) {
    const auto [next, error] = std::from_chars(at, end, gid.raw[i]);
    if (error != std::errc() || (i < 15 && (next == end || *next != '.')) ||
        (i == 15 && next != end))
      Die("Ipv4Gid of \"" + std::string(ipv4) + "\"");
    at = i < 15 ? next + 1 : next;
  }
  return gid;
}

FakeDevice RxeDevice(std::string name, std::string_view ipv4) {
  FakeDevice device;
  device.name = std::move(name);
  device.attr.max_qp = 1048560;
  device.attr.max_qp_wr = 1048576;
  device.attr.max_sge = 32;
  device.attr.max_sge_rd = 32;
  device.attr.max_cq = 1048576;
  device.attr.max_cqe = 32767;
  device.attr.max_mr = 524287;
  device.attr.max_mr_size = UINT64_MAX;
  device.attr.max_pd = 1048576;
  device.attr.max_qp_rd_atom = 128;
  device.attr.max_qp_init_rd_atom = 128;
  device.attr.max_srq = 917503;
  device.attr.max_srq_wr = 1048576;
  device.attr.max_srq_sge = 27;
  device.attr.phys_port_cnt = 1;
  device.max_inline_data = 512;
  device.ports.push_back(EthernetPort(1024));
  device.ports[0].gids[0] = LinkLocalGid(1);
  device.ports[0].gids[1] = Ipv4Gid(ipv4);
  device.size_queue_pair = SizeRxe;
  device.size_completion_queue = SizeRxeCq;
  return device;
}

FakeDevice Mlx5Device(std::string name, std::string_view ipv4) {
  FakeDevice device;
  device.name = std::move(name);
  device.attr.max_qp = 131072;
  device.attr.max_qp_wr = 32768;
  device.attr.max_sge = 30;
  device.attr.max_sge_rd = 30;
  device.attr.max_cq = 16777216;
  device.attr.max_cqe = 4194303;
  device.attr.max_mr = 16777216;
  device.attr.max_mr_size = UINT64_MAX;
  device.attr.max_pd = 8388608;
  device.attr.max_srq = 8388608;
  device.attr.max_srq_wr = 32767;
  device.attr.max_srq_sge = 31;
  device.attr.max_qp_rd_atom = 16;
  device.attr.max_qp_init_rd_atom = 16;
  device.attr.phys_port_cnt = 1;
  device.attr.vendor_id = 0x15b3;
  device.attr.vendor_part_id = 0x1017;
  device.max_inline_data = 1024;
  device.ports.push_back(EthernetPort(256));
  device.ports[0].gids[0] = device.ports[0].gids[1] = LinkLocalGid(2);
  device.ports[0].gids[2] = device.ports[0].gids[3] = Ipv4Gid(ipv4);
  device.size_queue_pair = SizeMlx5;
  device.size_completion_queue = SizeMlx5Cq;
  device.too_many_errno = ENOMEM;
  device.hardware = true;
  return device;
}

}  // namespace purser::fakes
