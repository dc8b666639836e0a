// SPDX-License-Identifier: Apache-2.0
//
// A sidecar with 10,000 queue pairs on the verbs fake: one more admitted and
// created, a page of the list, a scrape. Bound of each: 10 ms.
#include <benchmark/benchmark.h>

#include "sidecar/calls.h"
#include "tests/unit/sidecar/many_queue_pairs.h"

namespace purser::sidecar {
namespace {

ManyQueuePairs& Ten1000() {
  static auto& many = *new ManyQueuePairs(10'000);
  return many;
}

void Admit(benchmark::State& state) {
  ManyQueuePairs& many = Ten1000();
  QueuePairs& queue_pairs = many.sidecar().queue_pairs();
  for (auto _ : state) {
    const uint64_t id = many.sidecar().Create(many.client())->facts().id;
    benchmark::DoNotOptimize(queue_pairs.Destroy(many.client(), id));
  }
  state.counters["bytes_each"] = static_cast<double>(many.BytesEach());
}
BENCHMARK(Admit)->Unit(benchmark::kMillisecond);

void ListPage(benchmark::State& state) {
  FakeSidecar& sidecar = Ten1000().sidecar();
  Calls calls(sidecar.broker(), sidecar.ledger(), sidecar.admission(),
              sidecar.counters());
  v1::ListQueuePairsRequest request;
  request.set_after_id(5000);
  for (auto _ : state) {
    v1::ListQueuePairsResponse response;
    calls.ListQueuePairs(request, response);
    benchmark::DoNotOptimize(response.SerializeAsString());
    state.counters["queue_pairs"] = response.queue_pairs_size();
  }
}
BENCHMARK(ListPage)->Unit(benchmark::kMillisecond);

void Scrape(benchmark::State& state) {
  ManyQueuePairs& many = Ten1000();
  size_t bytes = 0;
  for (auto _ : state) bytes = many.Scrape().size();
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(Scrape)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace purser::sidecar
