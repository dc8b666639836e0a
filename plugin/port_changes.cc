// SPDX-License-Identifier: Apache-2.0
#include "plugin/port_changes.h"

#include "base/logging.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

std::string Difference(const std::map<int, std::string>& before,
                       const std::map<int, std::string>& after) {
  std::string text;
  auto add = [&](const char* what, const auto& entry) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", what,
                        entry.first, entry.second);
  };
  for (const auto& entry : before) {
    const auto found = after.find(entry.first);
    if (found == after.end() || found->second != entry.second)
      add("less", entry);
  }
  for (const auto& entry : after) {
    const auto found = before.find(entry.first);
    if (found == before.end() || found->second != entry.second)
      add("more", entry);
  }
  return text;
}

}  // namespace

const char* PortTraitName(PortTrait trait) {
  constexpr std::array<const char*, kPortTraits> kNames = {
      "state", "link_layer", "lid", "gids"};
  return kNames[static_cast<size_t>(trait)];
}

void PortChanges::Observe(const rdma::SysfsDevice& before,
                          const rdma::SysfsDevice& after) {
  for (const rdma::PortStatus& port : after.ports) {
    for (const rdma::PortStatus& old : before.ports)
      if (old.port_num == port.port_num) Compare(after.name, old, port);
  }
}

void PortChanges::Compare(const std::string& device,
                          const rdma::PortStatus& before,
                          const rdma::PortStatus& after) {
  auto changed = [&](PortTrait trait, const std::string& from,
                     const std::string& to) {
    base::LogInfo("a port has changed", {{"device", device},
                                         {"port", int{after.port_num}},
                                         {"what", PortTraitName(trait)},
                                         {"from", from},
                                         {"to", to}});
    std::lock_guard lock(mutex_);
    ++counts_[{device, after.port_num}][static_cast<size_t>(trait)];
  };
  if (before.port_state != after.port_state)
    changed(PortTrait::kState, fmt::to_string(before.port_state),
            fmt::to_string(after.port_state));
  if (before.link_layer != after.link_layer)
    changed(PortTrait::kLinkLayer, rdma::LinkLayerName(before.link_layer),
            rdma::LinkLayerName(after.link_layer));
  if (before.lid != after.lid)
    changed(PortTrait::kLid, fmt::to_string(before.lid),
            fmt::to_string(after.lid));
  if (before.gids != after.gids)
    changed(PortTrait::kGids, fmt::format("{} GIDs", before.gids.size()),
            Difference(before.gids, after.gids));
}

std::vector<PortChangeCounts> PortChanges::counts() const {
  std::vector<PortChangeCounts> all;
  std::lock_guard lock(mutex_);
  for (const auto& [port, counts] : counts_)
    all.push_back({port.first, port.second, counts});
  return all;
}

}  // namespace purser::plugin
