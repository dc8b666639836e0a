// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup.h"

#include <algorithm>
#include <charconv>
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

namespace fs = std::filesystem;

constexpr std::string_view kAdvice =
    "make it readable as the kernel shows it, or give the budget explicitly";

constexpr std::string_view kControllers = "cgroup.controllers";

// "No limit" of version 1 is the largest signed number rounded down to a page:
// 9223372036854771712 with pages of 4 KiB, less with pages of up to 64 KiB.
constexpr uint64_t kNoLimitV1 = 0x7fffffffffff0000;

struct FileNames {
  std::string_view current, max;
};
constexpr FileNames kV1 = {"memory.usage_in_bytes", "memory.limit_in_bytes"};
constexpr FileNames kV2 = {"memory.current", "memory.max"};

// Where this process's memory is accounted.
struct Placement {
  int version = 2;
  fs::path mount;    // of the hierarchy
  std::string path;  // within it, as /proc/self/cgroup shows it
};

absl::StatusOr<std::string> Read(const fs::path& file) {
  absl::StatusOr<std::string> content = ReadFile(file.string());
  if (content.ok()) {
    absl::StripTrailingAsciiWhitespace(&*content);
    return content;
  }
  return absl::Status(content.status().code(),
                      fmt::format("{}, or give the budget explicitly",
                                  std::string(content.status().message())));
}

absl::StatusOr<uint64_t> ReadBytes(const fs::path& file,
                                   std::string_view no_limit) {
  PURSER_ASSIGN_OR_RETURN(const std::string text, Read(file));
  if (!no_limit.empty() && text == no_limit) return UINT64_MAX;
  uint64_t bytes = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size())
    return absl::InternalError(fmt::format(
        "{} holds {}, which is not a number of bytes{}; {}", file.string(),
        QuoteForMessage(text), no_limit.empty() ? "" : " or \"max\"", kAdvice));
  return bytes;
}

// /proc/self/cgroup has a line per hierarchy, "ID:CONTROLLERS:PATH"; version 2
// is the one with ID 0 and no controllers (cgroups(7)).
absl::StatusOr<Placement> FindPlacement(const fs::path& cgroup_root,
                                        const fs::path& proc_root) {
  const fs::path file = proc_root / "self" / "cgroup";
  PURSER_ASSIGN_OR_RETURN(const std::string text, Read(file));
  std::optional<Placement> v2;
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || !fields[2].starts_with('/'))
      return absl::InternalError(fmt::format(
          "{} holds {}, which is not ID:CONTROLLERS:PATH; {}", file.string(),
          QuoteForMessage(std::string(line)), kAdvice));
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    std::error_code ignored;
    if (std::count(controllers.begin(), controllers.end(), "memory") > 0) {
      const fs::path joint = cgroup_root / fields[1];
      return Placement{.version = 1,
                       .mount = fs::is_directory(joint, ignored)
                                    ? joint
                                    : cgroup_root / "memory",
                       .path = fields[2]};
    }
    if (fields[0] != "0" || !fields[1].empty()) continue;
    // Beside version 1 (hybrid), version 2 is mounted one level down.
    const bool hybrid = !fs::exists(cgroup_root / kControllers, ignored) &&
                        fs::is_directory(cgroup_root / "unified", ignored);
    v2 = Placement{.version = 2,
                   .mount = hybrid ? cgroup_root / "unified" : cgroup_root,
                   .path = fields[2]};
  }
  if (v2.has_value()) return *std::move(v2);
  return absl::NotFoundError(
      fmt::format("{} names no memory controller: boot with one "
                  "(cgroup_enable=memory), or give the budget explicitly",
                  file.string()));
}

// The cgroup's directory and those of its visible ancestors, up to the mount;
// the mount alone when the cgroup is not below it.
absl::StatusOr<std::vector<fs::path>> Lineage(const Placement& placement) {
  std::vector<fs::path> directories{placement.mount};
  for (const fs::path& name : fs::path(placement.path).relative_path()) {
    if (name.empty()) continue;
    // A cgroup outside of the namespace.
    if (name == "..") return std::vector<fs::path>{placement.mount};
    const fs::path directory = directories.front() / name;
    std::error_code error;
    const fs::file_type type = fs::status(directory, error).type();
    if (type == fs::file_type::none)
      return absl::ErrnoToStatus(
          error.value(),
          fmt::format("cannot look at {}; {}", directory.string(), kAdvice));
    // A path of the host's, while the mount shows the container's own cgroup.
    if (type != fs::file_type::directory)
      return std::vector<fs::path>{placement.mount};
    directories.insert(directories.begin(), directory);
  }
  return directories;
}

bool IsNoLimit(int version, uint64_t bytes) {
  return bytes == UINT64_MAX || (version == 1 && bytes >= kNoLimitV1);
}

absl::Status ReadLimits(const std::vector<fs::path>& lineage,
                        const FileNames& names, CgroupMemory* memory) {
  for (const fs::path& directory : lineage) {
    const fs::path file = directory / names.max;
    const absl::StatusOr<uint64_t> max =
        ReadBytes(file, memory->version == 2 ? "max" : "");
    // Levels without the controller have no such file: their parents count.
    if (absl::IsNotFound(max.status())) continue;
    PURSER_RETURN_IF_ERROR(max.status());
    if (IsNoLimit(memory->version, *max)) continue;
    if (memory->max_bytes.has_value() && *memory->max_bytes <= *max) continue;
    memory->max_bytes = *max;
    memory->max_origin = file.string();
  }
  return absl::OkStatus();
}

// The first of `lineage` that has an account, for that is where the memory of
// those below without the controller is charged.
absl::Status ReadCurrent(const std::vector<fs::path>& lineage,
                         const FileNames& names, CgroupMemory* memory) {
  for (const fs::path& directory : lineage) {
    const absl::StatusOr<uint64_t> current =
        ReadBytes(directory / names.current, "");
    if (absl::IsNotFound(current.status())) continue;
    PURSER_RETURN_IF_ERROR(current.status());
    memory->path = directory.string();
    memory->current_bytes = *current;
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

// Whether this is the root cgroup of version 2, which has the controller but
// none of its files.
absl::StatusOr<bool> IsRoot(const Placement& placement) {
  if (placement.version != 2 || placement.path != "/") return false;
  const absl::StatusOr<std::string> text = Read(placement.mount / kControllers);
  if (absl::IsNotFound(text.status())) return false;
  PURSER_RETURN_IF_ERROR(text.status());
  const std::vector<std::string> controllers = absl::StrSplit(*text, ' ');
  return std::count(controllers.begin(), controllers.end(), "memory") > 0;
}

}  // namespace

CgroupReader::CgroupReader(fs::path cgroup_root, fs::path proc_root)
    : cgroup_root_(std::move(cgroup_root)), proc_root_(std::move(proc_root)) {}

absl::StatusOr<CgroupMemory> CgroupReader::Memory() const {
  PURSER_ASSIGN_OR_RETURN(const Placement placement,
                          FindPlacement(cgroup_root_, proc_root_));
  const FileNames& names = placement.version == 1 ? kV1 : kV2;
  PURSER_ASSIGN_OR_RETURN(const std::vector<fs::path> lineage,
                          Lineage(placement));
  CgroupMemory memory{.version = placement.version};
  PURSER_RETURN_IF_ERROR(ReadCurrent(lineage, names, &memory));
  PURSER_RETURN_IF_ERROR(ReadLimits(lineage, names, &memory));
  if (!memory.path.empty()) return memory;
  PURSER_ASSIGN_OR_RETURN(const bool root, IsRoot(placement));
  if (!root)
    return absl::NotFoundError(fmt::format(
        "no {} for cgroup {} of this process in {}: enable the memory "
        "controller for it and mount its cgroup there, or give the budget "
        "explicitly",
        names.current, placement.path, placement.mount.string()));
  memory.path = placement.mount.string();
  return memory;
}

}  // namespace purser::base
