// SPDX-License-Identifier: Apache-2.0
#include "base/strict_yaml.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "base/json_tree.h"
#include "base/yaml_document.h"
#include "base/yaml_tree.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {

StrictYaml::StrictYaml(std::string name, std::string_view text, size_t longest)
    : document_(std::make_shared<YamlDocument>()) {
  document_->name = std::move(name);
  document_->tree = ParseYamlTree(text, longest);
}

StrictYaml::StrictYaml(std::string name, std::string_view text,
                       YamlDialect dialect)
    : document_(std::make_shared<YamlDocument>()) {
  document_->name = std::move(name);
  document_->dialect = dialect;
  document_->tree = document_->is_json() ? ParseJsonTree(text, kLongestConfig)
                                         : ParseYamlTree(text, kLongestConfig);
}

StrictYaml::~StrictYaml() = default;

YamlMap StrictYaml::Root() {
  VisitedMap root{.muted = document_->tree.broken};
  const YamlNode& node = document_->tree.nodes[0];
  if (!root.muted && node.kind == YamlNode::Kind::kMap) {
    root.node = 0;
    root.mark = node.mark;
  } else if (!root.muted && node.kind != YamlNode::Kind::kNull) {
    document_->tree.faults.push_back(
        {.mark = node.mark,
         .text = fmt::format("the document must be a map of keys to values, "
                             "not {}",
                             DescribeNode(node))});
    root.muted = true;
  }
  const size_t visited = document_->Visit(std::move(root));
  return YamlMap::Of(document_, visited);
}

absl::Status StrictYaml::Finish() {
  const std::vector<std::string> lines = document_->FaultLines();
  if (lines.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

std::vector<std::string> StrictYaml::Warnings() const {
  return document_->WarningLines();
}

}  // namespace purser::base
