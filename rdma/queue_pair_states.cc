// SPDX-License-Identifier: Apache-2.0
#include "rdma/queue_pair_states.h"

#include <cstdint>

#include "spdlog/fmt/fmt.h"

namespace purser::rdma {
namespace {

// Types by bit, for the rows of the table.
enum : uint32_t {
  kRc = 1u << 0,
  kUc = 1u << 1,
  kUd = 1u << 2,
  kRaw = 1u << 3,
  kXrcSend = 1u << 4,
  kXrcRecv = 1u << 5,
  kXrc = kXrcSend | kXrcRecv,
  kAll = kRc | kUc | kUd | kRaw | kXrc,
};

constexpr int kPkeyPort = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
constexpr int kPath =
    IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kRtrOptional =
    IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
constexpr int kRetries =
    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int kRunOptional = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH |
                             IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;
constexpr int kSqdOptional = IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
                             IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE;
constexpr int kSqdConnected = kSqdOptional | IBV_QP_PORT | IBV_QP_TIMEOUT;

struct Edge {
  ibv_qp_state from, to;
  uint32_t types;
  int required = 0;
  int optional = 0;
};

// Edges to RESET and ERR take no attribute, so EdgeFor() has them without rows.
// A legal edge whose type has no row takes none either.
constexpr Edge kEdges[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kRc | kUc | kXrc,
     kPkeyPort | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_RESET, IBV_QPS_INIT, kUd, kPkeyPort | IBV_QP_QKEY},
    {IBV_QPS_RESET, IBV_QPS_INIT, kRaw, IBV_QP_PORT},

    {IBV_QPS_INIT, IBV_QPS_INIT, kRc | kUc | kXrc, 0,
     kPkeyPort | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_INIT, kUd, 0, kPkeyPort | IBV_QP_QKEY},

    {IBV_QPS_INIT, IBV_QPS_RTR, kRc | kXrcRecv,
     kPath | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, kRtrOptional},
    {IBV_QPS_INIT, IBV_QPS_RTR, kUc | kXrcSend, kPath, kRtrOptional},
    {IBV_QPS_INIT, IBV_QPS_RTR, kUd, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},

    {IBV_QPS_RTR, IBV_QPS_RTS, kRc, IBV_QP_TIMEOUT | kRetries | IBV_QP_SQ_PSN,
     kRunOptional | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTR, IBV_QPS_RTS, kXrcSend,
     IBV_QP_TIMEOUT | kRetries | IBV_QP_SQ_PSN, kRunOptional},
    {IBV_QPS_RTR, IBV_QPS_RTS, kXrcRecv, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN,
     kRunOptional | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTR, IBV_QPS_RTS, kUc, IBV_QP_SQ_PSN, kRunOptional},
    {IBV_QPS_RTR, IBV_QPS_RTS, kUd, IBV_QP_SQ_PSN,
     IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, kRaw, 0, IBV_QP_RATE_LIMIT},

    {IBV_QPS_RTS, IBV_QPS_RTS, kRc | kXrcRecv, 0,
     kRunOptional | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, kUc | kXrcSend, 0, kRunOptional},
    {IBV_QPS_RTS, IBV_QPS_RTS, kUd, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, kRaw, 0, IBV_QP_RATE_LIMIT},

    {IBV_QPS_RTS, IBV_QPS_SQD, kAll & ~kRaw, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},

    {IBV_QPS_SQD, IBV_QPS_RTS, kRc | kXrcRecv, 0,
     kRunOptional | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_RTS, kUc | kXrcSend, 0, kRunOptional},
    {IBV_QPS_SQD, IBV_QPS_RTS, kUd, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},

    {IBV_QPS_SQD, IBV_QPS_SQD, kRc, 0,
     kSqdConnected | kRetries | IBV_QP_MAX_DEST_RD_ATOMIC |
         IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_SQD, kXrcSend, 0, kSqdConnected | kRetries},
    {IBV_QPS_SQD, IBV_QPS_SQD, kXrcRecv, 0,
     kSqdConnected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_SQD, kUc, 0, kSqdOptional},
    {IBV_QPS_SQD, IBV_QPS_SQD, kUd, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},

    // RC has no recovery from SQE (it goes to ERR), though the edge is legal.
    {IBV_QPS_SQE, IBV_QPS_RTS, kUd, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, kUc, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
};

constexpr bool Legal(ibv_qp_state from, ibv_qp_state to) {
  if (from > IBV_QPS_ERR) return false;
  if (to == IBV_QPS_RESET) return true;
  if (to == IBV_QPS_ERR) return from != IBV_QPS_RESET;
  switch (from) {
    case IBV_QPS_RESET:
      return to == IBV_QPS_INIT;
    case IBV_QPS_INIT:
      return to == IBV_QPS_INIT || to == IBV_QPS_RTR;
    case IBV_QPS_RTR:
    case IBV_QPS_SQE:
      return to == IBV_QPS_RTS;
    case IBV_QPS_RTS:
    case IBV_QPS_SQD:
      return to == IBV_QPS_RTS || to == IBV_QPS_SQD;
    default:
      return false;
  }
}

constexpr uint32_t TypeBit(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return kRc;
    case IBV_QPT_UC:
      return kUc;
    case IBV_QPT_UD:
      return kUd;
    case IBV_QPT_RAW_PACKET:
      return kRaw;
    case IBV_QPT_XRC_SEND:
      return kXrcSend;
    case IBV_QPT_XRC_RECV:
      return kXrcRecv;
    default:
      return 0;
  }
}

constexpr Edge EdgeFor(uint32_t type, ibv_qp_state from, ibv_qp_state to) {
  for (const Edge& edge : kEdges)
    if (edge.from == from && edge.to == to && (edge.types & type) != 0)
      return edge;
  return {from, to, type};
}

// Names are the fields of ibv_qp_attr, which callers set, beside those of the
// mask.
struct AttrName {
  int bit;
  const char* mask;
  const char* field;
};
constexpr AttrName kAttrNames[] = {
    {IBV_QP_STATE, "STATE", "qp_state"},
    {IBV_QP_CUR_STATE, "CUR_STATE", "cur_qp_state"},
    {IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY", "en_sqd_async_notify"},
    {IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS", "qp_access_flags"},
    {IBV_QP_PKEY_INDEX, "PKEY_INDEX", "pkey_index"},
    {IBV_QP_PORT, "PORT", "port_num"},
    {IBV_QP_QKEY, "QKEY", "qkey"},
    {IBV_QP_AV, "AV", "ah_attr"},
    {IBV_QP_PATH_MTU, "PATH_MTU", "path_mtu"},
    {IBV_QP_TIMEOUT, "TIMEOUT", "timeout"},
    {IBV_QP_RETRY_CNT, "RETRY_CNT", "retry_cnt"},
    {IBV_QP_RNR_RETRY, "RNR_RETRY", "rnr_retry"},
    {IBV_QP_RQ_PSN, "RQ_PSN", "rq_psn"},
    {IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC", "max_rd_atomic"},
    {IBV_QP_ALT_PATH, "ALT_PATH", "alt_ah_attr"},
    {IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER", "min_rnr_timer"},
    {IBV_QP_SQ_PSN, "SQ_PSN", "sq_psn"},
    {IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC", "max_dest_rd_atomic"},
    {IBV_QP_PATH_MIG_STATE, "PATH_MIG_STATE", "path_mig_state"},
    {IBV_QP_CAP, "CAP", "cap"},
    {IBV_QP_DEST_QPN, "DEST_QPN", "dest_qp_num"},
    {IBV_QP_RATE_LIMIT, "RATE_LIMIT", "rate_limit"},
};

std::string Names(int mask, const char* AttrName::*name,
                  const char* separator) {
  std::string names;
  const auto append = [&](const std::string& one) {
    if (!names.empty()) names += separator;
    names += one;
  };
  for (const AttrName& attr : kAttrNames) {
    if ((mask & attr.bit) != 0) append(attr.*name);
    mask &= ~attr.bit;
  }
  if (mask != 0) append(fmt::format("{:#x}", mask));
  return names;
}

std::string FieldNames(int mask) { return Names(mask, &AttrName::field, ", "); }

std::string EdgeName(ibv_qp_state from, ibv_qp_state to) {
  return fmt::format("{} -> {}", StateName(from), StateName(to));
}

std::string LegalFrom(ibv_qp_state from) {
  std::string names;
  for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; ++to) {
    if (!Legal(from, static_cast<ibv_qp_state>(to))) continue;
    if (!names.empty()) names += ", ";
    names += StateName(static_cast<ibv_qp_state>(to));
  }
  return names;
}

// Where an attribute that is surplus on one edge belongs: an edge that requires
// it, else one that takes it.
std::string HomeOf(uint32_t type, int bit) {
  const Edge* home = nullptr;
  for (const Edge& edge : kEdges) {
    if ((edge.types & type) == 0) continue;
    if ((edge.required & bit) != 0) return EdgeName(edge.from, edge.to);
    if (home == nullptr && (edge.optional & bit) != 0) home = &edge;
  }
  return home == nullptr ? "" : EdgeName(home->from, home->to);
}

std::string DescribeSurplus(uint32_t type, ibv_qp_type qp_type, int surplus) {
  std::string text;
  for (const AttrName& attr : kAttrNames) {
    if ((surplus & attr.bit) == 0) continue;
    surplus &= ~attr.bit;
    const std::string home = HomeOf(type, attr.bit);
    text += text.empty() ? "" : ", ";
    text += home.empty()
                ? fmt::format("{}, which no edge of {} takes", attr.field,
                              QueuePairTypeName(qp_type))
                : fmt::format("{}, which belongs to {}", attr.field, home);
  }
  if (surplus != 0) {
    text += text.empty() ? "" : ", ";
    text += fmt::format("unknown attribute bits {:#x}", surplus);
  }
  return text;
}

}  // namespace

absl::Status CheckModify(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to,
                         int attr_mask) {
  if (!Legal(from, to)) {
    return absl::FailedPreconditionError(
        fmt::format("{} is no legal edge; from {} go to {}", EdgeName(from, to),
                    StateName(from), LegalFrom(from)));
  }
  const uint32_t bit = TypeBit(type);
  if (bit == 0) return absl::OkStatus();  // a driver's own type, its own rule
  const Edge edge = EdgeFor(bit, from, to);
  const int missing = edge.required & ~attr_mask;
  const int surplus =
      attr_mask & ~(edge.required | edge.optional | IBV_QP_STATE);
  if (missing == 0 && surplus == 0) return absl::OkStatus();

  std::string message =
      fmt::format("{} of {} {} queue pair", EdgeName(from, to),
                  type == IBV_QPT_UC || type == IBV_QPT_UD ? "a" : "an",
                  QueuePairTypeName(type));
  if (missing != 0) message += " needs " + FieldNames(missing);
  if (missing != 0 && surplus != 0) message += ";";
  if (surplus != 0)
    message += " may not set " + DescribeSurplus(bit, type, surplus);
  return absl::InvalidArgumentError(message);
}

const char* StateName(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      return "RESET";
    case IBV_QPS_INIT:
      return "INIT";
    case IBV_QPS_RTR:
      return "RTR";
    case IBV_QPS_RTS:
      return "RTS";
    case IBV_QPS_SQD:
      return "SQD";
    case IBV_QPS_SQE:
      return "SQE";
    case IBV_QPS_ERR:
      return "ERR";
    default:
      return "UNKNOWN";
  }
}

const char* QueuePairTypeName(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_RAW_PACKET:
      return "RAW_PACKET";
    case IBV_QPT_XRC_SEND:
      return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
      return "XRC_RECV";
    case IBV_QPT_DRIVER:
      return "DRIVER";
    default:
      return "UNKNOWN";
  }
}

std::string AttrMaskNames(int attr_mask) {
  return Names(attr_mask, &AttrName::mask, "|");
}

}  // namespace purser::rdma
