// SPDX-License-Identifier: Apache-2.0
#include "cli/ping_report.h"

#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "cli/names.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

std::string DurationText(std::chrono::nanoseconds duration) {
  const double us = static_cast<double>(duration.count()) / 1e3;
  if (us < 1e3) return fmt::format("{:.0f} us", us);
  if (us < 1e6) return fmt::format("{:.2f} ms", us / 1e3);
  return fmt::format("{:.2f} s", us / 1e6);
}

std::string RoundTripText(std::vector<std::chrono::nanoseconds> round_trips) {
  std::sort(round_trips.begin(), round_trips.end());
  const auto at = [&](double share) {
    return DurationText(round_trips[static_cast<size_t>(
        share * static_cast<double>(round_trips.size() - 1))]);
  };
  return fmt::format(
      "  round trip    median {}, 99 % {}, min {}, max {}: through the API of "
      "both sidecars\n",
      at(0.5), at(0.99), at(0), at(1));
}

std::string RenderStream(const PingReport& report) {
  uint64_t sent = report.ours.result.stream_checksum();
  uint64_t received = report.theirs.stream_checksum();
  if (!report.connecting) std::swap(sent, received);
  const double seconds =
      std::chrono::duration<double>(report.ours.stream_time).count();
  return fmt::format(
      "  RDMA WRITE    {} in chunks of {}, {}: {:.1f} MiB/s\n"
      "  checksum      {:016x} sent, {:016x} received\n",
      Bytes(report.plan.stream_bytes()),
      base::FormatBytes(report.plan.chunk_bytes()),
      DurationText(report.ours.stream_time),
      static_cast<double>(report.plan.stream_bytes()) / (1 << 20) / seconds,
      sent, received);
}

uint64_t Mismatched(const PingReport& report) {
  return report.ours.result.mismatched_bytes() +
         report.theirs.mismatched_bytes();
}

}  // namespace

bool Verified(const PingReport& report) {
  const uint64_t expected =
      2 * report.plan.iterations() * report.plan.message_bytes() +
      report.plan.stream_bytes();
  return Mismatched(report) == 0 &&
         report.ours.result.verified_bytes() + report.theirs.verified_bytes() ==
             expected &&
         report.ours.result.stream_checksum() ==
             report.theirs.stream_checksum();
}

std::string RenderConnected(const std::string& peer,
                            const v1::QueuePair& queue_pair,
                            const v1::Endpoint& remote) {
  return fmt::format(
      "connected with {}: {} qp_num {} ({}) and qp_num {} ({})\n", peer,
      queue_pair.device(), queue_pair.qp_num(),
      GidText(queue_pair.local().gid()), remote.qp_num(),
      GidText(remote.gid()));
}

std::string RenderPing(const PingReport& report) {
  const v1::PingPlan& plan = report.plan;
  std::string text;
  if (plan.iterations() > 0)
    text += fmt::format("  SEND          {} x {} bytes there and back, {}\n",
                        base::FormatCount(plan.iterations()),
                        base::FormatCount(plan.message_bytes()),
                        Bytes(report.ours.message_bytes_moved));
  if (!report.ours.round_trips.empty())
    text += RoundTripText(report.ours.round_trips);
  if (plan.stream_bytes() > 0) text += RenderStream(report);
  const uint64_t verified =
      report.ours.result.verified_bytes() + report.theirs.verified_bytes();
  text +=
      Verified(report)
          ? fmt::format("  verified      all {} bytes, by their receivers\n",
                        base::FormatCount(verified))
          : fmt::format("  MISMATCH      {} wrong, {} right\n",
                        Count(Mismatched(report), "byte"),
                        base::FormatCount(verified));
  return text;
}

}  // namespace purser::cli
