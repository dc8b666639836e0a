// SPDX-License-Identifier: Apache-2.0
#include "base/proc.h"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "base/utf8.h"
#include "spdlog/fmt/fmt.h"

namespace purser::base {
namespace {

constexpr int kCapIpcLock = 14;  // linux/capability.h

// The words after `label` on the line that begins with it.
absl::StatusOr<std::vector<std::string>> FindLine(
    const std::filesystem::path& file, std::string_view label) {
  PURSER_ASSIGN_OR_RETURN(const std::string text, ReadFile(file.string()));
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    const std::string_view line(raw.data(), raw.size());
    if (!line.starts_with(label)) continue;
    return std::vector<std::string>(absl::StrSplit(
        raw.substr(label.size()), absl::ByAnyChar(" \t"), absl::SkipEmpty()));
  }
  return absl::InternalError(
      fmt::format("{} has no line \"{}\"; mount the kernel's own /proc",
                  file.string(), label));
}

absl::StatusOr<uint64_t> ToNumber(const std::filesystem::path& file,
                                  std::string_view label,
                                  const std::vector<std::string>& words,
                                  int base) {
  const std::string word = words.empty() ? "" : words[0];
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (error != std::errc() || end != word.data() + word.size())
    return absl::InternalError(fmt::format(
        "{}: \"{}\" is {}, not a number; mount the kernel's own /proc",
        file.string(), label, QuoteForMessage(word)));
  return value;
}

absl::StatusOr<uint64_t> KibibytesOf(const std::filesystem::path& file,
                                     std::string_view label) {
  PURSER_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                          FindLine(file, label));
  PURSER_ASSIGN_OR_RETURN(const uint64_t kib, ToNumber(file, label, words, 10));
  return kib * 1024;
}

// The kernel asks for the capability in the initial user namespace
// (ib_umem_get: capable()), and in any other CapEff shows it without effect.
// The initial one maps all identities to themselves (user_namespaces(7)).
absl::StatusOr<bool> InInitialUserNamespace(
    const std::filesystem::path& proc_root) {
  const absl::StatusOr<std::string> map =
      ReadFile((proc_root / "self" / "uid_map").string());
  if (absl::IsNotFound(map.status())) return true;  // kernel without namespaces
  PURSER_RETURN_IF_ERROR(map.status());
  const std::vector<std::string> words =
      absl::StrSplit(*map, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  return words == std::vector<std::string>{"0", "0", "4294967295"};
}

}  // namespace

ProcReader::ProcReader(std::filesystem::path proc_root)
    : proc_root_(std::move(proc_root)) {}

absl::StatusOr<MemlockLimit> ProcReader::Memlock() const {
  MemlockLimit limit;
  const std::filesystem::path limits = proc_root_ / "self" / "limits";
  PURSER_ASSIGN_OR_RETURN(const std::vector<std::string> soft,
                          FindLine(limits, "Max locked memory"));
  if (soft.empty() || soft[0] != "unlimited") {
    PURSER_ASSIGN_OR_RETURN(limit.soft_bytes,
                            ToNumber(limits, "Max locked memory", soft, 10));
  }
  const std::filesystem::path status = proc_root_ / "self" / "status";
  PURSER_ASSIGN_OR_RETURN(const std::vector<std::string> effective,
                          FindLine(status, "CapEff:"));
  PURSER_ASSIGN_OR_RETURN(const uint64_t capabilities,
                          ToNumber(status, "CapEff:", effective, 16));
  PURSER_ASSIGN_OR_RETURN(const bool initial,
                          InInitialUserNamespace(proc_root_));
  limit.ipc_lock = initial && ((capabilities >> kCapIpcLock) & 1) != 0;
  return limit;
}

absl::StatusOr<NodeMemory> ProcReader::Memory() const {
  const std::filesystem::path meminfo = proc_root_ / "meminfo";
  NodeMemory memory;
  PURSER_ASSIGN_OR_RETURN(memory.total_bytes,
                          KibibytesOf(meminfo, "MemTotal:"));
  PURSER_ASSIGN_OR_RETURN(memory.available_bytes,
                          KibibytesOf(meminfo, "MemAvailable:"));
  return memory;
}

std::set<std::string> ProcReader::DefaultRouteNetdevs() const {
  std::set<std::string> netdevs;
  const absl::StatusOr<std::string> text =
      ReadFile((proc_root_ / "net" / "route").string());
  if (!text.ok()) return netdevs;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    // Iface Destination Gateway Flags RefCnt Use Metric Mask …
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() >= 8 && words[1] == "00000000" && words[7] == "00000000")
      netdevs.insert(words[0]);
  }
  return netdevs;
}

absl::StatusOr<HugePages> ProcReader::FindHugePages() const {
  constexpr std::string_view kFree = "HugePages_Free:";
  const std::filesystem::path meminfo = proc_root_ / "meminfo";
  HugePages pages;
  PURSER_ASSIGN_OR_RETURN(pages.page_bytes,
                          KibibytesOf(meminfo, "Hugepagesize:"));
  PURSER_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                          FindLine(meminfo, kFree));
  PURSER_ASSIGN_OR_RETURN(pages.free_pages,
                          ToNumber(meminfo, kFree, words, 10));
  if (pages.page_bytes == 0)
    return absl::InternalError(
        fmt::format("{}: Hugepagesize is 0; mount the kernel's own /proc",
                    meminfo.string()));
  return pages;
}

}  // namespace purser::base
