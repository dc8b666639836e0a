// SPDX-License-Identifier: Apache-2.0
#include "planner/send_operations.h"

#include <iterator>
#include <vector>

#include "base/suggest.h"
#include "base/utf8.h"
#include "queue_memory/registry.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using queue_memory::Bit;
using queue_memory::QueuePairType;

struct NamedType {
  std::string_view name;
  QueuePairType type;
};
constexpr NamedType kTypes[] = {
    {"rc", QueuePairType::kRc},
    {"uc", QueuePairType::kUc},
    {"ud", QueuePairType::kUd},
    {"xrc_send", QueuePairType::kXrcSend},
    {"raw_packet", QueuePairType::kRawPacket},
    {"dci", QueuePairType::kDci},
    {"srd", QueuePairType::kSrd},
};

// man ibv_post_send, man mlx5dv_create_qp, man efadv_create_qp_ex.
constexpr uint32_t kReliable = Bit(QueuePairType::kRc) |
                               Bit(QueuePairType::kXrcSend) |
                               Bit(QueuePairType::kDci);
constexpr uint32_t kConnected = kReliable | Bit(QueuePairType::kUc);
struct NamedOperation {
  std::string_view name;
  uint32_t send_ops;
  uint32_t types;  // Bit() of each that can do it
};
constexpr NamedOperation kOperations[] = {
    {"send", queue_memory::kSendOpsPlain, UINT32_MAX},
    {"write", queue_memory::kSendOpsPlain,
     kConnected | Bit(QueuePairType::kSrd)},
    {"read", queue_memory::kSendOpsPlain, kReliable | Bit(QueuePairType::kSrd)},
    {"atomic", queue_memory::kSendOpsAtomic, kReliable},
    {"bind", queue_memory::kSendOpsBindOrInv, kConnected},
    {"invalidate", queue_memory::kSendOpsBindOrInv, kConnected},
    {"inline-write", queue_memory::kSendOpsInlineWrite,
     Bit(QueuePairType::kSrd)},
};

template <typename Named, size_t kSize>
absl::Status NoSuch(std::string_view what, std::string_view name,
                    const Named (&known)[kSize]) {
  std::vector<std::string_view> names;
  for (const Named& one : known) names.push_back(one.name);
  return absl::InvalidArgumentError(fmt::format(
      "there is no {} {}{}; there are {}", what, base::QuoteForMessage(name),
      base::DidYouMean(name, names), fmt::join(names, ", ")));
}

}  // namespace

absl::StatusOr<QueuePairType> QueuePairTypeFromName(std::string_view name) {
  for (const NamedType& type : kTypes)
    if (type.name == name) return type.type;
  return NoSuch("queue pair type", name, kTypes);
}

std::string TypeName(QueuePairType type) {
  for (const NamedType& known : kTypes)
    if (known.type == type) return std::string(known.name);
  return "unknown";
}

absl::StatusOr<uint32_t> SendOperation(std::string_view name,
                                       QueuePairType type) {
  for (const NamedOperation& operation : kOperations) {
    if (operation.name != name) continue;
    if ((operation.types & Bit(type)) != 0) return operation.send_ops;
    return absl::InvalidArgumentError(fmt::format(
        "{} queue pairs cannot do {}", TypeName(type), operation.name));
  }
  return NoSuch("send operation", name, kOperations);
}

bool SendsAlone(QueuePairType type) {
  return type == QueuePairType::kXrcSend || type == QueuePairType::kDci;
}

}  // namespace purser::planner
