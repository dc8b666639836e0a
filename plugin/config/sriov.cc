// SPDX-License-Identifier: Apache-2.0
//
// The config.json of sriov-network-device-plugin, as that plugin reads it, for
// its RDMA devices.
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "base/utf8.h"
#include "plugin/config/forms.h"
#include "plugin/config/peer_names.h"
#include "plugin/config/read_capacity.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

struct SriovSelectors {
  Selectors selectors;
  bool is_rdma = false;
  bool is_vdpa = false;
};

void ReadPhysicalFunctions(base::YamlMap& map, std::string_view key,
                           std::vector<PhysicalFunctionSelector>* out,
                           bool* nothing) {
  std::vector<std::string> texts;
  if (!map.Strings(key, &texts)) return;
  for (const std::string& text : texts) {
    absl::StatusOr<PhysicalFunctionSelector> selector =
        ParsePhysicalFunction(text);
    if (selector.ok()) {
      out->push_back(*std::move(selector));
    } else {
      map.Warn(key, fmt::format("{}; it selects nothing",
                                std::string(selector.status().message())));
    }
  }
  // An empty list would take everything.
  *nothing |= out->empty() && !texts.empty();
}

SriovSelectors ReadSelectors(base::YamlMap& map) {
  SriovSelectors read;
  Selectors& out = read.selectors;
  map.Strings("vendors", &out.vendors);
  map.Strings("devices", &out.device_ids);
  map.Strings("drivers", &out.drivers);
  map.Strings("pciAddresses", &out.pci_addresses);
  map.Strings("acpiIndexes", &out.acpi_indexes);
  map.Strings("auxTypes", &out.aux_types);
  map.Strings("linkTypes", &out.link_types);
  map.Strings("pKeys", &out.pkeys);
  ReadPhysicalFunctions(map, "pfNames", &out.pf_names, &out.nothing);
  ReadPhysicalFunctions(map, "rootDevices", &out.root_devices, &out.nothing);
  std::vector<std::string> profiles;
  if (map.Strings("ddpProfiles", &profiles) && !profiles.empty()) {
    out.nothing = true;
    map.Warn("ddpProfiles",
             "cannot be told without the vendor's tool, so it selects nothing");
  }
  map.Bool("isRdma", &read.is_rdma);
  std::string vdpa_type;
  read.is_vdpa = map.String("vdpaType", &vdpa_type) && !vdpa_type.empty();
  bool need_vhost_net = false;
  if (map.Bool("needVhostNet", &need_vhost_net) && need_vhost_net)
    map.Warn("needVhostNet", "containers get no /dev/vhost-net from here");
  return read;
}

// What only the SR-IOV plugin itself can do keeps its devices from the pools
// after it, as it does there, and is not advertised.
void ReadSelectorsOf(base::YamlMap& map, PoolConfig* pool) {
  auto leave_out = [&](std::string_view why) {
    pool->advertised = false;
    map.Warn("selectors", why);
  };
  map.SoftenFaults();
  std::vector<base::YamlMap> all = map.MapOrMaps("selectors");
  bool is_rdma = false, is_vdpa = false, is_both = false;
  for (base::YamlMap& one : all) {
    const SriovSelectors read = ReadSelectors(one);
    pool->selectors.push_back(read.selectors);
    is_rdma |= read.is_rdma;
    is_vdpa |= read.is_vdpa;
    is_both |= read.is_rdma && read.is_vdpa;
  }
  map.HardenFaults();
  if (map.has_softened_faults()) {
    pool->selectors = {Selectors{.nothing = true}};
    leave_out("cannot be read, so the resource is not advertised");
  } else if (all.empty()) {
    pool->selectors = {Selectors{.nothing = true}};
    leave_out("select nothing, so the resource is not advertised");
  } else if (is_both) {
    map.Fault("selectors", "vdpaType and isRdma exclude each other");
  } else if (is_vdpa || !is_rdma) {
    leave_out(
        "have no isRdma: true: the resource is not for RDMA devices, so it is "
        "not advertised from here");
  }
}

// Whether it is of a type that may have RDMA devices.
bool ReadDeviceType(base::YamlMap& map, PoolConfig* pool) {
  std::string type = "netDevice";
  map.String("deviceType", &type);
  if (type == "auxNetDevice") pool->reach = Reach::kSriovAuxNetDevice;
  if (type == "netDevice" || type == "auxNetDevice" || type.empty())
    return true;
  if (type == "accelerator") {
    map.Warn("deviceType",
             "an accelerator is no RDMA device, so it is not advertised");
  } else {
    map.Fault("deviceType",
              fmt::format("{} is none of netDevice, auxNetDevice, accelerator",
                          base::QuoteForMessage(type)));
  }
  return false;
}

PoolConfig ReadPool(base::YamlMap& map, const std::string& default_prefix,
                    PeerNames* names) {
  PoolConfig pool;
  pool.unit = PoolUnit::kDevice;
  pool.reach = Reach::kSriovNetDevice;
  pool.allocate.issm = true;  // as that plugin does
  pool.resource_name.clear();
  pool.resource_prefix = default_prefix;
  map.String("resourceName", &pool.resource_name);
  std::string prefix;
  if (map.String("resourcePrefix", &prefix) && !prefix.empty())
    pool.resource_prefix = prefix;
  names->Take(map, &pool);
  bool exclude_topology = false;
  map.Bool("excludeTopology", &exclude_topology);
  pool.allocate.topology = !exclude_topology;
  map.MapsOfStrings("additionalInfo", &pool.additional_info);
  if (ReadDeviceType(map, &pool)) {
    ReadSelectorsOf(map, &pool);
  } else {
    pool.advertised = false;
    pool.selectors = {Selectors{.nothing = true}};
    map.Has("selectors");
  }
  return pool;
}

}  // namespace

absl::StatusOr<Config> ParseSriov(const std::string& name,
                                  std::string_view text,
                                  const std::string& default_prefix) {
  Config config;
  config.form = ConfigForm::kSriov;
  config.pools.clear();
  base::StrictYaml json(name, text, base::YamlDialect::kGoJson);
  base::YamlMap root = json.Root();
  PeerNames names;
  for (base::YamlMap& pool : root.Maps("resourceList"))
    config.pools.push_back(ReadPool(pool, default_prefix, &names));
  if (config.pools.empty()) root.Fault("resourceList", "must list a resource");
  ReadPeerCapacity(root, &config);
  PURSER_RETURN_IF_ERROR(json.Finish());
  config.warnings = json.Warnings();
  return config;
}

}  // namespace purser::plugin
