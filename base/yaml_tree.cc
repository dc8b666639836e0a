// SPDX-License-Identifier: Apache-2.0
#include "base/yaml_tree.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace purser::base {
namespace {

constexpr size_t kLongestText = 1 << 20;
constexpr size_t kDeepest = 64;

YamlMark ToMark(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return {.line = mark.line + 1, .column = mark.column + 1};
}

// Builds the tree from yaml-cpp's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(YamlTree* tree) : tree_(*tree) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    start_ = ToMark(mark);
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (skipped_ == 0) Add(YamlNode::Kind::kNull, ToMark(mark), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag,
                YAML::anchor_t anchor, const std::string& value) override {
    if (skipped_ > 0) return;
    CheckTag(ToMark(mark), tag, {"str", "int", "float", "bool"});
    YamlNode node{.kind = YamlNode::Kind::kScalar, .mark = ToMark(mark)};
    node.text = value;
    node.plain = tag != "!" && tag != "tag:yaml.org,2002:str";
    Add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (skipped_ > 0) return;
    const auto found = anchors_.find(anchor);
    const bool open =
        found != anchors_.end() &&
        std::any_of(frames_.begin(), frames_.end(), [&](const Frame& frame) {
          return frame.node == found->second;
        });
    if (found != anchors_.end() && !open)
      return Attach(found->second, ToMark(mark));
    if (open) Fault(ToMark(mark), "an alias may not stand inside its anchor");
    Add(YamlNode::Kind::kNull, ToMark(mark), YAML::NullAnchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kList, ToMark(mark), tag, "seq", anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag,
                  YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kMap, ToMark(mark), tag, "map", anchor);
  }
  void OnMapEnd() override { Close(); }

  YamlMark start() const { return start_; }
  // Where nesting first exceeds kDeepest.
  const std::optional<YamlFault>& too_deep() const { return too_deep_; }

 private:
  struct Key {
    std::optional<std::string> text;  // nullopt: a bad one, drop its value
    YamlMark mark;
  };
  struct Frame {
    int node = 0;
    std::optional<Key> key;  // of a map: the key whose value comes next
    std::map<std::string, int> keys;  // of a map: the line of each
  };

  void Fault(YamlMark mark, std::string text) {
    tree_.faults.push_back({.mark = mark, .text = std::move(text)});
  }

  void CheckTag(YamlMark mark, const std::string& tag,
                std::initializer_list<std::string_view> known) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    for (const std::string_view name : known)
      if (tag == fmt::format("tag:yaml.org,2002:{}", name)) return;
    Fault(mark, fmt::format("the tag {} is not supported here: remove it",
                            QuoteForMessage(tag)));
  }

  void Add(YamlNode::Kind kind, YamlMark mark, YAML::anchor_t anchor) {
    Add(YamlNode{.kind = kind, .mark = mark}, anchor);
  }
  void Add(YamlNode node, YAML::anchor_t anchor) {
    const YamlMark mark = node.mark;
    const int index = static_cast<int>(tree_.nodes.size());
    tree_.nodes.push_back(std::move(node));
    if (anchor != YAML::NullAnchor) anchors_[anchor] = index;
    Attach(index, mark);
  }

  // Puts a node into the list or map that is open, as what comes next there.
  void Attach(int index, YamlMark mark) {
    if (frames_.empty()) return;
    Frame& frame = frames_.back();
    YamlNode& parent = tree_.nodes[frame.node];
    if (parent.kind == YamlNode::Kind::kList) {
      PlaceNull(index, parent.mark);
      parent.items.push_back(index);
    } else if (!frame.key.has_value()) {
      frame.key = TakeKey(tree_.nodes[index], mark, &frame);
    } else {
      PlaceNull(index, frame.key->mark);
      if (frame.key->text.has_value())
        parent.entries.push_back({.key = std::move(*frame.key->text),
                                  .key_mark = frame.key->mark,
                                  .value = index});
      frame.key.reset();
    }
  }

  // What is not written has no place: yaml-cpp gives that of what follows.
  void PlaceNull(int index, YamlMark mark) {
    YamlNode& node = tree_.nodes[index];
    if (node.kind == YamlNode::Kind::kNull) node.mark = mark;
  }

  Key TakeKey(const YamlNode& node, YamlMark mark, Frame* frame) {
    Key key{.text = std::nullopt, .mark = mark};
    if (node.kind != YamlNode::Kind::kScalar) {
      Fault(mark, "a key must be plain text");
    } else if (node.plain && node.text == "<<") {
      Fault(mark, "merge keys (<<) are not supported: write the keys out");
    } else if (const auto [place, added] =
                   frame->keys.try_emplace(node.text, mark.line);
               !added) {
      Fault(mark, fmt::format("{} is given twice, first on line {}: remove one",
                              QuoteForMessage(node.text), place->second));
    } else {
      key.text = node.text;
    }
    return key;
  }

  void Open(YamlNode::Kind kind, YamlMark mark, const std::string& tag,
            std::string_view known_tag, YAML::anchor_t anchor) {
    if (skipped_ > 0 || frames_.size() >= kDeepest) {
      if (!too_deep_.has_value())
        too_deep_ = {
            .mark = mark,
            .text = fmt::format("nested deeper than {} levels", kDeepest)};
      if (skipped_++ == 0) Add(YamlNode::Kind::kNull, mark, YAML::NullAnchor);
      return;
    }
    CheckTag(mark, tag, {known_tag});
    const int index = static_cast<int>(tree_.nodes.size());
    Add(kind, mark, anchor);
    frames_.push_back({.node = index});
  }
  void Close() {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      frames_.pop_back();
    }
  }

  YamlTree& tree_;
  YamlMark start_;
  std::vector<Frame> frames_;  // the lists and maps that are open
  std::map<YAML::anchor_t, int> anchors_;
  int skipped_ = 0;  // lists and maps that are open below kDeepest
  std::optional<YamlFault> too_deep_;
};

// What yaml-cpp does not refuse by itself: it takes the byte 4 for the end of
// the text and lets malformed UTF-8 pass.
std::optional<YamlFault> FindForbiddenByte(std::string_view text) {
  YamlMark mark;
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const size_t length = Utf8CharacterLength(text.substr(i));
    const bool control =
        (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') ||
        byte == 0x7f;
    if (length == 0 || control)
      return YamlFault{
          .mark = mark,
          .text = fmt::format("byte 0x{:02x} {}", byte,
                              length == 0 ? "is not UTF-8: save the file as "
                                            "UTF-8"
                                          : "is not allowed: remove it")};
    if (byte == '\n') {
      ++mark.line;
      mark.column = 1;
    } else {
      mark.column += static_cast<int>(length);
    }
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

struct Document {
  YamlTree tree;
  YamlMark start;
};

// Parses one document; nullopt when there is none left.
std::optional<Document> NextDocument(YAML::Parser* parser) {
  Document document;
  TreeBuilder builder(&document.tree);
  try {
    if (!parser->HandleNextDocument(builder)) return std::nullopt;
  } catch (const YAML::Exception& error) {
    // Faults found before may well come of the same mistake.
    document.tree.faults = {{.mark = ToMark(error.mark), .text = error.msg}};
    document.tree.broken = true;
  }
  // yaml-cpp, too, ends where nesting is too deep, but does not say so.
  if (builder.too_deep().has_value()) {
    document.tree.faults = {*builder.too_deep()};
    document.tree.broken = true;
  }
  if (document.tree.nodes.empty()) document.tree.nodes.resize(1);
  document.start = builder.start();
  return document;
}

// Only one document may stand in a text; "---" at the end begins another that
// is empty.
void RefuseFurtherDocuments(YAML::Parser* parser, YamlMark start,
                            YamlTree* tree) {
  while (const auto next = NextDocument(parser)) {
    if (next->tree.broken) {
      tree->faults.push_back(next->tree.faults.back());
      tree->broken = true;
      return;
    }
    // yaml-cpp gives empty documents without end where one cannot begin.
    if (std::tie(next->start.line, next->start.column) ==
        std::tie(start.line, start.column)) {
      tree->faults.push_back({.mark = start, .text = "unexpected text"});
      tree->broken = true;
      return;
    }
    start = next->start;
    if (next->tree.nodes[0].kind == YamlNode::Kind::kNull) continue;
    tree->faults.push_back({.mark = next->tree.nodes[0].mark,
                            .text = "a second document: only one is read"});
    return;
  }
}

}  // namespace

YamlTree ParseYamlTree(std::string_view text) {
  if (text.size() > kLongestText)
    return Broken({.mark = {},
                   .text = fmt::format("{} bytes long; at most {} are read",
                                       text.size(), kLongestText)});
  if (auto fault = FindForbiddenByte(text)) return Broken(std::move(*fault));
  // Without something after the last line end, yaml-cpp takes the end of the
  // text for that of a quoted scalar. A comment changes nothing else.
  std::istringstream stream{std::string(text) +
                            (text.ends_with('\n') ? "#" : "\n#")};
  YAML::Parser parser(stream);
  std::optional<Document> first = NextDocument(&parser);
  if (!first.has_value()) return {.nodes = {{}}};
  YamlTree tree = std::move(first->tree);
  if (!tree.broken) RefuseFurtherDocuments(&parser, first->start, &tree);
  return tree;
}

}  // namespace purser::base
