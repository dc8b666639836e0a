// SPDX-License-Identifier: Apache-2.0
#include "rdma/capabilities.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/status_macros.h"
#include "rdma/sysfs.h"
#include "spdlog/fmt/fmt.h"

namespace purser::rdma {
namespace {

uint32_t NonNegative(int value) {
  return static_cast<uint32_t>(std::max(value, 0));
}

bool IsZero(const ibv_gid& gid) {
  return std::all_of(std::begin(gid.raw), std::end(gid.raw),
                     [](uint8_t byte) { return byte == 0; });
}

// ::ffff:a.b.c.d
bool IsIpv4Mapped(const ibv_gid& gid) {
  constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof(kPrefix)) == 0;
}

// Smaller is better; the index decides among equals.
int Rank(const Gid& gid) {
  return (gid.type == GidType::kRoceV2 ? 0 : 2) + (gid.ipv4_mapped ? 0 : 1);
}

// NotFound: the entry is empty, or went away since the GID was read.
absl::StatusOr<GidType> RoceTypeOf(const std::filesystem::path& types,
                                   int index) {
  PURSER_ASSIGN_OR_RETURN(const std::string text,
                          ReadAttribute(types / std::to_string(index)));
  return text == "RoCE v2" ? GidType::kRoceV2 : GidType::kRoceV1;
}

absl::StatusOr<Gid> PreferredRoceGid(Verbs& verbs, const Context& context,
                                     uint8_t port_num, int table_length,
                                     const std::string& sysfs_root) {
  const char* device = context->device->name;
  const std::filesystem::path types =
      std::filesystem::path(sysfs_root) /
      fmt::format("class/infiniband/{}/ports/{}/gid_attrs/types", device,
                  port_num);
  std::optional<Gid> best;
  absl::Status unreadable;
  for (int index = 0; index < table_length; ++index) {
    PURSER_ASSIGN_OR_RETURN(const ibv_gid value,
                            verbs.QueryGid(context.get(), port_num, index));
    if (IsZero(value)) continue;
    const absl::StatusOr<GidType> type = RoceTypeOf(types, index);
    if (!type.ok()) {
      unreadable = type.status();
      continue;
    }
    const Gid gid{.gid = value,
                  .index = index,
                  .type = *type,
                  .ipv4_mapped = IsIpv4Mapped(value)};
    if (!best || Rank(gid) < Rank(*best)) best = gid;
    if (Rank(*best) == 0) break;
  }
  if (best) return *best;
  if (!unreadable.ok()) {
    return absl::NotFoundError(fmt::format(
        "{} port {} has GIDs, but their types cannot be read ({}): is sysfs "
        "mounted?",
        device, port_num, unreadable.ToString()));
  }
  return absl::NotFoundError(fmt::format(
      "{} port {} has no GID: its netdev has no address; set the netdev up and "
      "give it an IP address",
      device, port_num));
}

}  // namespace

absl::StatusOr<Capabilities> QueryCapabilities(Verbs& verbs,
                                               const Context& context) {
  PURSER_ASSIGN_OR_RETURN(const ibv_device_attr attr,
                          verbs.QueryDevice(context.get()));
  return Capabilities{.attr = attr,
                      .limits = {.max_qp_wr = NonNegative(attr.max_qp_wr),
                                 .max_sge = NonNegative(attr.max_sge),
                                 .max_cqe = NonNegative(attr.max_cqe),
                                 .max_srq_wr = NonNegative(attr.max_srq_wr),
                                 .max_srq_sge = NonNegative(attr.max_srq_sge)}};
}

absl::StatusOr<Gid> PreferredGid(Verbs& verbs, const Context& context,
                                 uint8_t port_num,
                                 const std::string& sysfs_root) {
  PURSER_ASSIGN_OR_RETURN(const ibv_port_attr port,
                          verbs.QueryPort(context.get(), port_num));
  if (port.link_layer == IBV_LINK_LAYER_ETHERNET)
    return PreferredRoceGid(verbs, context, port_num, port.gid_tbl_len,
                            sysfs_root);
  PURSER_ASSIGN_OR_RETURN(const ibv_gid gid,
                          verbs.QueryGid(context.get(), port_num, 0));
  if (IsZero(gid)) {
    return absl::NotFoundError(fmt::format(
        "{} port {} has no GID at index 0: the port has not come up",
        context->device->name, port_num));
  }
  return Gid{.gid = gid};
}

}  // namespace purser::rdma
