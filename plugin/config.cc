// SPDX-License-Identifier: Apache-2.0
#include "plugin/config.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/quantity.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "plugin/advertisement.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

bool IsPciId(std::string_view text) {
  return text.size() == 4 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

void ReadPciIds(base::YamlMap& map, std::string_view key,
                std::vector<std::string>* out) {
  if (!map.Strings(key, out)) return;
  for (const std::string& id : *out) {
    if (IsPciId(id)) continue;
    map.Fault(key,
              fmt::format("\"{}\" is no PCI id: four lower-case "
                          "hexadecimal digits, in quotes, such as \"15b3\"",
                          id));
  }
}

void ReadNonEmpty(base::YamlMap& map, std::string_view key,
                  std::vector<std::string>* out) {
  if (!map.Strings(key, out)) return;
  if (std::find(out->begin(), out->end(), "") != out->end())
    map.Fault(key, "an empty string matches nothing; leave it out");
}

Selectors ReadSelectors(base::YamlMap map) {
  Selectors selectors;
  ReadNonEmpty(map, "devices", &selectors.devices);
  ReadNonEmpty(map, "drivers", &selectors.drivers);
  ReadNonEmpty(map, "ifNames", &selectors.if_names);
  if (map.Strings("linkTypes", &selectors.link_types)) {
    for (const std::string& type : selectors.link_types) {
      if (type != "ether" && type != "infiniband")
        map.Fault("linkTypes",
                  fmt::format("\"{}\" is neither ether nor infiniband", type));
    }
  }
  ReadPciIds(map, "vendors", &selectors.vendors);
  ReadPciIds(map, "deviceIDs", &selectors.device_ids);
  return selectors;
}

Mount ReadMount(base::YamlMap map) {
  Mount mount;
  auto read_path = [&](std::string_view key, std::string* out) {
    if (!map.String(key, out)) {
      if (!map.Has(key)) map.Fault(key, "is missing");
    } else if (out->empty() || out->front() != '/') {
      map.Fault(key, fmt::format("\"{}\" is no absolute path", *out));
    }
  };
  read_path("hostPath", &mount.host_path);
  read_path("containerPath", &mount.container_path);
  map.Bool("readOnly", &mount.read_only);
  return mount;
}

PoolConfig ReadPool(base::YamlMap& map) {
  PoolConfig pool;
  if (map.String("resourceName", &pool.resource_name)) {
    if (absl::Status s = CheckResourceName(pool.resource_name); !s.ok())
      map.Fault("resourceName", std::string(s.message()));
  } else if (!map.Has("resourceName")) {
    map.Fault("resourceName", "is missing: every pool needs a name");
  }
  if (map.String("resourcePrefix", &pool.resource_prefix)) {
    if (absl::Status s = CheckResourcePrefix(pool.resource_prefix); !s.ok())
      map.Fault("resourcePrefix", std::string(s.message()));
  }
  uint64_t shares = pool.rdma_hca_max;
  map.Uint("rdmaHcaMax", 0, LargestUnitCount(), &shares);
  pool.rdma_hca_max = static_cast<uint32_t>(shares);
  pool.selectors = ReadSelectors(map.Map("selectors"));
  for (base::YamlMap& mount : map.Maps("mounts"))
    pool.mounts.push_back(ReadMount(mount));
  return pool;
}

void ReadCapacity(base::YamlMap& map, QueueMemoryConfig* config) {
  uint64_t bytes = 0;
  if (!map.Bytes("capacity", &bytes)) return;
  config->capacity_bytes = bytes;
  if (bytes < kMebibyte) {
    map.Fault("capacity",
              "is less than 1Mi, one unit; to advertise no queue "
              "memory set enabled: false");
  } else if (const uint64_t units = bytes / kMebibyte;
             units > LargestUnitCount()) {
    map.Fault("capacity",
              fmt::format("{} units of 1 MiB make a message of more than the "
                          "{} bytes that the kubelet takes; the largest "
                          "capacity that fits is {}Mi",
                          base::FormatCount(units),
                          base::FormatCount(kKubeletMaxMessageBytes),
                          LargestUnitCount()));
  }
}

QueueMemoryConfig ReadQueueMemory(base::YamlMap map) {
  QueueMemoryConfig config;
  map.Bool("enabled", &config.enabled);
  ReadCapacity(map, &config);
  double fraction = 0;
  if (map.Fraction("nodeMemoryFraction", &fraction))
    config.node_memory_fraction = fraction;
  if (map.Has("capacity") && map.Has("nodeMemoryFraction"))
    map.Fault("nodeMemoryFraction",
              "capacity is given too; keep one of the two");
  return config;
}

// Names that must not meet: the resource's own and its variable's.
class NamesTaken {
 public:
  void Take(base::YamlMap& map, const PoolConfig& pool) {
    if (pool.full_name() == kQueueMemoryResource) {
      map.Fault("resourceName", fmt::format("{} is the queue memory's name",
                                            kQueueMemoryResource));
    } else if (!resources_.insert(pool.full_name()).second) {
      map.Fault("resourceName",
                fmt::format("{} is the name of two pools", pool.full_name()));
    } else {
      const std::string variable =
          PoolDevicesVariable(pool.resource_prefix, pool.resource_name);
      auto [other, is_new] = variables_.emplace(variable, pool.full_name());
      if (!is_new) {
        map.Fault("resourceName",
                  fmt::format("{} and {} would both set {}; rename one",
                              other->second, pool.full_name(), variable));
      }
    }
  }

 private:
  std::set<std::string> resources_;
  std::map<std::string, std::string> variables_;
};

void ReadResources(base::YamlMap map, Config* config) {
  map.Bool("allowOverlap", &config->allow_overlap);
  std::vector<base::YamlMap> pools = map.Maps("pools");
  if (map.Has("pools")) config->pools.clear();
  NamesTaken names;
  for (base::YamlMap& pool : pools) {
    config->pools.push_back(ReadPool(pool));
    names.Take(pool, config->pools.back());
  }
  config->queue_memory = ReadQueueMemory(map.Map("queueMemory"));
}

void ReadProcess(base::YamlMap& root, Config* config) {
  if (root.String("kubeletRootDir", &config->kubelet_root_dir) &&
      (config->kubelet_root_dir.empty() ||
       config->kubelet_root_dir.front() != '/')) {
    root.Fault("kubeletRootDir", fmt::format("\"{}\" is no absolute path",
                                             config->kubelet_root_dir));
  }
  root.String("metricsAddress", &config->metrics_address);
  if (root.Duration("rescanInterval", &config->rescan_interval) &&
      config->rescan_interval < std::chrono::milliseconds(100)) {
    root.Fault("rescanInterval", "is below 100ms");
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

}  // namespace

absl::StatusOr<Config> ParseConfig(const std::string& name,
                                   std::string_view text) {
  Config config;
  base::StrictYaml yaml(name, text);
  base::YamlMap root = yaml.Root();
  std::string version;
  if (root.String("version", &version)) {
    if (version != "v1")
      root.Fault("version",
                 fmt::format("\"{}\" is not known; this is v1", version));
  } else if (!root.Has("version")) {
    root.Fault("version", "is missing; begin the file with `version: v1`");
  }
  ReadResources(root.Map("resources"), &config);
  ReadProcess(root, &config);
  PURSER_RETURN_IF_ERROR(yaml.Finish());
  if (config.pools.empty() && !config.queue_memory.enabled) {
    return absl::InvalidArgumentError(
        name +
        ": resources: nothing to advertise: no pool, and queueMemory is "
        "not enabled");
  }
  return config;
}

absl::StatusOr<Config> LoadConfig(const std::string& path) {
  PURSER_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  return ParseConfig(path, text);
}

}  // namespace purser::plugin
