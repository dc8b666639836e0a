// SPDX-License-Identifier: Apache-2.0
#include "plugin/config/native_selectors.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>

#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

// fnmatch(3) tries every way to share a name out among them.
constexpr long kMostStars = 4;

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
              fmt::format("{} is no PCI id: four lower-case "
                          "hexadecimal digits, in quotes, such as \"15b3\"",
                          base::QuoteForMessage(id)));
  }
}

void ReadNonEmpty(base::YamlMap& map, std::string_view key,
                  std::vector<std::string>* out) {
  if (!map.Strings(key, out)) return;
  if (std::find(out->begin(), out->end(), "") != out->end())
    map.Fault(key, "an empty string matches nothing; leave it out");
}

void ReadGlobs(base::YamlMap& map, std::string_view key,
               std::vector<std::string>* out) {
  ReadNonEmpty(map, key, out);
  for (const std::string& glob : *out) {
    if (std::count(glob.begin(), glob.end(), '*') > kMostStars)
      map.Fault(key, fmt::format("{} has more than {} stars",
                                 base::QuoteForMessage(glob), kMostStars));
  }
}

// A list of words that each stand for a value.
template <typename T>
void ReadWords(base::YamlMap& map, std::string_view key,
               const std::map<std::string, T>& words, std::vector<T>* out) {
  std::vector<std::string> texts;
  if (!map.Strings(key, &texts)) return;
  std::string known;
  for (const auto& [word, value] : words)
    known += (known.empty() ? "" : ", ") + word;
  for (const std::string& text : texts) {
    if (const auto found = words.find(text); found != words.end()) {
      out->push_back(found->second);
    } else {
      map.Fault(key, fmt::format("{} is none of {}",
                                 base::QuoteForMessage(text), known));
    }
  }
}

void ReadLinkTypes(base::YamlMap& map, std::vector<std::string>* out) {
  if (!map.Strings("linkTypes", out)) return;
  for (const std::string& type : *out) {
    if (type != "ether" && type != "infiniband")
      map.Fault("linkTypes", fmt::format("{} is neither ether nor infiniband",
                                         base::QuoteForMessage(type)));
  }
}

void ReadNumaNodes(base::YamlMap& map, std::vector<int>* out) {
  std::vector<std::string> texts;
  if (!map.Strings("numaNodes", &texts)) return;
  for (const std::string& text : texts) {
    int node = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), node);
    if (error != std::errc() || end != text.data() + text.size() || node < -1) {
      map.Fault("numaNodes",
                fmt::format("{} is no NUMA node: 0, 1, … or -1 for devices "
                            "whose node is not known",
                            base::QuoteForMessage(text)));
    } else {
      out->push_back(node);
    }
  }
}

void ReadPhysicalFunctions(base::YamlMap& map,
                           std::vector<PhysicalFunctionSelector>* out) {
  std::vector<std::string> texts;
  if (!map.Strings("pfNames", &texts)) return;
  for (const std::string& text : texts) {
    absl::StatusOr<PhysicalFunctionSelector> selector =
        ParsePhysicalFunction(text);
    if (selector.ok()) {
      out->push_back(*std::move(selector));
    } else {
      map.Fault("pfNames", std::string(selector.status().message()));
    }
  }
}

Selectors ReadSelectors(base::YamlMap& map) {
  Selectors selectors;
  ReadGlobs(map, "devices", &selectors.devices);
  ReadGlobs(map, "pciAddresses", &selectors.pci_addresses);
  ReadNonEmpty(map, "drivers", &selectors.drivers);
  ReadNonEmpty(map, "ifNames", &selectors.if_names);
  ReadLinkTypes(map, &selectors.link_types);
  ReadPciIds(map, "vendors", &selectors.vendors);
  ReadPciIds(map, "deviceIDs", &selectors.device_ids);
  ReadPhysicalFunctions(map, &selectors.pf_names);
  ReadNumaNodes(map, &selectors.numa_nodes);
  // enum ibv_port_state.
  ReadWords<int>(map, "linkStates",
                 {{"down", 1}, {"init", 2}, {"armed", 3}, {"active", 4}},
                 &selectors.port_states);
  ReadWords<DeviceKind>(map, "kinds",
                        {{"pf", DeviceKind::kPhysical},
                         {"vf", DeviceKind::kVirtual},
                         {"sf", DeviceKind::kSub},
                         {"bond", DeviceKind::kBond},
                         {"soft", DeviceKind::kSoft}},
                        &selectors.kinds);
  if (bool is_rdma = true; map.Bool("isRdma", &is_rdma) && !is_rdma)
    map.Fault("isRdma",
              "false selects nothing: only RDMA devices are advertised; leave "
              "it out");
  return selectors;
}

}  // namespace

std::vector<Selectors> ReadNativeSelectors(base::YamlMap& pool,
                                           std::string_view key) {
  std::vector<Selectors> all;
  for (base::YamlMap& map : pool.MapOrMaps(key)) {
    all.push_back(ReadSelectors(map));
    if (key == "exclude" && all.back() == Selectors{})
      map.Fault("", "excludes every device: give it a selector");
  }
  return all;
}

}  // namespace purser::plugin
