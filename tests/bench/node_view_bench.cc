// SPDX-License-Identifier: Apache-2.0
//
// A scrape of the node view with 10,000 queue pairs, without what the kernel
// needs to list them: netlink's answers and /proc are fakes.
#include <benchmark/benchmark.h>
#include <prometheus/text_serializer.h>

#include "node_view/metrics.h"
#include "tests/unit/node_view/large_node.h"

namespace purser::node_view {
namespace {

using queue_memory::Provider;

void Scrape(benchmark::State& state, Provider provider) {
  FakeNode node;
  FillNode(node, provider, 10'000);
  const std::unique_ptr<NodeView> view = node.MakeView();
  uint64_t bytes = 0;
  for (auto _ : state) {
    const View read = view->Read();
    benchmark::DoNotOptimize(
        prometheus::TextSerializer().Serialize(MetricsOf(read)));
    bytes = 0;
    for (const Holding& holding : read.holdings) bytes += holding.bytes.total();
  }
  state.counters["bytes_held"] = static_cast<double>(bytes);
}
BENCHMARK_CAPTURE(Scrape, rxe_10000, Provider::kRxe)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Scrape, mlx5_10000, Provider::kMlx5)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Scrape, bnxt_re_10000, Provider::kBnxtRe)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Scrape, irdma_10000, Provider::kIrdma)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace purser::node_view
