// SPDX-License-Identifier: Apache-2.0
#include "plugin/readiness.h"

#include <memory>
#include <string>

#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

std::string UnhealthyReasons(const Advertisement& advertisement) {
  std::string reasons;
  auto add = [&](const auto& units) {
    if (!units.healthy) reasons += (reasons.empty() ? "" : "; ") + units.reason;
  };
  for (const UnitRange& range : advertisement.ranges) add(range);
  for (const NamedUnit& unit : advertisement.named) add(unit);
  return reasons;
}

// How many units the node has, and why not more.
std::string UnitsText(const Advertisement& advertisement,
                      const std::string& note) {
  const uint32_t capacity = advertisement.capacity();
  const uint32_t allocatable = advertisement.allocatable();
  if (allocatable < capacity)
    return fmt::format("{} of {} units healthy: {}", allocatable, capacity,
                       UnhealthyReasons(advertisement));
  return fmt::format("{} units{}{}", capacity, note.empty() ? "" : ": ", note);
}

std::string Line(const Registrar::ResourceState& state,
                 const ServedResources::View& served,
                 const Snapshot* snapshot) {
  if (!state.readiness.ok())
    return fmt::format("{}: {}\n", state.resource, state.readiness.ToString());
  const auto advertisement = served.server->streams().advertisement();
  if (!advertisement || snapshot == nullptr)
    return state.resource + ": ready\n";
  return fmt::format(
      "{}: ready, {}\n", state.resource,
      UnitsText(*advertisement, served.resource->Note(*snapshot)));
}

}  // namespace

base::HttpResponse Readiness(const Registrar& registrar,
                             const ServedResources& served,
                             const Inventory& inventory,
                             const ConfigStatus& config_status) {
  base::HttpResponse response;
  const std::shared_ptr<const Snapshot> snapshot = inventory.snapshot();
  for (const Registrar::ResourceState& state : registrar.States()) {
    const ServedResources::View one = served.Find(state.resource);
    if (one.server == nullptr) continue;  // about to be withdrawn
    if (!state.readiness.ok()) response.code = 503;
    response.body += Line(state, one, snapshot.get());
  }
  const std::string refusal = config_status.state().refusal;
  if (!refusal.empty()) {
    response.body +=
        "the configuration was changed, but is not valid: the one before is in "
        "use\n" +
        refusal + '\n';
  }
  return response;
}

}  // namespace purser::plugin
