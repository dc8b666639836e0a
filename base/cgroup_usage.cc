// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup_usage.h"

#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

namespace fs = std::filesystem;

absl::Status NotUnderstood(const fs::path& file, std::string_view what) {
  return absl::InternalError(
      fmt::format("{}: {} is not what the kernel writes there", file.string(),
                  QuoteForMessage(what)));
}

// "" for a file that is not there.
absl::StatusOr<std::string> ReadOrEmpty(const fs::path& file) {
  absl::StatusOr<std::string> text = ReadFile(file.string());
  if (absl::IsNotFound(text.status())) return "";
  return text;
}

// The number after `key` on a line of its own; 0 where there is no such line.
absl::StatusOr<uint64_t> Field(const fs::path& file, std::string_view text,
                               std::string_view key) {
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() != 2 ||
        words[0] != absl::string_view(key.data(), key.size()))
      continue;
    uint64_t value = 0;
    if (!absl::SimpleAtoi(words[1], &value))
      return NotUnderstood(file, std::string(line));
    return value;
  }
  return 0;
}

// "some avg10=0.12 avg60=…".
absl::StatusOr<double> Avg10(const fs::path& file, std::string_view text,
                             std::string_view kind) {
  constexpr std::string_view kKey = "avg10=";
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty() || words[0] != kind) continue;
    double percent = 0;
    if (words.size() < 2 || !words[1].starts_with(kKey) ||
        !absl::SimpleAtod(words[1].substr(kKey.size()), &percent))
      return NotUnderstood(file, std::string(line));
    return percent;
  }
  return NotUnderstood(file, text);
}

absl::Status ReadHigh(const fs::path& directory, CgroupUsage& usage) {
  const fs::path file = directory / "memory.high";
  PURSER_ASSIGN_OR_RETURN(const std::string text, ReadOrEmpty(file));
  const std::vector<std::string> words =
      absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (words.empty() || words[0] == "max") return absl::OkStatus();
  uint64_t high = 0;
  if (!absl::SimpleAtoi(words[0], &high)) return NotUnderstood(file, text);
  if (usage.limit_bytes.has_value() && *usage.limit_bytes <= high)
    return absl::OkStatus();
  usage.limit_bytes = high;
  usage.limit_origin = file.string();
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CurrentBytes(const CgroupMemory& memory,
                                      const fs::path& directory) {
  if (directory == memory.path) return memory.current_bytes;
  const fs::path file =
      directory /
      (memory.version == 1 ? "memory.usage_in_bytes" : "memory.current");
  PURSER_ASSIGN_OR_RETURN(const std::string text, ReadOrEmpty(file));
  uint64_t current = 0;
  if (!text.empty() && !absl::SimpleAtoi(text, &current))
    return NotUnderstood(file, text);
  return current;
}

absl::Status ReadEventsV2(const fs::path& directory, CgroupUsage& usage) {
  const fs::path file = directory / "memory.events";
  PURSER_ASSIGN_OR_RETURN(const std::string text, ReadOrEmpty(file));
  PURSER_ASSIGN_OR_RETURN(const uint64_t high, Field(file, text, "high"));
  PURSER_ASSIGN_OR_RETURN(const uint64_t max, Field(file, text, "max"));
  PURSER_ASSIGN_OR_RETURN(const uint64_t oom, Field(file, text, "oom"));
  PURSER_ASSIGN_OR_RETURN(const uint64_t kill, Field(file, text, "oom_kill"));
  usage.limit_hits = high + max;
  usage.out_of_memory = oom + kill;
  return absl::OkStatus();
}

absl::Status ReadEventsV1(const fs::path& directory, CgroupUsage& usage) {
  const fs::path failcnt = directory / "memory.failcnt";
  PURSER_ASSIGN_OR_RETURN(const std::string hits, ReadOrEmpty(failcnt));
  if (!hits.empty() && !absl::SimpleAtoi(hits, &usage.limit_hits))
    return NotUnderstood(failcnt, hits);
  const fs::path control = directory / "memory.oom_control";
  PURSER_ASSIGN_OR_RETURN(const std::string text, ReadOrEmpty(control));
  PURSER_ASSIGN_OR_RETURN(usage.out_of_memory,
                          Field(control, text, "oom_kill"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MemoryStall> ReadMemoryStall(const fs::path& file) {
  absl::StatusOr<std::string> text = ReadFile(file.string());
  if (!text.ok()) return text.status();
  // With psi=0 the file is there, and reading it gives nothing or an error.
  if (text->empty())
    return absl::UnavailableError(fmt::format(
        "{} is empty: the kernel was booted with psi=0", file.string()));
  MemoryStall stall;
  PURSER_ASSIGN_OR_RETURN(stall.some_avg10, Avg10(file, *text, "some"));
  PURSER_ASSIGN_OR_RETURN(stall.full_avg10, Avg10(file, *text, "full"));
  return stall;
}

absl::StatusOr<CgroupUsage> ReadCgroupUsage(const CgroupMemory& memory) {
  // A limit of an ancestor is met by what is charged there.
  const fs::path directory = memory.max_bytes.has_value()
                                 ? fs::path(memory.max_origin).parent_path()
                                 : fs::path(memory.path);
  PURSER_ASSIGN_OR_RETURN(const uint64_t current,
                          CurrentBytes(memory, directory));
  CgroupUsage usage{.limit_bytes = memory.max_bytes,
                    .limit_origin = memory.max_origin};
  const fs::path stat = directory / "memory.stat";
  PURSER_ASSIGN_OR_RETURN(const std::string text, ReadOrEmpty(stat));
  PURSER_ASSIGN_OR_RETURN(
      const uint64_t inactive_file,
      Field(stat, text,
            memory.version == 1 ? "total_inactive_file" : "inactive_file"));
  usage.working_set_bytes =
      current > inactive_file ? current - inactive_file : 0;
  if (memory.version == 1) {
    PURSER_RETURN_IF_ERROR(ReadEventsV1(directory, usage));
    return usage;
  }
  PURSER_RETURN_IF_ERROR(ReadHigh(directory, usage));
  PURSER_RETURN_IF_ERROR(ReadEventsV2(directory, usage));
  const absl::StatusOr<MemoryStall> stall =
      ReadMemoryStall(directory / "memory.pressure");
  if (stall.ok()) usage.stall = *stall;
  return usage;
}

}  // namespace purser::base
