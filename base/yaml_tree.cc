// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_tree.h"

#include <yaml.h>

#include <optional>
#include <utility>

#include "base/utf8.h"
#include "base/yaml_tree_builder.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

YamlMark ToMark(const yaml_mark_t& mark) {
  return {.line = static_cast<int>(mark.line) + 1,
          .column = static_cast<int>(mark.column) + 1};
}

std::string_view View(const yaml_char_t* text) {
  return text == nullptr ? std::string_view()
                         : reinterpret_cast<const char*>(text);
}

class Parser {
 public:
  explicit Parser(std::string_view text) {
    // Fails where there is no memory alone; then so does the first Next().
    (void)yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(
        &parser_, reinterpret_cast<const unsigned char*>(text.data()),
        text.size());
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
  }
  ~Parser() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // Null where the text is at fault. Good until the next call.
  const yaml_event_t* Next() {
    yaml_event_delete(&event_);
    return yaml_parser_parse(&parser_, &event_) == 1 ? &event_ : nullptr;
  }
  YamlFault fault() const {
    std::string text(parser_.problem == nullptr ? "out of memory"
                                                : parser_.problem);
    if (parser_.context != nullptr) {
      text += fmt::format(" {}", parser_.context);
      if (parser_.context_mark.line != parser_.problem_mark.line)
        text += fmt::format(" that begins on line {}",
                            parser_.context_mark.line + 1);
    }
    return {.mark = ToMark(parser_.problem_mark), .text = std::move(text)};
  }

 private:
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

// Of the character after `before`, which is UTF-8.
YamlMark MarkAfter(std::string_view before) {
  YamlMark mark;
  for (const char byte : before) {
    if (byte == '\n')
      mark = {.line = mark.line + 1};
    else if ((static_cast<unsigned char>(byte) & 0xc0) != 0x80)
      ++mark.column;
  }
  return mark;
}

// What libyaml would say without a place.
std::optional<YamlFault> FindForbiddenByte(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool plain = (byte >= 0x20 && byte < 0x7f) || byte == '\n' ||
                       byte == '\t' || byte == '\r';
    const size_t length = plain ? 1 : Utf8CharacterLength(text.substr(i));
    if (length == 0 || (length == 1 && !plain))
      return YamlFault{
          .mark = MarkAfter(text.substr(0, i)),
          .text = fmt::format("byte 0x{:02x} {}", byte,
                              length == 0 ? "is not UTF-8: save the file as "
                                            "UTF-8"
                                          : "is not allowed: remove it")};
    i += length;
  }
  return std::nullopt;
}

YamlTree Broken(YamlFault fault) {
  YamlTree tree;
  tree.nodes.resize(1);
  tree.faults.push_back(std::move(fault));
  tree.broken = true;
  return tree;
}

YamlTreeBuilder::Properties PropertiesOf(const yaml_event_t& event,
                                         const yaml_char_t* tag,
                                         const yaml_char_t* anchor) {
  return {.mark = ToMark(event.start_mark),
          .tag = View(tag),
          .anchor = View(anchor)};
}

// False where nothing more is to be read.
bool Take(const yaml_event_t& event, YamlTreeBuilder& builder) {
  const auto& scalar = event.data.scalar;
  const auto& list = event.data.sequence_start;
  const auto& map = event.data.mapping_start;
  switch (event.type) {
    case YAML_SCALAR_EVENT:
      builder.Scalar(
          PropertiesOf(event, scalar.tag, scalar.anchor),
          {reinterpret_cast<const char*>(scalar.value), scalar.length},
          scalar.style == YAML_PLAIN_SCALAR_STYLE &&
              scalar.plain_implicit == 1);
      return true;
    case YAML_ALIAS_EVENT:
      builder.Alias(ToMark(event.start_mark), View(event.data.alias.anchor));
      return true;
    case YAML_SEQUENCE_START_EVENT:
      return builder.Open(PropertiesOf(event, list.tag, list.anchor),
                          YamlNode::Kind::kList);
    case YAML_MAPPING_START_EVENT:
      return builder.Open(PropertiesOf(event, map.tag, map.anchor),
                          YamlNode::Kind::kMap);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
      builder.Close();
      return true;
    default:
      return true;
  }
}

// The next document; nullopt when there is none left.
std::optional<YamlTree> NextDocument(Parser& parser) {
  YamlTree tree;
  YamlTreeBuilder builder(&tree);
  while (const yaml_event_t* event = parser.Next()) {
    if (event->type == YAML_STREAM_END_EVENT) return std::nullopt;
    if (event->type == YAML_DOCUMENT_END_EVENT) return tree;
    if (!Take(*event, builder)) return Broken(std::move(tree.faults.back()));
  }
  // Faults found before may well come of the same mistake.
  return Broken(parser.fault());
}

}  // namespace

int YamlKeys::Id(std::string_view key) {
  const auto found = ids_.find(key);
  if (found != ids_.end()) return found->second;
  const int id = static_cast<int>(names_.size());
  ids_.emplace(names_.emplace_back(key), id);
  return id;
}

YamlTree ParseYamlTree(std::string_view text, size_t longest) {
  if (text.size() > longest)
    return Broken({.mark = {},
                   .text = fmt::format("{} bytes long; at most {} are read",
                                       text.size(), longest)});
  text = WithoutByteOrderMark(text);
  if (auto fault = FindForbiddenByte(text)) return Broken(std::move(*fault));
  Parser parser(text);
  std::optional<YamlTree> tree = NextDocument(parser);
  if (!tree.has_value()) {
    tree.emplace().nodes.resize(1);
    return *std::move(tree);
  }
  // Only one may stand in a text; "---" at the end begins others that are
  // empty.
  while (!tree->broken) {
    std::optional<YamlTree> next = NextDocument(parser);
    if (!next.has_value()) break;
    if (next->broken) return *std::move(next);
    if (next->nodes[0].kind == YamlNode::Kind::kNull) continue;
    tree->faults.push_back({.mark = next->nodes[0].mark,
                            .text = "a second document: only one is read"});
    break;
  }
  return *std::move(tree);
}

}  // namespace purser::base
