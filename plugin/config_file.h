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
  // How long another text must have been there, unchanged, to be believed.
  std::chrono::milliseconds settle{100};
};

// The file that --config names, watched: edited in place, replaced, or swapped
// as a ConfigMap is (a link in its directory is renamed). Events only make it
// read the file; whether that says anything new is told by its text. One that
// somebody is still writing is not taken: not while the file is open for
// writing, as far as the kernel tells, nor before it has been read twice with
// the same text. Where the node has no inotify left, and for what inotify does
// not show, it is read every so often. Main thread.
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
  // not read, is as it was, or is to be read once more, at next(). An error: it
  // cannot be read or is not valid; said once for each text.
  std::optional<absl::StatusOr<Config>> TakeChange(bool anyway = false);

 private:
  ConfigFile(Flags flags, ConfigFileIntervals intervals);
  using Text = absl::StatusOr<std::string>;  // or why it cannot be read
  void Arm();
  // Whether it is to be believed.
  bool HasSettled(const Text& text);
  absl::StatusOr<Config> Parse() const;  // last_

  const Flags flags_;
  const ConfigFileIntervals intervals_;
  std::unique_ptr<DirectoryWatch> watch_;
  Config first_;
  Text last_ = std::string();
  struct Unsettled {
    Text text;
    TimePoint since;
  };
  std::optional<Unsettled> unsettled_;  // another than last_
  TimePoint next_ = TimePoint::max();
};

}  // namespace purser::plugin
