// SPDX-License-Identifier: Apache-2.0
//
// Purser's own form: strict YAML, `version: v1`.
#include <set>

#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "base/tcp_listener.h"
#include "base/utf8.h"
#include "plugin/config/forms.h"
#include "plugin/config/native_selectors.h"
#include "plugin/config/pool_names.h"
#include "plugin/config/read_capacity.h"
#include "plugin/config/unit_limit.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

Mount ReadMount(base::YamlMap map) {
  Mount mount;
  auto read_path = [&](std::string_view key, std::string* out) {
    if (!map.String(key, out)) {
      if (!map.Has(key)) map.Fault(key, "is missing");
    } else if (out->empty() || out->front() != '/') {
      map.Fault(key, fmt::format("{} is no absolute path",
                                 base::QuoteForMessage(*out)));
    }
  };
  read_path("hostPath", &mount.host_path);
  read_path("containerPath", &mount.container_path);
  map.Bool("readOnly", &mount.read_only);
  return mount;
}

void ReadNames(base::YamlMap& map, PoolConfig* pool) {
  if (map.String("resourceName", &pool->resource_name)) {
    if (absl::Status s = CheckResourceName(pool->resource_name); !s.ok())
      map.Fault("resourceName", std::string(s.message()));
  } else if (!map.Has("resourceName")) {
    map.Fault("resourceName", "is missing: every pool needs a name");
  }
  if (map.String("resourcePrefix", &pool->resource_prefix)) {
    if (absl::Status s = CheckResourcePrefix(pool->resource_prefix); !s.ok())
      map.Fault("resourcePrefix", std::string(s.message()));
  }
}

void ReadUnits(base::YamlMap& map, PoolConfig* pool) {
  if (std::string unit; map.String("unit", &unit)) {
    if (unit == "device") {
      pool->unit = PoolUnit::kDevice;
    } else if (unit == "deviceShare") {
      pool->unit = PoolUnit::kDeviceShare;
    } else if (unit != "share") {
      map.Fault("unit", fmt::format("{} is none of share, deviceShare, device",
                                    base::QuoteForMessage(unit)));
    }
  }
  if (pool->unit == PoolUnit::kDevice && map.Has("rdmaHcaMax"))
    map.Fault("rdmaHcaMax",
              "a unit is a device, so there are as many as there are devices; "
              "leave it out, or set unit: share");
  if (map.Text("rdmaHcaMax") == "auto") {
    pool->rdma_hca_max.reset();
    return;
  }
  uint64_t shares = PoolConfig::kDefaultShares;
  map.Uint("rdmaHcaMax", 0, LargestUnitCount(), &shares);
  pool->rdma_hca_max = static_cast<uint32_t>(shares);
  pool->rdma_hca_max_given = map.Has("rdmaHcaMax");
}

AllocateOptions ReadAllocate(base::YamlMap map) {
  AllocateOptions options;
  if (std::string placement; map.String("placement", &placement)) {
    if (placement == "packed") {
      options.placement = Placement::kPacked;
    } else if (placement != "spread") {
      map.Fault("placement", fmt::format("{} is neither spread nor packed",
                                         base::QuoteForMessage(placement)));
    }
  }
  map.Bool("topology", &options.topology);
  map.Bool("umad", &options.umad);
  map.Bool("issm", &options.issm);
  map.Bool("rdmaCm", &options.rdma_cm);
  return options;
}

PoolConfig ReadPool(base::YamlMap& map) {
  PoolConfig pool;
  ReadNames(map, &pool);
  ReadUnits(map, &pool);
  pool.allocate = ReadAllocate(map.Map("allocate"));
  pool.selectors = ReadNativeSelectors(map, "selectors");
  pool.exclude = ReadNativeSelectors(map, "exclude");
  if (bool check = true; map.Bool("healthCheck", &check))
    pool.health_check = check;
  std::set<std::string> places;
  for (base::YamlMap& mount : map.Maps("mounts")) {
    pool.mounts.push_back(ReadMount(mount));
    const std::string& place = pool.mounts.back().container_path;
    if (!place.empty() && !places.insert(place).second)
      mount.Fault("containerPath", "another mount of the pool has it");
  }
  return pool;
}

void ReadOverlap(base::YamlMap& map, Config* config) {
  bool allow = false;
  if (map.Bool("allowOverlap", &allow) && allow)
    config->overlap = OverlapPolicy::kAllow;
  std::string overlap;
  if (!map.String("overlap", &overlap)) return;
  if (map.Has("allowOverlap"))
    map.Fault("allowOverlap", "overlap is given too; keep that");
  if (overlap == "allow") {
    config->overlap = OverlapPolicy::kAllow;
  } else if (overlap == "refuse") {
    config->overlap = OverlapPolicy::kRefuse;
  } else if (overlap != "first") {
    map.Fault("overlap", fmt::format("{} is none of first, allow, refuse",
                                     base::QuoteForMessage(overlap)));
  }
}

std::string NameFault(const PoolConfig& pool, PoolNames* names) {
  const std::string name = pool.full_name();
  if (IsCapacityResource(name))
    return fmt::format(
        "{} is a name for the {}", name,
        name.starts_with("rdma/qp") ? "queue pairs" : "queue memory");
  const std::string fault = names->Take(pool);
  return fault.empty() ? names->TakeVariables(pool) : fault;
}

void ReadResources(base::YamlMap map, Config* config) {
  ReadOverlap(map, config);
  std::vector<base::YamlMap> pools = map.Maps("pools");
  if (map.Has("pools")) config->pools.clear();
  PoolNames names;
  for (base::YamlMap& pool : pools) {
    config->pools.push_back(ReadPool(pool));
    if (std::string fault = NameFault(config->pools.back(), &names);
        !fault.empty())
      pool.Fault("resourceName", fault);
  }
  config->queue_memory = ReadQueueMemory(map.Map("queueMemory"));
  config->queue_pairs =
      ReadQueuePairs(map.Map("queuePairs"), map.Has("queuePairs"));
}

void ReadCdi(base::YamlMap map, Config* config) {
  map.Bool("enabled", &config->cdi);
  if (map.String("directory", &config->cdi_dir) &&
      !config->cdi_dir.starts_with('/')) {
    map.Fault("directory", fmt::format("{} is no absolute path",
                                       base::QuoteForMessage(config->cdi_dir)));
  }
}

void ReadProcess(base::YamlMap& root, Config* config) {
  if (root.String("kubeletRootDir", &config->kubelet_root_dir) &&
      (config->kubelet_root_dir.empty() ||
       config->kubelet_root_dir.front() != '/')) {
    root.Fault("kubeletRootDir",
               fmt::format("{} is no absolute path",
                           base::QuoteForMessage(config->kubelet_root_dir)));
  }
  if (std::string mode; root.String("registration", &mode)) {
    const absl::StatusOr<RegistrationMode> parsed = ParseRegistrationMode(mode);
    if (parsed.ok()) {
      config->registration = *parsed;
    } else {
      root.Fault("registration", std::string(parsed.status().message()));
    }
  }
  ReadCdi(root.Map("cdi"), config);
  if (root.String("metricsAddress", &config->metrics_address)) {
    if (absl::Status s = base::CheckTcpAddress(config->metrics_address);
        !s.ok())
      root.Fault("metricsAddress", std::string(s.message()));
  }
  if (root.Duration("rescanInterval", &config->rescan_interval) &&
      config->rescan_interval < std::chrono::milliseconds(100)) {
    root.Fault("rescanInterval", "is below 100ms");
  }
  if (root.Duration("healthDebounce", &config->health_debounce) &&
      config->health_debounce > std::chrono::minutes(1)) {
    root.Fault("healthDebounce", "is above 1m");
  }
  if (std::string level; root.String("logLevel", &level)) {
    absl::StatusOr<base::LogLevel> parsed = base::ParseLogLevel(level);
    if (parsed.ok()) {
      config->log_level = *parsed;
    } else {
      root.Fault("logLevel", std::string(parsed.status().message()));
    }
  }
}

void ReadVersion(base::YamlMap& root) {
  std::string version;
  if (root.String("version", &version)) {
    if (version != "v1")
      root.Fault("version", fmt::format("{} is not known; this is v1",
                                        base::QuoteForMessage(version)));
  } else if (!root.Has("version")) {
    root.Fault("version",
               "is missing; begin the file with `version: v1` (a file of the "
               "shared RDMA plugin has a configList, one of the SR-IOV plugin "
               "a resourceList)");
  }
}

}  // namespace

absl::StatusOr<Config> ParseNative(const std::string& name,
                                   std::string_view text) {
  Config config;
  base::StrictYaml yaml(name, text);
  base::YamlMap root = yaml.Root();
  ReadVersion(root);
  ReadResources(root.Map("resources"), &config);
  ReadProcess(root, &config);
  PURSER_RETURN_IF_ERROR(yaml.Finish());
  if (config.pools.empty() && !config.queue_memory.enabled &&
      !config.queue_pairs.enabled) {
    return absl::InvalidArgumentError(
        name +
        ": resources: nothing to advertise: no pool, and neither queueMemory "
        "nor queuePairs is enabled");
  }
  config.warnings = yaml.Warnings();
  return config;
}

}  // namespace purser::plugin
