// SPDX-License-Identifier: Apache-2.0
#include "plugin/live_endpoints.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/logging.h"
#include "base/unix_socket.h"
#include "plugin/file_id.h"

namespace purser::plugin {
namespace {

namespace fs = std::filesystem;

// A socket under its temporary name refuses for a moment before it listens.
constexpr std::chrono::minutes kTemporaryFor{1};

std::chrono::system_clock::time_point BoundAt(const fs::path& path) {
  const absl::StatusOr<std::optional<FileId>> file =
      IdentifyFile(path.string());
  if (!file.ok() || !file->has_value()) return std::chrono::system_clock::now();
  return std::chrono::system_clock::time_point(
      std::chrono::nanoseconds((*file)->modified_ns));
}

bool IsOldTemporary(const fs::path& path) {
  return path.filename().string().starts_with(kTemporaryEndpoint) &&
         std::chrono::system_clock::now() - BoundAt(path) > kTemporaryFor;
}

}  // namespace

absl::StatusOr<std::vector<LiveEndpoint>> FindLiveEndpoints(
    const std::string& directory, const Identity& own) {
  std::vector<LiveEndpoint> live;
  const EndpointName mine = EndpointName::Make("", own, 0);
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  for (; !error && entries != fs::directory_iterator();
       entries.increment(error)) {
    const fs::path& path = entries->path();
    const auto name = EndpointName::Parse(path.filename().string());
    std::error_code gone;
    if (!entries->is_socket(gone) ||
        (name ? name->started_ms == mine.started_ms &&
                    name->installation == mine.installation
              : !IsOldTemporary(path)))
      continue;
    // Removes it where nobody answers.
    const absl::Status status = base::PrepareUnixSocket(path.string());
    if (name && absl::IsAlreadyExists(status))
      live.push_back({*name, BoundAt(path)});
    if (status.ok())
      base::LogInfo("removed a dead socket", {{"socket", path.string()}});
  }
  if (!error || error == std::errc::no_such_file_or_directory) return live;
  return absl::ErrnoToStatus(error.value(), "list " + directory);
}

}  // namespace purser::plugin
