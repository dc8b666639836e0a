// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/json_tree.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "plugin/config/config.h"
#include "plugin/config/forms.h"

namespace purser::plugin {
namespace {

constexpr absl::string_view kSharedRdmaKey = "configList",
                            kIntervalKey = "periodicUpdateInterval",
                            kSriovKey = "resourceList";

std::optional<ConfigForm> FormOf(const base::YamlTree& tree) {
  if (tree.broken) return std::nullopt;
  if (tree.nodes[0].kind != base::YamlNode::Kind::kMap)
    return ConfigForm::kNative;
  for (const base::YamlEntry& entry : tree.EntriesOf(tree.nodes[0])) {
    const std::string& key = tree.keys.Name(entry.key);
    if (absl::EqualsIgnoreCase(key, kSharedRdmaKey) ||
        absl::EqualsIgnoreCase(key, kIntervalKey))
      return ConfigForm::kSharedRdma;
    if (absl::EqualsIgnoreCase(key, kSriovKey)) return ConfigForm::kSriov;
  }
  return ConfigForm::kNative;
}

// Of a text that cannot be read: whose mistakes to tell.
ConfigForm LikelyForm(std::string_view text) {
  const std::string lower =
      absl::AsciiStrToLower(absl::string_view(text.data(), text.size()));
  auto has = [&](absl::string_view key) {
    return absl::StrContains(lower, absl::AsciiStrToLower(key));
  };
  if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(lower), "{"))
    return ConfigForm::kNative;
  if (has(kSharedRdmaKey)) return ConfigForm::kSharedRdma;
  return has(kSriovKey) ? ConfigForm::kSriov : ConfigForm::kNative;
}

// By its keys. Two of the forms are JSON and one is YAML, which JSON is too.
ConfigForm DetectForm(std::string_view text) {
  if (const auto form = FormOf(base::ParseJsonTree(text, base::kLongestConfig)))
    return *form;
  if (const auto form = FormOf(base::ParseYamlTree(text, base::kLongestConfig)))
    return *form;
  return LikelyForm(text);
}

}  // namespace

const char* ConfigFormName(ConfigForm form) {
  switch (form) {
    case ConfigForm::kNative:
      return "Purser's own";
    case ConfigForm::kSharedRdma:
      return "the shared RDMA device plugin's";
    case ConfigForm::kSriov:
      return "the SR-IOV network device plugin's";
  }
  return "unknown";
}

absl::StatusOr<Config> ParseConfig(const std::string& name,
                                   std::string_view text,
                                   const ParseOptions& options) {
  switch (DetectForm(text)) {
    case ConfigForm::kSharedRdma:
      return ParseSharedRdma(name, text);
    case ConfigForm::kSriov:
      return ParseSriov(name, text, options.sriov_resource_prefix);
    case ConfigForm::kNative:
      break;
  }
  return ParseNative(name, text);
}

absl::StatusOr<Config> LoadConfig(const std::string& path,
                                  const ParseOptions& options) {
  PURSER_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path));
  return ParseConfig(path, text, options);
}

}  // namespace purser::plugin
