// SPDX-License-Identifier: Apache-2.0
//
// What people read: pure functions from the API's messages to aligned text with
// a line feed at the end.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "purser/v1/sidecar.pb.h"

namespace purser::cli {

// One new queue pair: what was asked and granted, and what it costs.
std::string RenderCreated(const v1::Capabilities& asked,
                          const v1::QueuePair& queue_pair);
// Several alike, in a few lines.
std::string RenderCreatedMany(uint32_t asked,
                              std::span<const v1::QueuePair> queue_pairs);
// The calculation by which the budget refused; for other reasons the status's
// `message`.
std::string RenderRefusal(const v1::Refusal& refusal,
                          const std::string& message);
std::string RenderList(const std::vector<v1::QueuePair>& queue_pairs);
std::string RenderBudget(const v1::GetBudgetResponse& budget);

}  // namespace purser::cli
