// SPDX-License-Identifier: Apache-2.0
#include "rdma/resource_messages.h"

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <rdma/rdma_netlink.h>

#include <cstring>
#include <memory>

#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::rdma {
namespace {

// Where the kernel puts what, by kind.
struct KindNumbers {
  const char* name;
  int command;
  int table, entry;
  int id;  // 0: none
};

constexpr KindNumbers NumbersOf(ResourceKind kind) {
  switch (kind) {
    case ResourceKind::kContext:
      return {"contexts", RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX,
              RDMA_NLDEV_ATTR_RES_CTX_ENTRY, RDMA_NLDEV_ATTR_RES_CTXN};
    case ResourceKind::kProtectionDomain:
      return {"protection domains", RDMA_NLDEV_CMD_RES_PD_GET,
              RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY,
              RDMA_NLDEV_ATTR_RES_PDN};
    case ResourceKind::kCompletionQueue:
      return {"completion queues", RDMA_NLDEV_CMD_RES_CQ_GET,
              RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY,
              RDMA_NLDEV_ATTR_RES_CQN};
    case ResourceKind::kSharedReceiveQueue:
      return {"shared receive queues", RDMA_NLDEV_CMD_RES_SRQ_GET,
              RDMA_NLDEV_ATTR_RES_SRQ, RDMA_NLDEV_ATTR_RES_SRQ_ENTRY,
              RDMA_NLDEV_ATTR_RES_SRQN};
    case ResourceKind::kQueuePair:
      break;
  }
  return {"queue pairs", RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP,
          RDMA_NLDEV_ATTR_RES_QP_ENTRY, 0};
}

constexpr int TypeOf(int command) {
  return RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
}

std::vector<std::byte> Request(
    int command, int flags,
    std::initializer_list<std::pair<int, uint32_t>> attributes) {
  const std::unique_ptr<nl_msg, void (*)(nl_msg*)> message(
      nlmsg_alloc_simple(TypeOf(command), NLM_F_REQUEST | flags), nlmsg_free);
  if (message == nullptr) return {};
  for (const auto& [type, value] : attributes)
    nla_put_u32(message.get(), type, value);
  const nlmsghdr* header = nlmsg_hdr(message.get());
  const auto* bytes = reinterpret_cast<const std::byte*>(header);
  return {bytes, bytes + header->nlmsg_len};
}

// ---- Attributes ----

int Length(Bytes bytes) { return static_cast<int>(bytes.size()); }

Bytes PayloadOf(const nlattr* attribute) {
  return {static_cast<const std::byte*>(nla_data(attribute)),
          static_cast<size_t>(nla_len(attribute))};
}

template <typename Visit>
void ForEachAttribute(Bytes bytes, Visit visit) {
  const auto* attribute = reinterpret_cast<const nlattr*>(bytes.data());
  int left = Length(bytes);
  for (; nla_ok(attribute, left); attribute = nla_next(attribute, &left))
    visit(nla_type(attribute), PayloadOf(attribute));
}

// False when there are too few bytes.
template <typename Number>
bool Read(Bytes payload, Number* number) {
  if (payload.size() < sizeof(Number)) return false;
  std::memcpy(number, payload.data(), sizeof(Number));
  return true;
}

std::optional<uint32_t> ReadNumber(Bytes payload) {
  uint32_t number = 0;
  if (!Read(payload, &number)) return std::nullopt;
  return number;
}

std::string_view ReadText(Bytes payload) {
  const auto* text = reinterpret_cast<const char*>(payload.data());
  return {text, strnlen(text, payload.size())};
}

// ---- Messages ----

// Calls `visit` with the attributes of each message of a type; knows errors and
// ends.
template <typename Visit>
absl::StatusOr<Answer> ForEachMessage(Bytes datagram, int command,
                                      Visit visit) {
  auto* message = reinterpret_cast<nlmsghdr*>(
      const_cast<std::byte*>(datagram.data()));  // libnl takes no const
  int left = Length(datagram);
  bool any = false;
  for (; nlmsg_ok(message, left); message = nlmsg_next(message, &left)) {
    any = true;
    const Bytes body{static_cast<const std::byte*>(nlmsg_data(message)),
                     static_cast<size_t>(nlmsg_datalen(message))};
    if (message->nlmsg_type == NLMSG_DONE) return Answer::kDone;
    if (message->nlmsg_type == NLMSG_ERROR) {
      int32_t error = 0;
      if (!Read(body, &error) || error > 0)
        return absl::DataLossError("RDMA netlink: an error without a number");
      if (error == 0) return Answer::kDone;
      return absl::ErrnoToStatus(error == INT32_MIN ? EIO : -error,
                                 "RDMA netlink");
    }
    if (message->nlmsg_type != TypeOf(command)) continue;
    visit(body);
    if ((message->nlmsg_flags & NLM_F_MULTI) == 0) return Answer::kDone;
  }
  if (!any) return absl::DataLossError("RDMA netlink: not a message");
  return Answer::kMore;
}

void ReadField(int type, Bytes payload, const KindNumbers& numbers,
               ResourceRecord& record) {
  if (type == numbers.id) record.id = ReadNumber(payload);
  switch (type) {
    case RDMA_NLDEV_ATTR_RES_CTXN:
      record.context = ReadNumber(payload);
      break;
    case RDMA_NLDEV_ATTR_RES_PDN:
      record.protection_domain = ReadNumber(payload);
      break;
    case RDMA_NLDEV_ATTR_RES_PID:
      record.pid = ReadNumber(payload);
      break;
    case RDMA_NLDEV_ATTR_RES_KERN_NAME:
      record.kernel_owner = ReadText(payload);
      break;
    case RDMA_NLDEV_ATTR_RES_LQPN:
      Read(payload, &record.local_qpn);
      break;
    case RDMA_NLDEV_ATTR_RES_RQPN:
      record.remote_qpn = ReadNumber(payload);
      break;
    case RDMA_NLDEV_ATTR_RES_TYPE:
      Read(payload, &record.type);
      break;
    case RDMA_NLDEV_ATTR_RES_STATE:
      Read(payload, &record.state);
      break;
    case RDMA_NLDEV_ATTR_RES_CQE:
      Read(payload, &record.cqe);
      break;
    case RDMA_NLDEV_ATTR_DRIVER:
      record.driver = payload;
      break;
    default:
      break;
  }
}

}  // namespace

const char* ResourceKindName(ResourceKind kind) { return NumbersOf(kind).name; }

std::vector<std::byte> DevicesRequest() {
  return Request(RDMA_NLDEV_CMD_GET, NLM_F_DUMP, {});
}

std::vector<std::byte> NamespaceModeRequest() {
  return Request(RDMA_NLDEV_CMD_SYS_GET, 0, {});
}

std::vector<std::byte> ResourcesRequest(ResourceKind kind,
                                        uint32_t device_index) {
  return Request(NumbersOf(kind).command, NLM_F_DUMP,
                 {{RDMA_NLDEV_ATTR_DEV_INDEX, device_index}});
}

std::vector<std::byte> RawQueuePairRequest(uint32_t device_index,
                                           uint32_t local_qpn) {
  return Request(RDMA_NLDEV_CMD_RES_QP_GET_RAW, 0,
                 {{RDMA_NLDEV_ATTR_DEV_INDEX, device_index},
                  {RDMA_NLDEV_ATTR_RES_LQPN, local_qpn}});
}

absl::StatusOr<Answer> ParseDevices(Bytes datagram,
                                    std::vector<NetlinkDevice>* devices) {
  return ForEachMessage(datagram, RDMA_NLDEV_CMD_GET, [&](Bytes body) {
    NetlinkDevice device;
    bool has_index = false;
    ForEachAttribute(body, [&](int type, Bytes payload) {
      if (type == RDMA_NLDEV_ATTR_DEV_INDEX)
        has_index = Read(payload, &device.index);
      if (type == RDMA_NLDEV_ATTR_DEV_NAME) device.name = ReadText(payload);
    });
    if (has_index && !device.name.empty())
      devices->push_back(std::move(device));
  });
}

absl::StatusOr<Answer> ParseNamespaceMode(Bytes datagram,
                                          std::optional<NamespaceMode>* mode) {
  return ForEachMessage(datagram, RDMA_NLDEV_CMD_SYS_GET, [&](Bytes body) {
    ForEachAttribute(body, [&](int type, Bytes payload) {
      uint8_t shared = 0;
      if (type == RDMA_NLDEV_SYS_ATTR_NETNS_MODE && Read(payload, &shared))
        *mode =
            shared != 0 ? NamespaceMode::kShared : NamespaceMode::kExclusive;
    });
  });
}

absl::StatusOr<Answer> ParseResources(
    Bytes datagram, ResourceKind kind,
    absl::FunctionRef<void(const ResourceRecord&)> visit) {
  const KindNumbers numbers = NumbersOf(kind);
  return ForEachMessage(datagram, numbers.command, [&](Bytes body) {
    ForEachAttribute(body, [&](int table, Bytes entries) {
      if (table != numbers.table) return;
      ForEachAttribute(entries, [&](int entry, Bytes fields) {
        if (entry != numbers.entry) return;
        ResourceRecord record{.kind = kind};
        ForEachAttribute(fields, [&](int type, Bytes payload) {
          ReadField(type, payload, numbers, record);
        });
        visit(record);
      });
    });
  });
}

absl::StatusOr<Answer> ParseRawQueuePair(Bytes datagram,
                                         std::vector<std::byte>* raw) {
  return ForEachMessage(datagram, RDMA_NLDEV_CMD_RES_QP_GET_RAW,
                        [&](Bytes body) {
                          ForEachAttribute(body, [&](int type, Bytes payload) {
                            if (type == RDMA_NLDEV_ATTR_RES_RAW)
                              raw->assign(payload.begin(), payload.end());
                          });
                        });
}

void ForEachDriverAttribute(
    Bytes driver,
    absl::FunctionRef<void(std::string_view name, uint64_t value)> visit) {
  std::string_view name;
  const auto take = [&](int64_t value) {
    if (!name.empty() && value >= 0) visit(name, static_cast<uint64_t>(value));
    name = {};
  };
  ForEachAttribute(driver, [&](int type, Bytes payload) {
    uint32_t u32 = 0;
    int32_t s32 = 0;
    uint64_t u64 = 0;
    switch (type) {
      case RDMA_NLDEV_ATTR_DRIVER_STRING:
        // A value that is text follows its name.
        name = name.empty() ? ReadText(payload) : std::string_view();
        break;
      case RDMA_NLDEV_ATTR_DRIVER_U32:
        take(Read(payload, &u32) ? int64_t{u32} : -1);
        break;
      case RDMA_NLDEV_ATTR_DRIVER_S32:
        take(Read(payload, &s32) ? int64_t{s32} : -1);
        break;
      case RDMA_NLDEV_ATTR_DRIVER_U64:
      case RDMA_NLDEV_ATTR_DRIVER_S64:
        take(Read(payload, &u64) ? static_cast<int64_t>(u64) : -1);
        break;
      default:
        break;
    }
  });
}

}  // namespace purser::rdma
