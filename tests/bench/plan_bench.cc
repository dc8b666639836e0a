// SPDX-License-Identifier: Apache-2.0
//
// Planning a workload of 100,000 groups, step by step.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>

#include "planner/device.h"
#include "planner/report.h"
#include "spdlog/fmt/fmt.h"

namespace purser {
namespace {

constexpr int kGroups = 100'000;

std::string Text() {
  std::string text = "version: v1\ngroups:\n";
  for (int i = 0; i < kGroups; ++i)
    text += fmt::format(
        "- {{name: g{}, count: {}, maxSendWr: {}, maxSendSge: {}, maxRecvWr: "
        "{}, maxRecvSge: 1}}\n",
        i, 1 + i % 9, 100 + i % 400, 1 + i % 8, 128 + i % 128);
  return text;
}

std::shared_ptr<const planner::Workload> Workload() {
  return std::make_shared<const planner::Workload>(
      planner::ReadWorkload("w.yaml", Text()).value());
}

void ReadWorkload(benchmark::State& state) {
  const std::string text = Text();
  for (auto _ : state)
    benchmark::DoNotOptimize(planner::ReadWorkload("w.yaml", text).ok());
  state.SetBytesProcessed(
      static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK(ReadWorkload)->Unit(benchmark::kMillisecond);

void MakePlan(benchmark::State& state, const char* profile) {
  const auto workload = Workload();
  const planner::Device device = planner::DeviceOfProfile(profile).value();
  for (auto _ : state)
    benchmark::DoNotOptimize(planner::MakePlan(*workload, device).ok());
}
BENCHMARK_CAPTURE(MakePlan, mlx5, "mlx5")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(MakePlan, rxe, "rxe")->Unit(benchmark::kMillisecond);

// With savings, as a table.
void Report(benchmark::State& state) {
  const auto workload = Workload();
  const planner::Device device = planner::DeviceOfProfile("mlx5").value();
  for (auto _ : state)
    benchmark::DoNotOptimize(planner::RenderTable(
        planner::MakeReport(workload, device, std::nullopt)));
}
BENCHMARK(Report)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace purser
