// SPDX-License-Identifier: Apache-2.0
//
// Building prometheus::MetricFamily with a fixed list of labels.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "prometheus/metric_family.h"

namespace purser::sidecar {

// One family; `names` are its labels, in the order in which Add() takes their
// values.
template <size_t kLabels>
class Family {
 public:
  Family(prometheus::MetricType type, const char* name, const char* help,
         std::array<const char*, kLabels> names)
      : names_(names) {
    family_.name = name;
    family_.help = help;
    family_.type = type;
  }

  void Add(const std::array<std::string, kLabels>& values, double value) {
    prometheus::ClientMetric& metric = family_.metric.emplace_back();
    for (size_t i = 0; i < kLabels; ++i)
      metric.label.push_back({names_[i], values[i]});
    (family_.type == prometheus::MetricType::Counter ? metric.counter.value
                                                     : metric.gauge.value) =
        value;
  }

  prometheus::MetricFamily Take() { return std::move(family_); }

 private:
  const std::array<const char*, kLabels> names_;
  prometheus::MetricFamily family_;
};

// A family of one sample.
inline prometheus::MetricFamily Gauge(const char* name, const char* help,
                                      uint64_t value) {
  Family<0> family(prometheus::MetricType::Gauge, name, help, {});
  family.Add({}, static_cast<double>(value));
  return family.Take();
}

template <typename... Labels>
using Counts = std::map<std::tuple<Labels...>, uint64_t>;
using Seeds1 = std::vector<std::tuple<std::string>>;
using Seeds2 = std::vector<std::tuple<std::string, std::string>>;

// A counter family of `counts`; the `seeds` are there even if never counted.
template <typename... Labels>
prometheus::MetricFamily CounterFamily(
    const char* name, const char* help,
    std::array<const char*, sizeof...(Labels)> names, Counts<Labels...> counts,
    const std::vector<std::tuple<Labels...>>& seeds) {
  for (const auto& seed : seeds) counts.emplace(seed, 0);
  Family<sizeof...(Labels)> family(prometheus::MetricType::Counter, name, help,
                                   names);
  for (const auto& [labels, count] : counts)
    family.Add(
        std::apply(
            [](const Labels&... values) {
              return std::array<std::string, sizeof...(Labels)>{values...};
            },
            labels),
        static_cast<double>(count));
  return family.Take();
}

}  // namespace purser::sidecar
