// SPDX-License-Identifier: Apache-2.0
#include "cli/request.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "planner/send_operations.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

using Field = uint32_t& (*)(WorkloadSource&);

struct RequestKey {
  std::string_view name;
  Field field;
};
constexpr RequestKey kRequestKeys[] = {
    {"send-wr",
     [](auto& s) -> uint32_t& { return s.group.request.max_send_wr; }},
    {"send-sge",
     [](auto& s) -> uint32_t& { return s.group.request.max_send_sge; }},
    {"inline",
     [](auto& s) -> uint32_t& { return s.group.request.max_inline_data; }},
    {"recv-wr",
     [](auto& s) -> uint32_t& { return s.group.request.max_recv_wr; }},
    {"recv-sge",
     [](auto& s) -> uint32_t& { return s.group.request.max_recv_sge; }},
    {"srq-wr",
     [](auto& s) -> uint32_t& { return s.shared_receive_queue.max_wr; }},
    {"srq-sge",
     [](auto& s) -> uint32_t& { return s.shared_receive_queue.max_sge; }},
};
constexpr std::string_view kType = "type";

struct Part {
  std::string text, name, value;
  bool has_value = false;
};

std::vector<Part> PartsOf(const std::string& text) {
  std::vector<Part> parts;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(text, ','))) {
    const std::vector<std::string> sides =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    parts.push_back({.text = part,
                     .name = sides[0],
                     .value = sides.size() == 2 ? sides[1] : "",
                     .has_value = sides.size() == 2});
  }
  return parts;
}

absl::Status BadPart(const Part& part, const std::string& why) {
  return absl::InvalidArgumentError(fmt::format(
      "--request: {}: {}; write NAME=VALUE, separated by commas, such as "
      "type=rc,send-wr=256,send-sge=4",
      base::QuoteForMessage(part.text), why));
}

absl::Status ReadPart(const Part& part, WorkloadSource* source) {
  if (!part.has_value) return BadPart(part, "has no =");
  if (part.name == kType) {
    source->type = part.value;
    return absl::OkStatus();
  }
  std::vector<std::string_view> names = {kType};
  for (const RequestKey& key : kRequestKeys) {
    names.push_back(key.name);
    if (part.name != key.name) continue;
    // What a program may have asked for is anything that verbs can be told.
    if (!absl::SimpleAtoi(part.value, &key.field(*source)))
      return BadPart(part, "is no number of 32 bits");
    // By 0 the model means that there is none.
    if (key.name == "srq-wr" && source->shared_receive_queue.max_wr == 0)
      return BadPart(part, "is no shared receive queue: leave it out");
    return absl::OkStatus();
  }
  return BadPart(part, fmt::format("no such name{}; there are {}",
                                   base::DidYouMean(part.name, names),
                                   fmt::join(names, ", ")));
}

// Of those `given`, the first among `names`; "".
std::string_view FirstOf(std::initializer_list<std::string_view> names,
                         absl::FunctionRef<bool(std::string_view)> given) {
  const auto found = std::find_if(names.begin(), names.end(), given);
  return found == names.end() ? "" : *found;
}

}  // namespace

absl::Status ReadRequest(const std::string& text, WorkloadSource* source) {
  std::set<std::string, std::less<>> given;
  for (const Part& part : PartsOf(text)) {
    PURSER_RETURN_IF_ERROR(ReadPart(part, source));
    if (!given.insert(part.name).second)
      return BadPart(part, "is given twice: remove one");
  }
  const std::string contradiction = Contradiction(
      source->type,
      [&given](std::string_view name) { return given.contains(name); }, "");
  if (contradiction.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--request: " + contradiction);
}

std::string GivenTwice(const std::string& text,
                       absl::FunctionRef<bool(std::string_view)> given) {
  for (const Part& part : PartsOf(text))
    if (given(part.name)) return part.name;
  return "";
}

std::string Contradiction(const std::string& type,
                          absl::FunctionRef<bool(std::string_view)> given,
                          const char* dashes) {
  const auto sends_alone = [&] {
    const auto known =
        planner::QueuePairTypeFromName(absl::AsciiStrToLower(type));
    return known.ok() && planner::SendsAlone(*known);
  };
  const std::string_view own = FirstOf({"recv-wr", "recv-sge"}, given);
  const std::string_view shared = FirstOf({"srq-wr", "srq-sge"}, given);
  if ((!own.empty() || !shared.empty()) && sends_alone())
    return fmt::format("{}{}: {} queue pairs have no receives: remove it",
                       dashes, own.empty() ? shared : own,
                       absl::AsciiStrToLower(type));
  if (!own.empty() && given("srq-wr"))
    return fmt::format(
        "{0}srq-wr contradicts {0}{1}: a shared receive queue has the receives",
        dashes, own);
  if (shared == "srq-sge")
    return fmt::format("{0}srq-sge needs {0}srq-wr", dashes);
  return "";
}

}  // namespace purser::cli
