// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/ping_session.h"
#include "purser/v1/ping.pb.h"
#include "purser/v1/sidecar.pb.h"

namespace purser::cli {

// A ping that was carried out to its end, as both sides saw it.
struct PingReport {
  v1::PingPlan plan;
  bool connecting;  // this side; it streamed, the other received
  PingOutcome ours;
  v1::PingResult theirs;
};

// Every byte arrived as it was sent, as both sides say.
bool Verified(const PingReport& report);

std::string RenderConnected(const std::string& peer,
                            const v1::QueuePair& queue_pair,
                            const v1::Endpoint& remote);
std::string RenderPing(const PingReport& report);

}  // namespace purser::cli
