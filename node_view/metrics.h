// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <chrono>
#include <vector>

#include "node_view/live_view.h"
#include "node_view/view.h"

namespace purser::node_view {

std::vector<prometheus::MetricFamily> MetricsOf(const View& view);

// A scrape reads the view anew (LiveView::Fresh). Owned by the HTTP server's
// handler; the LiveView outlives it.
class ViewMetrics : public prometheus::Collectable {
 public:
  // `patience`: how long a scrape waits for the newest view, rather than to
  // keep the other endpoints' threads.
  explicit ViewMetrics(
      const LiveView& live_view,
      std::chrono::milliseconds patience = std::chrono::seconds(1))
      : live_view_(live_view), patience_(patience) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const LiveView& live_view_;
  const std::chrono::milliseconds patience_;
};

}  // namespace purser::node_view
