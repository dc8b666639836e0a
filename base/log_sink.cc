// SPDX-License-Identifier: Apache-2.0
#include "base/log_sink.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "absl/time/clock.h"
#include "base/logfmt.h"

namespace purser::base {

// A pipe that poll(2) calls writable takes PIPE_BUF bytes at once.
size_t LogSink::Write(std::string_view text) const {
  size_t written = 0;
  while (written < text.size()) {
    pollfd ready = {.fd = fd_, .events = POLLOUT};
    if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) break;
    const ssize_t count =
        write(fd_, text.data() + written,
              std::min<size_t>(text.size() - written, PIPE_BUF));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  return written;
}

void LogSink::sink_it_(const spdlog::details::log_msg& message) {
  std::string text;
  if (torn_) text += '\n';
  if (lost_ > 0)
    text += RenderLogfmt(absl::Now(), LogLevel::kWarn,
                         "log lines were lost, since nobody read them",
                         {{"lines", lost_}}) +
            "\n";
  const size_t before = text.size();
  text.append(message.payload.data(), message.payload.size());
  text += '\n';
  const size_t written = Write(text);
  if (written == 0) {
    ++lost_;
    return;
  }
  torn_ = written < text.size();
  lost_ = written < before ? lost_ + 1 : torn_ ? 1 : 0;
}

}  // namespace purser::base
