// SPDX-License-Identifier: Apache-2.0
#include "plugin/config_file.h"

#include <filesystem>
#include <utility>

#include "base/status_macros.h"
#include "base/strict_yaml.h"

namespace purser::plugin {

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
  next_ = std::chrono::steady_clock::now() +
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
  if (!event && !anyway && std::chrono::steady_clock::now() < next_)
    return std::nullopt;
  Arm();
  absl::StatusOr<std::string> text = base::ReadFile(path());
  const bool same = text.ok() && last_.ok() ? *text == *last_
                                            : text.status() == last_.status();
  last_ = std::move(text);
  if (same) return std::nullopt;
  return Parse();
}

}  // namespace purser::plugin
