// SPDX-License-Identifier: Apache-2.0
//
// Metrics of the ledger file: what applications hold in it, and what had to be
// returned or repaired. Read at each scrape from the last round.
#pragma once

#include <vector>

#include "prometheus/collectable.h"
#include "sidecar/pod_ledger.h"

namespace purser::sidecar {

class LedgerMetrics : public prometheus::Collectable {
 public:
  // `ledger` outlives the metrics.
  explicit LedgerMetrics(const PodLedger& ledger) : ledger_(ledger) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const PodLedger& ledger_;
};

}  // namespace purser::sidecar
