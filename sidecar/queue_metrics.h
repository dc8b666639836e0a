// SPDX-License-Identifier: Apache-2.0
//
// What the sidecar holds for its clients, as metrics: read from the objects at
// scrape time.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"
#include "sidecar/broker.h"

namespace purser::sidecar {

// Queue pairs, the queues that they share, and what all of these take.
void AddQueues(Broker& broker, std::vector<prometheus::MetricFamily>& families);

}  // namespace purser::sidecar
