// SPDX-License-Identifier: Apache-2.0
//
// The sidecar's metrics, computed from the ledger, the objects and the counters
// at each scrape. Counters that can be foreseen are there from the start, at 0.
// Any thread.
#pragma once

#include <string>
#include <vector>

#include "ledger/ledger.h"
#include "prometheus/collectable.h"
#include "sidecar/admission.h"
#include "sidecar/broker.h"
#include "sidecar/counters.h"

namespace purser::sidecar {

class Metrics : public prometheus::Collectable {
 public:
  // All outlive the metrics.
  Metrics(Broker& broker, ledger::Ledger ledger, const Admission& admission,
          const Counters& counters, std::string version);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  Broker& broker_;
  const ledger::Ledger ledger_;
  const Admission& admission_;
  const Counters& counters_;
  const std::string version_;
};

}  // namespace purser::sidecar
