// SPDX-License-Identifier: Apache-2.0
#include "base/json_tree.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "rapidjson/error/en.h"
#include "rapidjson/memorystream.h"
#include "rapidjson/reader.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

constexpr size_t kDeepest = 64;

std::string ReplaceMalformedUtf8(std::string_view text) {
  std::string good;
  good.reserve(text.size());
  while (!text.empty()) {
    const size_t length = Utf8CharacterLength(text);
    good += length == 0 ? "\xef\xbf\xbd" : text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return good;
}

// Turns offsets into lines and columns. What is asked for comes mostly in the
// order of the text, so it goes on from the last answer.
class Marks {
 public:
  explicit Marks(std::string_view text) : text_(text) {}

  YamlMark At(size_t offset) {
    if (offset < offset_) {
      offset_ = 0;
      mark_ = {};
    }
    for (; offset_ < offset; ++offset_) {
      if (text_[offset_] == '\n') {
        ++mark_.line;
        mark_.column = 1;
      } else if ((static_cast<unsigned char>(text_[offset_]) & 0xc0) != 0x80) {
        ++mark_.column;
      }
    }
    return mark_;
  }

 private:
  const std::string_view text_;
  size_t offset_ = 0;
  YamlMark mark_;
};

// Builds the tree from the events of RapidJSON's iterative parser. Those of
// scalars come when their token was read, those of brackets before.
class TreeBuilder {
 public:
  TreeBuilder(const std::string& text, const rapidjson::MemoryStream& stream,
              YamlTree* tree)
      : text_(text), stream_(stream), marks_(text), tree_(*tree) {}

  bool Null() { return Add({.mark = Before(4)}); }
  bool Bool(bool value) { return Plain(value ? "true" : "false"); }
  bool RawNumber(const char* digits, rapidjson::SizeType length, bool) {
    return Plain({digits, length});
  }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    return Add({.kind = YamlNode::Kind::kScalar,
                .mark = StringMark(),
                .text = std::string(text, length)});
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    key_ = {.key = tree_.keys.Id({text, length}), .key_mark = StringMark()};
    return true;
  }
  bool StartObject() { return Open(YamlNode::Kind::kMap); }
  bool StartArray() { return Open(YamlNode::Kind::kList); }
  bool EndObject(rapidjson::SizeType) { return Close(); }
  bool EndArray(rapidjson::SizeType) { return Close(); }

  // Of numbers, which come as text.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(int64_t) { return false; }
  bool Uint64(uint64_t) { return false; }
  bool Double(double) { return false; }

  Marks& marks() { return marks_; }

 private:
  YamlMark Before(size_t length) { return marks_.At(stream_.Tell() - length); }
  YamlMark StringMark() {
    size_t at = stream_.Tell() - 2;  // before the closing quote
    while (text_[at] != '"' || IsEscaped(at)) --at;
    return marks_.At(at);
  }
  bool IsEscaped(size_t at) const {
    size_t backslashes = 0;
    while (backslashes < at && text_[at - 1 - backslashes] == '\\')
      ++backslashes;
    return backslashes % 2 == 1;
  }

  bool Plain(std::string_view text) {
    return Add({.kind = YamlNode::Kind::kScalar,
                .plain = true,
                .mark = Before(text.size()),
                .text = std::string(text)});
  }
  bool Add(YamlNode node) {
    const int index = static_cast<int>(tree_.nodes.size());
    tree_.nodes.push_back(std::move(node));
    if (open_.empty()) return true;
    const YamlNode& parent = tree_.nodes[static_cast<size_t>(open_.back())];
    const auto children = static_cast<size_t>(parent.children);
    if (parent.kind == YamlNode::Kind::kList) {
      tree_.lists[children].push_back(index);
    } else {
      key_.value = index;
      tree_.maps[children].push_back(key_);
    }
    return true;
  }
  bool Open(YamlNode::Kind kind) {
    const int index = static_cast<int>(tree_.nodes.size());
    const bool is_list = kind == YamlNode::Kind::kList;
    Add({.kind = kind,
         .mark = Before(0),
         .children = static_cast<int>(is_list ? tree_.lists.size()
                                              : tree_.maps.size())});
    if (is_list) {
      tree_.lists.emplace_back();
    } else {
      tree_.maps.emplace_back();
    }
    open_.push_back(index);
    return open_.size() <= kDeepest;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  const std::string& text_;
  const rapidjson::MemoryStream& stream_;
  Marks marks_;
  YamlTree& tree_;
  std::vector<int> open_;  // lists and maps
  YamlEntry key_;          // of the value that comes next
};

YamlTree Broken(YamlMark mark, std::string text) {
  YamlTree tree;
  tree.nodes.resize(1);
  tree.faults.push_back({.mark = mark, .text = std::move(text)});
  tree.broken = true;
  return tree;
}

}  // namespace

YamlTree ParseJsonTree(std::string_view text, size_t longest) {
  if (text.size() > longest)
    return Broken({}, fmt::format("{} bytes long; at most {} are read",
                                  text.size(), longest));
  const std::string good = ReplaceMalformedUtf8(WithoutByteOrderMark(text));
  // RapidJSON would take it for the end.
  if (const size_t zero = good.find('\0'); zero != std::string::npos)
    return Broken(Marks(good).At(zero), "byte 0x00 is not allowed: remove it");
  YamlTree tree;
  rapidjson::MemoryStream stream(good.data(), good.size());
  TreeBuilder builder(good, stream, &tree);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result =
      reader.Parse<rapidjson::kParseIterativeFlag |
                   rapidjson::kParseNumbersAsStringsFlag>(stream, builder);
  if (!result.IsError()) return tree;
  const YamlMark mark =
      builder.marks().At(std::min(result.Offset(), good.size()));
  if (result.Code() == rapidjson::kParseErrorTermination)
    return Broken(mark, fmt::format("nested deeper than {} levels", kDeepest));
  return Broken(mark, fmt::format("not JSON: {}",
                                  rapidjson::GetParseError_En(result.Code())));
}

}  // namespace purser::base
