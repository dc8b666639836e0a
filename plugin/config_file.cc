// SPDX-License-Identifier: Apache-2.0
#include "plugin/config_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

#include "base/file_descriptor.h"
#include "base/logging.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"

namespace purser::plugin {
namespace {

using std::chrono::steady_clock;

// A file that is open for writing can have no read lease. Where leases are not
// to be had (another owner's file, a network file system) this says no.
bool IsOpenForWriting(const std::string& path) {
  const base::FileDescriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return false;
  // Who opens it for writing meanwhile breaks the lease, which is told by a
  // signal: by this one, which nobody minds, instead of SIGIO.
  if (fcntl(file.get(), F_SETSIG, SIGURG) != 0) return false;
  return fcntl(file.get(), F_SETLEASE, F_RDLCK) != 0 && errno == EAGAIN;
}

bool Same(const absl::StatusOr<std::string>& a,
          const absl::StatusOr<std::string>& b) {
  return a.ok() && b.ok() ? *a == *b : a.status() == b.status();
}

}  // namespace

ConfigFile::ConfigFile(Flags flags, ConfigFileIntervals intervals)
    : flags_(std::move(flags)), intervals_(intervals) {}

absl::StatusOr<std::unique_ptr<ConfigFile>> ConfigFile::Open(
    Flags flags, ConfigFileIntervals intervals) {
  std::unique_ptr<ConfigFile> file(new ConfigFile(std::move(flags), intervals));
  if (file->path().empty()) {
    PURSER_ASSIGN_OR_RETURN(file->first_, ApplyFlags(file->flags_, Config()));
    return file;
  }
  file->watch_ = std::make_unique<DirectoryWatch>(
      std::filesystem::absolute(file->path()).parent_path().string(),
      intervals.poll, DirectoryWatch::What::kEntriesAndContents);
  // Before it is read: what changes meanwhile is an event.
  file->Arm();
  file->last_ = base::ReadFile(file->path());
  PURSER_ASSIGN_OR_RETURN(file->first_, file->Parse());
  return file;
}

void ConfigFile::Arm() {
  watch_->Arm();
  next_ = steady_clock::now() +
          (watch_->polling() ? intervals_.poll : intervals_.check);
}

int ConfigFile::fd() const { return watch_ == nullptr ? -1 : watch_->fd(); }

absl::StatusOr<Config> ConfigFile::Parse() const {
  PURSER_RETURN_IF_ERROR(last_.status());
  PURSER_ASSIGN_OR_RETURN(Config config,
                          ParseConfig(path(), *last_, flags_.parse));
  return ApplyFlags(flags_, std::move(config));
}

std::optional<absl::StatusOr<Config>> ConfigFile::TakeChange(bool anyway) {
  if (watch_ == nullptr) return std::nullopt;
  const bool event = watch_->Drain();
  if (!event && !anyway && steady_clock::now() < next_) return std::nullopt;
  Arm();
  Text text = base::ReadFile(path());
  if (Same(text, last_)) {
    unsettled_.reset();
    return std::nullopt;
  }
  if (!HasSettled(text)) return std::nullopt;
  unsettled_.reset();
  last_ = std::move(text);
  return Parse();
}

bool ConfigFile::HasSettled(const Text& text) {
  const TimePoint now = steady_clock::now();
  const bool open_for_writing = IsOpenForWriting(path());
  if (!unsettled_ || open_for_writing || !Same(text, unsettled_->text)) {
    if (!unsettled_ && open_for_writing) {
      base::LogInfo(
          "the configuration is open for writing: it is read when that ends",
          {{"file", path()}});
    }
    unsettled_ = {text, now};
    // The end of writing is an event.
    if (!open_for_writing) next_ = std::min(next_, now + intervals_.settle);
    return false;
  }
  if (now >= unsettled_->since + intervals_.settle) return true;
  next_ = std::min(next_, unsettled_->since + intervals_.settle);
  return false;
}

}  // namespace purser::plugin
