// SPDX-License-Identifier: Apache-2.0
#include "base/log_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "base/file_descriptor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/logger.h"

namespace purser::base {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// A pipe of one page, and who logs into it.
class LogSinkTest : public testing::Test {
 protected:
  LogSinkTest() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) ADD_FAILURE();
    reader_ = FileDescriptor(ends[0]);
    writer_ = FileDescriptor(ends[1]);
    fcntl(writer_.get(), F_SETPIPE_SZ, 4096);
    fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
    logger_ = std::make_unique<spdlog::logger>(
        "test", std::make_shared<LogSink>(writer_.get()));
  }
  void Log(const std::string& line) {
    logger_->info(spdlog::string_view_t(line));
  }
  std::string Read() {
    std::string text(1 << 20, '\0');
    const ssize_t length = read(reader_.get(), text.data(), text.size());
    text.resize(length > 0 ? static_cast<size_t>(length) : 0);
    return text;
  }

  FileDescriptor reader_, writer_;
  std::unique_ptr<spdlog::logger> logger_;
};

TEST_F(LogSinkTest, WritesLines) {
  for (const std::string line : {"one", "two"}) {
    Log(line);
    EXPECT_EQ(Read(), line + "\n");
  }
}

TEST_F(LogSinkTest, ALineThatNobodyReadsIsDroppedAndCounted) {
  const std::string line(1000, 'x');
  for (int i = 0; i < 100; ++i) Log(line);
  EXPECT_EQ(Read(), line + "\n") << "then a page has no room for PIPE_BUF";
  Log("again");
  EXPECT_THAT(Read(), MatchesRegex("time=[^ ]* level=warn msg=\"log lines were "
                                   "lost, since nobody read them\" lines=99\n"
                                   "again\n"));
  Log("on");
  EXPECT_EQ(Read(), "on\n");
}

TEST_F(LogSinkTest, ALineThatIsLongerThanThePipeIsTorn) {
  Log(std::string(10000, 'x'));
  EXPECT_EQ(Read(), std::string(4096, 'x'));
  Log("next");
  EXPECT_THAT(Read(), MatchesRegex("\ntime=.* lines=1\nnext\n"));
}

TEST_F(LogSinkTest, WithoutAReaderNothingHappens) {
  signal(SIGPIPE, SIG_IGN);
  reader_ = FileDescriptor();
  for (int i = 0; i < 10; ++i) Log("nobody");
}

}  // namespace
}  // namespace purser::base
