// SPDX-License-Identifier: Apache-2.0
//
// The config.json of k8s-rdma-shared-dev-plugin, as that plugin reads it.
#include <algorithm>
#include <limits>

#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "base/utf8.h"
#include "plugin/config/forms.h"
#include "plugin/config/peer_names.h"
#include "plugin/config/read_capacity.h"
#include "plugin/config/unit_limit.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

constexpr uint64_t kMostInt = std::numeric_limits<int64_t>::max();

void ReadInterval(base::YamlMap& root, Config* config) {
  constexpr uint64_t kDefaultSeconds = 60, kMostSeconds = 8760 * 3600;
  uint64_t seconds = kDefaultSeconds;
  root.Uint("periodicUpdateInterval", 0, kMostInt, &seconds);
  config->rescan_interval =
      std::chrono::seconds(std::min(seconds, kMostSeconds));
  if (seconds == 0)
    root.Warn("periodicUpdateInterval",
              "0: no rescan by the clock; devices that come, go or change "
              "their port's state are seen all the same");
}

void ReadShares(base::YamlMap& map, PoolConfig* pool) {
  uint64_t shares = 0;
  map.Uint("rdmaHcaMax", 0, kMostInt, &shares);
  if (!map.Has("rdmaHcaMax"))
    map.Warn("rdmaHcaMax", "is missing: 0 shares are advertised; set it");
  if (const uint32_t largest = LargestUnitCount(); shares > largest) {
    map.Warn("rdmaHcaMax",
             fmt::format("{} shares make a message of more than the {} bytes "
                         "that the kubelet takes; the largest that fits, {}, "
                         "is advertised",
                         base::FormatCount(shares),
                         base::FormatCount(kKubeletMaxMessageBytes), largest));
    shares = largest;
  }
  pool->rdma_hca_max = static_cast<uint32_t>(shares);
}

Selectors ReadLists(base::YamlMap map) {
  Selectors selectors;
  map.Strings("vendors", &selectors.vendors);
  map.Strings("deviceIDs", &selectors.device_ids);
  map.Strings("drivers", &selectors.drivers);
  map.Strings("ifNames", &selectors.if_names);
  map.Strings("linkTypes", &selectors.link_types);
  return selectors;
}

void ReadSelectors(base::YamlMap& map, PoolConfig* pool) {
  Selectors selectors = ReadLists(map.Map("selectors"));
  const bool has_selectors = selectors != Selectors{};
  std::vector<std::string> devices;
  map.Strings("devices", &devices);
  if (has_selectors && !devices.empty()) {
    map.Fault("devices", "selectors are given too; keep those");
  } else if (!devices.empty()) {
    map.Warn("devices",
             "is deprecated; write selectors: {\"ifNames\": […]} instead");
    selectors.if_names = std::move(devices);
  } else if (!has_selectors) {
    map.Fault("selectors",
              "one of vendors, deviceIDs, drivers, ifNames and linkTypes must "
              "have an entry");
  }
  pool->selectors = {std::move(selectors)};
}

PoolConfig ReadPool(base::YamlMap& map, PeerNames* names) {
  PoolConfig pool;
  pool.reach = Reach::kSharedRdmaPlugin;
  pool.allocate.issm = true;  // as that plugin does; but no topology
  pool.allocate.topology = false;
  pool.resource_name.clear();
  map.String("resourceName", &pool.resource_name);
  std::string prefix;
  if (map.String("resourcePrefix", &prefix) && !prefix.empty())
    pool.resource_prefix = prefix;
  names->Take(map, &pool);
  ReadShares(map, &pool);
  ReadSelectors(map, &pool);
  return pool;
}

}  // namespace

absl::StatusOr<Config> ParseSharedRdma(const std::string& name,
                                       std::string_view text) {
  Config config;
  config.form = ConfigForm::kSharedRdma;
  config.overlap = OverlapPolicy::kAllow;
  config.pools.clear();
  base::StrictYaml json(name, text, base::YamlDialect::kGoJson);
  base::YamlMap root = json.Root();
  ReadInterval(root, &config);
  PeerNames names;
  std::vector<base::YamlMap> pools = root.Maps("configList");
  for (base::YamlMap& pool : pools)
    config.pools.push_back(ReadPool(pool, &names));
  if (pools.empty() && !root.Has("configList"))
    root.Fault("configList", "is missing: it lists the resources");
  else if (pools.empty())
    root.Fault("configList", "is empty: it must list a resource");
  ReadPeerCapacity(root, &config);
  PURSER_RETURN_IF_ERROR(json.Finish());
  config.warnings = json.Warnings();
  return config;
}

}  // namespace purser::plugin
