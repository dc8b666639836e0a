// SPDX-License-Identifier: Apache-2.0
#include "cli/ping_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/ping_report.h"

namespace purser::cli {
namespace {

using testing::HasSubstr;

v1::PingPlan Plan() {
  v1::PingPlan plan;
  plan.set_message_bytes(1000);
  plan.set_iterations(3);
  plan.set_stream_bytes(2500);
  plan.set_chunk_bytes(1000);
  plan.set_window_chunks(2);
  return plan;
}

TEST(CheckPlanTest, NamesTheFieldThatIsOutOfRange) {
  EXPECT_TRUE(CheckPlan(Plan()).ok());
  const auto expect = [](v1::PingPlan plan, const char* field) {
    EXPECT_THAT(std::string(CheckPlan(plan).message()), HasSubstr(field));
  };
  v1::PingPlan plan = Plan();
  plan.set_message_bytes(0);
  expect(plan, "message_bytes 0");
  plan = Plan();
  plan.set_message_bytes(kMaxPingMessageBytes + 1);
  expect(plan, "message_bytes");
  plan = Plan();
  plan.set_iterations(UINT64_MAX);
  expect(plan, "iterations");
  plan = Plan();
  plan.set_stream_bytes(UINT64_MAX);
  expect(plan, "stream_bytes");
  plan = Plan();
  plan.set_chunk_bytes(0);
  expect(plan, "chunk_bytes 0");
  plan = Plan();
  plan.set_window_chunks(1);
  expect(plan, "window_chunks 1");
  plan.set_window_chunks(UINT32_MAX);
  expect(plan, "window_chunks");
  plan = Plan();
  plan.set_chunk_bytes(kMaxPingMessageBytes);
  plan.set_window_chunks(kPingWindowChunks);
  EXPECT_TRUE(CheckPlan(plan).ok());
  plan.set_window_chunks(kPingWindowChunks + 1);
  expect(plan, "window_chunks x chunk_bytes 285212672 is not within 1 and");
}

TEST(PingLayoutTest, NothingOverlaps) {
  const PingLayout layout(Plan());
  EXPECT_EQ(layout.receive_offset(0), 1000u);
  EXPECT_EQ(layout.receive_offset(1), 2000u);
  EXPECT_EQ(layout.receive_offset(2), 1000u);
  EXPECT_EQ(layout.chunk_offset(0), 3000u);
  EXPECT_EQ(layout.chunk_offset(1), 4000u);
  EXPECT_EQ(layout.chunk_offset(2), 3000u);
  EXPECT_EQ(layout.bytes(), 5000u);
  EXPECT_EQ(StreamChunks(Plan()), 3u);
}

TEST(PingLayoutTest, WithoutAStreamThereIsNoWindow) {
  v1::PingPlan plan = Plan();
  plan.set_stream_bytes(0);
  EXPECT_EQ(PingLayout(plan).bytes(), 3000u);
  EXPECT_EQ(StreamChunks(plan), 0u);
}

PingReport Report() {
  PingReport report{Plan(), true, {}, {}};
  report.ours.result.set_verified_bytes(3000);
  report.ours.result.set_stream_checksum(0xabc);
  report.ours.message_bytes_moved = 6000;
  report.ours.round_trips = {std::chrono::microseconds(1500),
                             std::chrono::microseconds(900),
                             std::chrono::milliseconds(1200)};
  report.ours.stream_time = std::chrono::milliseconds(2);
  report.theirs.set_verified_bytes(5500);
  report.theirs.set_stream_checksum(0xabc);
  return report;
}

TEST(PingReportTest, ShowsWhatMovedAndThatItIsRight) {
  EXPECT_TRUE(Verified(Report()));
  EXPECT_EQ(
      RenderPing(Report()),
      R"(  SEND          3 x 1,000 bytes there and back, 6,000 bytes (5.9 KiB)
  round trip    median 1.50 ms, 99 % 1.50 ms, min 900 us, max 1.20 s: through the API of both sidecars
  RDMA WRITE    2,500 bytes (2.4 KiB) in chunks of 1000 B, 2.00 ms: 1.2 MiB/s
  checksum      0000000000000abc sent, 0000000000000abc received
  verified      all 8,500 bytes, by their receivers
)");
}

TEST(PingReportTest, OneWrongByteAtEitherSideIsAMismatch) {
  PingReport report = Report();
  report.theirs.set_verified_bytes(5499);
  report.theirs.set_mismatched_bytes(1);
  EXPECT_FALSE(Verified(report));
  EXPECT_THAT(RenderPing(report),
              HasSubstr("  MISMATCH      1 byte wrong, 8,499 right\n"));
  report = Report();
  report.ours.result.set_mismatched_bytes(1);
  EXPECT_FALSE(Verified(report));
}

TEST(PingReportTest, MissingBytesOrAnotherChecksumAreAMismatch) {
  PingReport report = Report();
  report.theirs.set_verified_bytes(5000);
  EXPECT_FALSE(Verified(report));
  report = Report();
  report.theirs.set_stream_checksum(0xabd);
  EXPECT_FALSE(Verified(report));
}

}  // namespace
}  // namespace purser::cli
