// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <cstdio>
#include <memory>

#include "base/logging.h"
#include "base/signals.h"
#include "plugin/app.h"
#include "plugin/check_config.h"
#include "plugin/flags.h"

namespace {

constexpr int kCannotRun = 1;
constexpr int kBadConfig = 2;

int ExitCode(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? kBadConfig : kCannotRun;
}

int NotValid(const absl::Status& status) {
  fmt::print(stderr,
             "purser-device-plugin: the configuration is not valid\n{}\n",
             std::string(status.message()));
  return kBadConfig;
}

int CheckConfig(const purser::plugin::Flags& flags) {
  const absl::StatusOr<purser::plugin::Config> config =
      purser::plugin::ConfigFromFlags(flags);
  if (!config.ok()) return NotValid(config.status());
  const absl::StatusOr<std::string> text =
      purser::plugin::DescribeAdvertised(*config);
  if (!text.ok()) {
    fmt::print(stderr, "{}\n", std::string(text.status().message()));
    return ExitCode(text.status());
  }
  fmt::print("{}", *text);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto [exit_code, flags] =
      purser::plugin::ParseFlags(argc, argv, PURSER_VERSION);
  if (exit_code) return *exit_code;
  if (!flags.check_config.empty()) return CheckConfig(flags);
  absl::StatusOr<std::unique_ptr<purser::plugin::ConfigFile>> file =
      purser::plugin::ConfigFile::Open(flags);
  if (!file.ok()) return NotValid(file.status());

  // Few threads that allocate little: an arena for each would cost more memory
  // than all else.
  mallopt(M_ARENA_MAX, 1);
  const purser::plugin::Config config = (*file)->first();
  purser::base::InitLogging(config.log_level);
  purser::base::BlockSignals();
  absl::StatusOr<std::unique_ptr<purser::plugin::App>> app =
      purser::plugin::App::Create(config, PURSER_VERSION, *std::move(file));
  if (!app.ok()) {
    purser::base::LogError("cannot run", {{"error", app.status()}});
    return ExitCode(app.status());
  }
  (*app)->Run();
  return 0;
}
