// SPDX-License-Identifier: Apache-2.0
//
// Where log lines go: a descriptor that somebody reads, or not. A line that
// cannot be written at once is dropped and counted, and the count is the next
// line that goes: a reader that has stopped must stop nobody else.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include "spdlog/sinks/base_sink.h"

namespace purser::base {

class LogSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // `fd` outlives this and stays as it is; a pipe, a file, a terminal.
  explicit LogSink(int fd) : fd_(fd) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  // How much of it was written.
  size_t Write(std::string_view text) const;

  const int fd_;
  uint64_t lost_ = 0;  // lines since the last that was written
  bool torn_ = false;  // of the last line only a part was
};

}  // namespace purser::base
