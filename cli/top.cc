// SPDX-License-Identifier: Apache-2.0
//
// `purser top`: looks at the sidecar again and again. On a terminal each look
// takes the place of the one before, cut to the terminal's size; elsewhere they
// follow one another. A sidecar that is restarted is waited for.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/top_table.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// To so many characters.
std::string Cut(const std::string& line, size_t characters) {
  size_t end = 0;
  for (; characters > 0 && end < line.size(); --characters)
    end += std::max<size_t>(
        1, base::Utf8CharacterLength(std::string_view(line).substr(end)));
  return line.substr(0, end);
}

// Restores the terminal whatever ends the command.
class Screen {
 public:
  explicit Screen(Environment& environment)
      : environment_(environment), live_(environment.out_is_terminal) {
    if (live_) environment_.out << "\033[?1049h\033[?25l";
  }
  ~Screen() {
    if (live_) environment_.out << "\033[?25h\033[?1049l" << std::flush;
  }
  Screen(const Screen&) = delete;

  void Show(const std::string& text) {
    environment_.out << (live_ ? Fitted(text) : text) << std::flush;
  }

 private:
  std::string Fitted(const std::string& text) const {
    const TerminalSize size = environment_.terminal_size == nullptr
                                  ? TerminalSize{}
                                  : environment_.terminal_size();
    std::string fitted = "\033[H";
    std::istringstream lines(text);
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      if (count + 1 >= size.rows) {
        fitted += "  (more below: enlarge the terminal, or --sort)\033[K";
        break;
      }
      fitted += Cut(line, size.columns) + "\033[K\n";
    }
    return fitted + "\033[J";
  }

  Environment& environment_;
  const bool live_;
};

absl::StatusOr<Look> LookAt(client::Client& client, const TopCommand& command) {
  auto status = client.SidecarStatus();
  if (!status.ok()) return status.status();
  Look look{.status = *std::move(status)};
  if (command.queue_pairs) {
    auto queue_pairs = client.List();
    if (!queue_pairs.ok()) return queue_pairs.status();
    look.queue_pairs = *std::move(queue_pairs);
  }
  // Itself is not what anybody looks for.
  auto& clients = *look.status.mutable_clients();
  for (int i = clients.size(); i-- > 0;)
    if (clients[i].name() == kTopClientName) clients.DeleteSubrange(i, 1);
  look.seconds = Now();
  return look;
}

std::string Heading(const TopCommand& command) {
  return fmt::format("purser top, every {:.1f} s; Ctrl-C ends it\n",
                     std::chrono::duration<double>(command.interval).count());
}

}  // namespace

int Top(const TopCommand& command,
        const std::function<absl::StatusOr<std::unique_ptr<client::Client>>()>&
            connect,
        std::unique_ptr<client::Client> client, Environment& environment) {
  const uint64_t looks = command.iterations > 0        ? command.iterations
                         : environment.out_is_terminal ? UINT64_MAX
                                                       : 1;
  std::optional<Look> before;
  Screen screen(environment);
  for (uint64_t i = 0; i < looks; ++i) {
    if (i > 0 && environment.wait_for_signal(command.interval)) return kOk;
    if (client == nullptr)
      if (auto again = connect(); again.ok()) client = *std::move(again);
    absl::StatusOr<Look> look = client == nullptr ? absl::UnavailableError("")
                                                  : LookAt(*client, command);
    if (absl::IsUnavailable(look.status()) && environment.out_is_terminal) {
      client.reset();
      before.reset();
      screen.Show(Heading(command) +
                  "the sidecar does not answer; looking again\n");
      continue;
    }
    if (!look.ok()) return Fail(look.status(), environment);
    if (command.output == Output::kJson) {
      screen.Show(Json(look->status));
    } else {
      const std::string text =
          RenderTop(*look, before ? &*before : nullptr, command.order);
      screen.Show(environment.out_is_terminal ? Heading(command) + text
                  : i > 0                     ? "\n" + text
                                              : text);
    }
    before = *std::move(look);
  }
  return kOk;
}

}  // namespace purser::cli
