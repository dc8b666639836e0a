// SPDX-License-Identifier: Apache-2.0
#include "node_view/lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/file_descriptor.h"

namespace purser::node_view {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

// Calls `visit` with each whole line and returns the bytes of them.
size_t VisitWholeLines(std::string_view text,
                       absl::FunctionRef<void(std::string_view)> visit) {
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string_view::npos;
       begin = end + 1)
    visit(text.substr(begin, end - begin));
  return begin;
}

}  // namespace

void ForEachLine(std::string_view text,
                 absl::FunctionRef<void(std::string_view line)> visit) {
  const size_t rest = VisitWholeLines(text, visit);
  if (rest < text.size()) visit(text.substr(rest));
}

absl::Status ForEachLineOfFile(
    const std::string& path,
    absl::FunctionRef<void(std::string_view line)> visit) {
  const base::FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return absl::ErrnoToStatus(errno, "open " + path);
  std::vector<char> buffer(kBufferBytes);
  size_t held = 0;           // bytes of a line that has not ended
  bool leaving_out = false;  // the front of this line is gone
  const auto visit_unless_cut = [&](std::string_view line) {
    if (!leaving_out) visit(line);
    leaving_out = false;
  };
  for (;;) {
    const ssize_t count =
        read(file.get(), buffer.data() + held, buffer.size() - held);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "read " + path);
    if (count == 0) break;
    held += static_cast<size_t>(count);
    const size_t done =
        VisitWholeLines({buffer.data(), held}, visit_unless_cut);
    held -= done;
    std::memmove(buffer.data(), buffer.data() + done, held);
    if (held == buffer.size()) {
      held = 0;
      leaving_out = true;
    }
  }
  if (held > 0) visit_unless_cut({buffer.data(), held});
  return absl::OkStatus();
}

bool ParseNumber(std::string_view text, int base, uint64_t* number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *number, base);
  return error == std::errc() && stop == end;
}

std::string_view TakeWord(std::string_view* text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  size_t begin = 0;
  while (begin < text->size() && is_space((*text)[begin])) ++begin;
  size_t end = begin;
  while (end < text->size() && !is_space((*text)[end])) ++end;
  const std::string_view word = text->substr(begin, end - begin);
  text->remove_prefix(end);
  return word;
}

}  // namespace purser::node_view
