// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/http_server.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace purser::base {
namespace {

using prometheus::MetricFamily;

// The exposition format allows each family once: appends `from` to the family
// of its name. Returns false if that one has another type.
bool Merge(MetricFamily from, std::map<std::string, MetricFamily>* families) {
  const auto [place, added] = families->try_emplace(from.name);
  MetricFamily& into = place->second;
  if (added) {
    into = std::move(from);
    return true;
  }
  if (into.type != from.type) return false;
  if (into.help.empty()) into.help = std::move(from.help);
  std::move(from.metric.begin(), from.metric.end(),
            std::back_inserter(into.metric));
  return true;
}

}  // namespace

HttpHandler MetricsHandler(
    std::vector<std::shared_ptr<prometheus::Collectable>> collectables) {
  return [collectables = std::move(collectables)]() -> HttpResponse {
    std::map<std::string, MetricFamily> by_name;
    for (const auto& collectable : collectables) {
      for (MetricFamily& family : collectable->Collect()) {
        const std::string name = family.name;
        if (!Merge(std::move(family), &by_name))
          return {.code = 500,
                  .body = absl::StrCat("metric ", name,
                                       " is collected with two types\n")};
      }
    }
    std::vector<MetricFamily> families;
    for (auto& [name, family] : by_name) families.push_back(std::move(family));
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
            .body = prometheus::TextSerializer().Serialize(families)};
  };
}

}  // namespace purser::base
