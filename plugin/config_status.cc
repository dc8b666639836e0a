// SPDX-License-Identifier: Apache-2.0
#include "plugin/config_status.h"

#include <prometheus/metric_family.h>

#include <utility>

namespace purser::plugin {
namespace {

prometheus::MetricFamily Gauge(const char* name, const char* help,
                               double value) {
  prometheus::MetricFamily family{
      name, help, prometheus::MetricType::Gauge, {}};
  family.metric.emplace_back().gauge.value = value;
  return family;
}

}  // namespace

void ConfigStatus::Loaded(WallTime now, std::set<std::string> pending) {
  std::lock_guard lock(mutex_);
  state_.refusal.clear();
  state_.loaded_at = now;
  state_.pending = std::move(pending);
  ++state_.loaded;
}

void ConfigStatus::Refused(std::string why) {
  std::lock_guard lock(mutex_);
  state_.refusal = std::move(why);
  ++state_.refused;
}

ConfigStatus::State ConfigStatus::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

std::vector<prometheus::MetricFamily> ConfigStatus::Collect() const {
  const State now = state();
  prometheus::MetricFamily loads{
      "purser_device_plugin_config_loads_total",
      "Times that a configuration was taken into use, or refused.",
      prometheus::MetricType::Counter,
      {}};
  for (const auto& [result, count] :
       {std::pair{"loaded", now.loaded}, std::pair{"refused", now.refused}}) {
    prometheus::ClientMetric& metric = loads.metric.emplace_back();
    metric.label = {{"result", result}};
    metric.counter.value = static_cast<double>(count);
  }
  prometheus::MetricFamily pending{
      "purser_device_plugin_config_restart_needed",
      "1 if the file has another value of the key than the one in use, which "
      "takes effect when the plugin is started again.",
      prometheus::MetricType::Gauge,
      {}};
  for (const char* key : kFixedKeys) {
    prometheus::ClientMetric& metric = pending.metric.emplace_back();
    metric.label = {{"key", key}};
    metric.gauge.value = now.pending.contains(key) ? 1 : 0;
  }
  const std::chrono::duration<double> loaded_at =
      now.loaded_at.time_since_epoch();
  return {Gauge("purser_device_plugin_config_valid",
                "1 if the configuration in use is what the file says; 0 if the "
                "file was refused and the one before stays in use.",
                now.refusal.empty() ? 1 : 0),
          Gauge("purser_device_plugin_config_loaded_timestamp_seconds",
                "When the configuration in use was read; its age is time() "
                "less that.",
                loaded_at.count()),
          std::move(loads), std::move(pending)};
}

}  // namespace purser::plugin
