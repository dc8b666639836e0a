// SPDX-License-Identifier: Apache-2.0
#include "sidecar/modify_attributes.h"

#include <bit>
#include <cstring>

#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr uint32_t kMax4Bits = 0xf;
constexpr uint32_t kMax8Bits = 0xff;
constexpr uint32_t kMax16Bits = 0xffff;
constexpr uint32_t kMax20Bits = 0xfffff;
constexpr uint32_t kMax24Bits = 0xffffff;
constexpr uint32_t kDefaultHopLimit = 64;
constexpr uint32_t kAccessFlags =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
    IBV_ACCESS_REMOTE_ATOMIC;

template <typename T>
absl::Status Set(const char* field, uint32_t value, uint32_t max, T& to) {
  if (value > max)
    return absl::InvalidArgumentError(fmt::format(
        "{} {} is above {}, the largest there is", field, value, max));
  to = static_cast<T>(value);
  return absl::OkStatus();
}

absl::Status SetPathMtu(uint32_t bytes, const Device& device, ibv_mtu& to) {
  if (bytes < 256 || bytes > 4096 || !std::has_single_bit(bytes))
    return absl::InvalidArgumentError(fmt::format(
        "path_mtu {} is none of 256, 512, 1024, 2048, 4096", bytes));
  to = static_cast<ibv_mtu>(std::bit_width(bytes) - 8);
  PURSER_ASSIGN_OR_RETURN(const ibv_port_attr port, device.QueryPort());
  if (to > port.active_mtu)
    return absl::InvalidArgumentError(fmt::format(
        "path_mtu {} is above {}, the active MTU of {} port {}: larger packets "
        "would be lost",
        bytes, 128u << port.active_mtu, device.name(), device.port_num()));
  return absl::OkStatus();
}

absl::Status SetPortNum(uint32_t port_num, const Device& device, uint8_t& to) {
  if (port_num != device.port_num())
    return absl::InvalidArgumentError(
        fmt::format("port_num {}: the sidecar uses port {} of {}", port_num,
                    device.port_num(), device.name()));
  to = device.port_num();
  return absl::OkStatus();
}

absl::Status SetAccessFlags(uint32_t flags, unsigned int& to) {
  if ((flags & ~kAccessFlags) != 0)
    return absl::InvalidArgumentError(fmt::format(
        "qp_access_flags {:#x}: only LOCAL_WRITE (1), REMOTE_WRITE (2), "
        "REMOTE_READ (4) and REMOTE_ATOMIC (8) are taken",
        flags));
  to = flags;
  return absl::OkStatus();
}

absl::Status SetGlobalRoute(const v1::AddressVector& from, const Device& device,
                            ibv_ah_attr& to) {
  if (from.dgid().size() != sizeof(to.grh.dgid.raw))
    return absl::InvalidArgumentError(
        fmt::format("ah_attr.dgid has {} bytes; a GID has {}",
                    from.dgid().size(), sizeof(to.grh.dgid.raw)));
  to.is_global = 1;
  std::memcpy(to.grh.dgid.raw, from.dgid().data(), sizeof(to.grh.dgid.raw));
  uint32_t sgid_index = from.sgid_index();
  if (!from.has_sgid_index()) {
    PURSER_ASSIGN_OR_RETURN(const rdma::Gid gid, device.PreferredGid());
    sgid_index = static_cast<uint32_t>(gid.index);
  }
  PURSER_RETURN_IF_ERROR(
      Set("ah_attr.sgid_index", sgid_index, kMax8Bits, to.grh.sgid_index));
  PURSER_RETURN_IF_ERROR(
      Set("ah_attr.hop_limit",
          from.hop_limit() == 0 ? kDefaultHopLimit : from.hop_limit(),
          kMax8Bits, to.grh.hop_limit));
  PURSER_RETURN_IF_ERROR(Set("ah_attr.traffic_class", from.traffic_class(),
                             kMax8Bits, to.grh.traffic_class));
  return Set("ah_attr.flow_label", from.flow_label(), kMax20Bits,
             to.grh.flow_label);
}

absl::Status SetAddressVector(const v1::AddressVector& from,
                              const Device& device, ibv_ah_attr& to) {
  to.port_num = device.port_num();
  PURSER_RETURN_IF_ERROR(Set("ah_attr.dlid", from.dlid(), kMax16Bits, to.dlid));
  PURSER_RETURN_IF_ERROR(Set("ah_attr.sl", from.sl(), kMax4Bits, to.sl));
  if (!from.dgid().empty()) return SetGlobalRoute(from, device, to);
  PURSER_ASSIGN_OR_RETURN(const ibv_port_attr port, device.QueryPort());
  if (port.link_layer == IBV_LINK_LAYER_ETHERNET)
    return absl::InvalidArgumentError(
        fmt::format("ah_attr.dgid is missing: {} port {} is Ethernet, where "
                    "peers are addressed by GID",
                    device.name(), device.port_num()));
  return absl::OkStatus();
}

absl::Status SetState(v1::QueuePairState state, ibv_qp_state& to) {
  if (state < v1::QUEUE_PAIR_STATE_RESET || state > v1::QUEUE_PAIR_STATE_ERR)
    return absl::InvalidArgumentError(
        fmt::format("state {} is none of QueuePairState", int{state}));
  to = static_cast<ibv_qp_state>(state - 1);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModifyAttributes> ModifyAttributesOf(
    const v1::ModifyQueuePairRequest& request, const Device& device) {
  ModifyAttributes result{.mask = IBV_QP_STATE};
  ibv_qp_attr& attr = result.attr;
  PURSER_RETURN_IF_ERROR(SetState(request.state(), attr.qp_state));
  absl::Status status;
  auto take = [&](bool present, int bit, auto set) {
    if (!present || !status.ok()) return;
    result.mask |= bit;
    status = set();
  };
  auto number = [&](bool present, int bit, const char* field, uint32_t value,
                    uint32_t max, auto& to) {
    take(present, bit, [&] { return Set(field, value, max, to); });
  };
  const v1::ModifyQueuePairRequest& r = request;
  take(r.has_port_num(), IBV_QP_PORT,
       [&] { return SetPortNum(r.port_num(), device, attr.port_num); });
  take(r.has_qp_access_flags(), IBV_QP_ACCESS_FLAGS, [&] {
    return SetAccessFlags(r.qp_access_flags(), attr.qp_access_flags);
  });
  take(r.has_path_mtu(), IBV_QP_PATH_MTU,
       [&] { return SetPathMtu(r.path_mtu(), device, attr.path_mtu); });
  take(r.has_ah_attr(), IBV_QP_AV,
       [&] { return SetAddressVector(r.ah_attr(), device, attr.ah_attr); });
  number(r.has_pkey_index(), IBV_QP_PKEY_INDEX, "pkey_index", r.pkey_index(),
         kMax16Bits, attr.pkey_index);
  number(r.has_qkey(), IBV_QP_QKEY, "qkey", r.qkey(), UINT32_MAX, attr.qkey);
  number(r.has_dest_qp_num(), IBV_QP_DEST_QPN, "dest_qp_num", r.dest_qp_num(),
         kMax24Bits, attr.dest_qp_num);
  number(r.has_rq_psn(), IBV_QP_RQ_PSN, "rq_psn", r.rq_psn(), kMax24Bits,
         attr.rq_psn);
  number(r.has_sq_psn(), IBV_QP_SQ_PSN, "sq_psn", r.sq_psn(), kMax24Bits,
         attr.sq_psn);
  number(r.has_max_dest_rd_atomic(), IBV_QP_MAX_DEST_RD_ATOMIC,
         "max_dest_rd_atomic", r.max_dest_rd_atomic(), kMax8Bits,
         attr.max_dest_rd_atomic);
  number(r.has_max_rd_atomic(), IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic",
         r.max_rd_atomic(), kMax8Bits, attr.max_rd_atomic);
  number(r.has_min_rnr_timer(), IBV_QP_MIN_RNR_TIMER, "min_rnr_timer",
         r.min_rnr_timer(), 31, attr.min_rnr_timer);
  number(r.has_timeout(), IBV_QP_TIMEOUT, "timeout", r.timeout(), 31,
         attr.timeout);
  number(r.has_retry_cnt(), IBV_QP_RETRY_CNT, "retry_cnt", r.retry_cnt(), 7,
         attr.retry_cnt);
  number(r.has_rnr_retry(), IBV_QP_RNR_RETRY, "rnr_retry", r.rnr_retry(), 7,
         attr.rnr_retry);
  PURSER_RETURN_IF_ERROR(status);
  return result;
}

}  // namespace purser::sidecar
