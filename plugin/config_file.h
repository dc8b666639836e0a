// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "plugin/config/config.h"
#include "plugin/directory_watch.h"
#include "plugin/flags.h"

namespace purser::plugin {

// How often the file is read without an event.
struct ConfigFileIntervals {
  std::chrono::milliseconds poll{1'000};    // without inotify
  std::chrono::milliseconds check{10'000};  // with it
};

// The file that --config names, watched: edited in place, replaced, or swapped
// as a ConfigMap is (a link in its directory is renamed). Events only make it
// read the file; whether that says anything new is told by its text. Where the
// node has no inotify left, and for what inotify does not show, it is read
// every so often. Main thread.
class ConfigFile {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // Reads it; without --config, the defaults. The flags are over it, then and
  // later. InvalidArgument lists all faults.
  static absl::StatusOr<std::unique_ptr<ConfigFile>> Open(
      Flags flags, ConfigFileIntervals intervals = {});

  const std::string& path() const { return flags_.config; }
  const Config& first() const { return first_; }

  // Readable when it may have changed; negative: there is none.
  int fd() const;
  // When it is to be read without an event; never, where there is no file.
  TimePoint next() const { return next_; }
  // Reads it if an event or the time asks for it, or `anyway`. nullopt: it was
  // not read, or is as it was. An error: it cannot be read or is not valid;
  // said once for each text.
  std::optional<absl::StatusOr<Config>> TakeChange(bool anyway = false);

 private:
  ConfigFile(Flags flags, ConfigFileIntervals intervals);
  void Arm();
  absl::StatusOr<Config> Parse() const;  // last_

  const Flags flags_;
  const ConfigFileIntervals intervals_;
  std::unique_ptr<DirectoryWatch> watch_;
  Config first_;
  absl::StatusOr<std::string> last_ = std::string();  // the text, or why not
  TimePoint next_ = TimePoint::max();
};

}  // namespace purser::plugin
