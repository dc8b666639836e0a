// SPDX-License-Identifier: Apache-2.0
#include "sidecar/metrics.h"

#include <cerrno>
#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"
#include "tests/unit/sidecar/fake_sidecar.h"

namespace purser::sidecar {
namespace {

using ::testing::HasSubstr;

// "name{label="value",…}" -> value.
std::map<std::string, double> Samples(
    const std::vector<prometheus::MetricFamily>& families) {
  std::map<std::string, double> samples;
  for (const auto& family : families) {
    for (const auto& metric : family.metric) {
      std::string key = family.name;
      for (const auto& label : metric.label)
        key += "|" + label.name + "=" + label.value;
      EXPECT_FALSE(samples.contains(key)) << key << " twice";
      samples[key] = family.type == prometheus::MetricType::Counter
                         ? metric.counter.value
                         : metric.gauge.value;
    }
  }
  return samples;
}

class MetricsTest : public ::testing::Test {
 protected:
  explicit MetricsTest(FakeSidecarOptions options = {.budget_bytes = 1 << 20,
                                                     .mlx5 = true})
      : sidecar_(std::move(options)),
        metrics_(sidecar_.broker(), sidecar_.ledger(), sidecar_.admission(),
                 sidecar_.counters(), "1.2.3"),
        client_(sidecar_.Attach()) {}

  double Value(const std::string& key) {
    const auto samples = Samples(metrics_.Collect());
    const auto found = samples.find(key);
    if (found == samples.end()) {
      ADD_FAILURE() << "no " << key;
      return -1;
    }
    return found->second;
  }

  FakeSidecar sidecar_;
  Metrics metrics_;
  std::string client_;
};

TEST_F(MetricsTest, WhatCanBeForeseenIsThereAtZero) {
  for (const char* key :
       {"purser_queue_memory_bytes|device=rxe0|queue=send|charged_to=node|"
        "class=default",
        "purser_queue_memory_bytes|device=mlx5_0|queue=overhead|charged_to="
        "container|class=default",
        "purser_queue_pairs|device=rxe0|type=RC|state=RTS|class=default",
        "purser_admissions_total|result=granted|reason=fits",
        "purser_admissions_total|result=shrunk|reason=budget",
        "purser_admissions_total|result=refused|reason=budget",
        "purser_admissions_total|result=refused|reason=device_limit",
        "purser_admissions_total|result=refused|reason=invalid",
        "purser_admissions_total|result=refused|reason=create_failed",
        "purser_create_failures_total|object=qp|errno=ENOMEM",
        "purser_posts_total|operation=send",
        "purser_posts_total|operation=receive",
        "purser_post_failures_total|operation=send|errno=ENOMEM",
        "purser_post_failures_total|operation=receive|errno=EINVAL",
        "purser_completions_total|status=SUCCESS", "purser_completion_backlog",
        "purser_memory_regions", "purser_registered_memory_bytes",
        "purser_queue_memory_model_mismatches_total|device=rxe0"})
    EXPECT_EQ(Value(key), 0) << key;
  EXPECT_EQ(Value("purser_clients"), 1);
  EXPECT_EQ(Value("purser_build_info|version=1.2.3"), 1);
  EXPECT_EQ(Value("purser_queue_memory_model|device=rxe0|provider=rxe|"
                  "exactness=exact"),
            1);
}

TEST_F(MetricsTest, MemoryAddsUpToTheLedgerAndTheBudget) {
  const auto rxe = sidecar_.Create(client_);
  const auto mlx5 = sidecar_.TryCreate(client_, 100, 1);
  ASSERT_TRUE(std::holds_alternative<std::shared_ptr<BrokeredQueuePair>>(mlx5));
  double container = 0, node = 0;
  for (const auto& [key, value] : Samples(metrics_.Collect())) {
    if (!key.starts_with("purser_queue_memory_bytes")) continue;
    (key.find("charged_to=node") == std::string::npos ? container : node) +=
        value;
  }
  const ledger::Balance balance = sidecar_.ledger().balance();
  EXPECT_EQ(container, balance.held.container);
  EXPECT_EQ(node, balance.held.node);
  EXPECT_GT(container, 0);
  EXPECT_GT(node, 0);
  EXPECT_EQ(Value("purser_queue_memory_bytes|device=rxe0|queue=send|"
                  "charged_to=node|class=default"),
            rxe->facts().shape->memory.send.node);
  for (const char* charged_to : {"node", "container"}) {
    const std::string labels =
        std::string("|source=explicit|charged_to=") + charged_to;
    EXPECT_EQ(Value("purser_queue_memory_budget_bytes" + labels), 1 << 20);
    EXPECT_EQ(Value("purser_queue_memory_headroom_bytes" + labels),
              (1 << 20) - balance.held.total());
  }
}

TEST_F(MetricsTest, QueuePairsByState) {
  const auto first = sidecar_.Create(client_);
  sidecar_.Create(client_);
  ASSERT_TRUE(first
                  ->Modify({.qp_state = IBV_QPS_INIT, .port_num = 1},
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                               IBV_QP_ACCESS_FLAGS)
                  .ok());
  const std::string prefix = "purser_queue_pairs|device=rxe0|type=RC|state=";
  EXPECT_EQ(Value(prefix + "RESET|class=default"), 1);
  EXPECT_EQ(Value(prefix + "INIT|class=default"), 1);
  EXPECT_EQ(Value(prefix + "RTS|class=default"), 0);
  EXPECT_EQ(Value("purser_admissions_total|result=granted|reason=fits"), 2);
}

TEST_F(MetricsTest, FailuresAreCounted) {
  sidecar_.verbs().FailNext("create_qp", EINVAL);
  sidecar_.TryCreate(client_);
  EXPECT_EQ(Value("purser_create_failures_total|object=qp|errno=EINVAL"), 1);
  EXPECT_EQ(Value("purser_create_failures_total|object=qp|errno=ENOMEM"), 0);
  EXPECT_EQ(Value("purser_admissions_total|result=refused|reason="
                  "create_failed"),
            1);
}

class BothBoundsTest : public ::testing::Test {};

// A container limit below the total bound binds the container's bytes alone.
TEST_F(BothBoundsTest, TheTighterBoundShowsForTheContainer) {
  FakeSidecar sidecar({.mlx5 = true});
  BudgetInputs inputs;
  inputs.explicit_bytes = 1 << 20;
  inputs.cgroup = base::CgroupMemory{
      .version = 2, .max_bytes = 512 << 10, .max_origin = "memory.max"};
  const Budget budget = DetermineBudget(inputs).value();
  sidecar.admission().SetBudget(budget);
  const Metrics metrics(sidecar.broker(), sidecar.ledger(), sidecar.admission(),
                        sidecar.counters(), "1");
  auto samples = Samples(metrics.Collect());
  EXPECT_EQ(
      samples["purser_queue_memory_budget_bytes|source=explicit|charged_to="
              "node"],
      1 << 20);
  EXPECT_EQ(samples["purser_queue_memory_budget_bytes|source=cgroup|charged_to="
                    "container"],
            256 << 10);
}

TEST_F(MetricsTest, PressureAndWhatFollowsFromTheBudget) {
  EXPECT_EQ(Value("purser_memory_pressure_state|scope=node"), 0);
  sidecar_.admission().SetPressure(PressureScope::kNode,
                                   {PressureState::kCritical, "why"});
  EXPECT_EQ(Value("purser_memory_pressure_state|scope=node"), 2);
  EXPECT_EQ(Value("purser_memory_pressure_state|scope=container"), 0);
  EXPECT_EQ(Value("purser_queue_memory_overcommitted_bytes"), 0);
  EXPECT_EQ(Value("purser_memory_pressure_changes_total|scope=node|state="
                  "tight"),
            0);
  BudgetInputs inputs;
  inputs.explicit_bytes = 1 << 20;
  inputs.plugin_queue_pairs = "7";
  sidecar_.admission().SetBudget(DetermineBudget(inputs).value());
  EXPECT_EQ(Value("purser_queue_pair_budget|source=plugin"), 7);
}

TEST_F(MetricsTest, TheExpositionIsValidAndSmall) {
  std::set<std::string> names;
  for (const auto& family : metrics_.Collect()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name << " twice";
    EXPECT_TRUE(family.name.starts_with("purser_")) << family.name;
    EXPECT_EQ(family.type == prometheus::MetricType::Counter,
              family.name.ends_with("_total"))
        << family.name;
    EXPECT_TRUE(family.help.ends_with(".")) << family.help;
  }
  const std::string text =
      prometheus::TextSerializer().Serialize(metrics_.Collect());
  EXPECT_THAT(text, HasSubstr("# TYPE purser_queue_memory_bytes gauge"));
  EXPECT_LT(text.size(), 64u << 10);
}

}  // namespace
}  // namespace purser::sidecar
