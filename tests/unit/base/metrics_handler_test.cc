// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/http_server.h"
#include "gtest/gtest.h"
#include "prometheus/client_metric.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace purser::base {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

class Families : public prometheus::Collectable {
 public:
  explicit Families(std::vector<MetricFamily> families)
      : families_(std::move(families)) {}
  std::vector<MetricFamily> Collect() const override { return families_; }
  void Replace(std::vector<MetricFamily> families) {
    families_ = std::move(families);
  }

 private:
  std::vector<MetricFamily> families_;
};

MetricFamily Gauge(const std::string& name, const std::string& device,
                   double value, const std::string& help = "Help.") {
  ClientMetric metric;
  metric.label = {{.name = "device", .value = device}};
  metric.gauge.value = value;
  return {name, help, MetricType::Gauge, {metric}};
}

TEST(MetricsHandlerTest, ServesTheTextExposition) {
  const HttpHandler handler = MetricsHandler({std::make_shared<Families>(
      std::vector<MetricFamily>{Gauge("purser_b_bytes", "rxe0", 67108864),
                                Gauge("purser_a", "a\"\\\n", 0.5)})});
  const HttpResponse response = handler();
  EXPECT_EQ(response.code, 200);
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(response.body,
            "# HELP purser_a Help.\n"
            "# TYPE purser_a gauge\n"
            "purser_a{device=\"a\\\"\\\\\\n\"} 0.5\n"
            "# HELP purser_b_bytes Help.\n"
            "# TYPE purser_b_bytes gauge\n"
            "purser_b_bytes{device=\"rxe0\"} 67108864\n");
}

TEST(MetricsHandlerTest, MergesFamiliesOfOneName) {
  const HttpHandler handler = MetricsHandler(
      {std::make_shared<Families>(std::vector<MetricFamily>{
           Gauge("purser_a", "x", 1, ""), Gauge("purser_b", "x", 2)}),
       std::make_shared<Families>(
           std::vector<MetricFamily>{Gauge("purser_a", "y", 3)})});
  EXPECT_EQ(handler().body,
            "# HELP purser_a Help.\n"
            "# TYPE purser_a gauge\n"
            "purser_a{device=\"x\"} 1\n"
            "purser_a{device=\"y\"} 3\n"
            "# HELP purser_b Help.\n"
            "# TYPE purser_b gauge\n"
            "purser_b{device=\"x\"} 2\n");
}

TEST(MetricsHandlerTest, FamiliesOfOneNameAndTwoTypesFailTheScrape) {
  MetricFamily counter = Gauge("purser_a", "y", 3);
  counter.type = MetricType::Counter;
  const HttpResponse response = MetricsHandler(
      {std::make_shared<Families>(
           std::vector<MetricFamily>{Gauge("purser_a", "x", 1)}),
       std::make_shared<Families>(std::vector<MetricFamily>{counter})})();
  EXPECT_EQ(response.code, 500);
  EXPECT_EQ(response.body, "metric purser_a is collected with two types\n");
}

TEST(MetricsHandlerTest, CollectsAtEachScrape) {
  const auto families = std::make_shared<Families>(std::vector<MetricFamily>{});
  const HttpHandler handler = MetricsHandler({families});
  EXPECT_EQ(handler().body, "");
  families->Replace({Gauge("purser_a", "x", 1)});
  EXPECT_NE(handler().body.find("purser_a{device=\"x\"} 1\n"),
            std::string::npos);
}

}  // namespace
}  // namespace purser::base
