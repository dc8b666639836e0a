// SPDX-License-Identifier: Apache-2.0
//
// What admission costs before the device is asked: the model, and the ledger
// beside what it replaces, a mutex.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <mutex>

#include "ledger/ledger.h"
#include "queue_memory/cliffs.h"
#include "queue_memory/fit.h"
#include "queue_memory/queue_memory.h"
#include "queue_memory/registry.h"

namespace purser {
namespace {

queue_memory::QueuePairRequest Shape(uint32_t i) {
  return {.max_send_wr = 128 + (i & 4095),
          .max_send_sge = 1 + (i & 7),
          .max_inline_data = i & 63,
          .max_recv_wr = 256,
          .max_recv_sge = 1};
}

void Model(benchmark::State& state, queue_memory::Provider provider) {
  uint32_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        queue_memory::QueuePairMemory(provider, {}, Shape(++i)));
  }
}
BENCHMARK_CAPTURE(Model, unknown, queue_memory::Provider::kUnknown);
BENCHMARK_CAPTURE(Model, mlx5, queue_memory::Provider::kMlx5);
BENCHMARK_CAPTURE(Model, mlx4, queue_memory::Provider::kMlx4);
BENCHMARK_CAPTURE(Model, irdma, queue_memory::Provider::kIrdma);
BENCHMARK_CAPTURE(Model, bnxt_re, queue_memory::Provider::kBnxtRe);
BENCHMARK_CAPTURE(Model, efa, queue_memory::Provider::kEfa);
BENCHMARK_CAPTURE(Model, erdma, queue_memory::Provider::kErdma);
BENCHMARK_CAPTURE(Model, hns, queue_memory::Provider::kHns);
BENCHMARK_CAPTURE(Model, mana, queue_memory::Provider::kMana);
BENCHMARK_CAPTURE(Model, qedr, queue_memory::Provider::kQedr);
BENCHMARK_CAPTURE(Model, rxe, queue_memory::Provider::kRxe);
BENCHMARK_CAPTURE(Model, siw, queue_memory::Provider::kSiw);
BENCHMARK_CAPTURE(Model, ocrdma, queue_memory::Provider::kOcrdma);
BENCHMARK_CAPTURE(Model, cxgb4, queue_memory::Provider::kCxgb4);
BENCHMARK_CAPTURE(Model, ionic, queue_memory::Provider::kIonic);

// Of this thread alone: others may have the processor meanwhile.
double ProcessorNanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec);
}

// One evaluation of the provider whose rule takes longest. Bound: 100 ns.
void ModelSlowestProvider(benchmark::State& state) {
  constexpr uint32_t kEvaluations = 100'000;
  double slowest = 0;
  for (auto _ : state) {
    for (const queue_memory::Provider provider :
         queue_memory::KnownProviders()) {
      const double start = ProcessorNanoseconds();
      for (uint32_t i = 0; i < kEvaluations; ++i)
        benchmark::DoNotOptimize(
            queue_memory::QueuePairMemory(provider, {}, Shape(i)));
      slowest =
          std::max(slowest, (ProcessorNanoseconds() - start) / kEvaluations);
    }
  }
  state.counters["slowest_ns"] = slowest;
  state.counters["bound_ns"] = 100;
}
BENCHMARK(ModelSlowestProvider)->Iterations(3)->Unit(benchmark::kMillisecond);

void CompletionQueueModel(benchmark::State& state,
                          queue_memory::Provider provider) {
  uint32_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        queue_memory::CompletionQueueMemory(provider, {}, 1 + (++i & 16383)));
  }
}
BENCHMARK_CAPTURE(CompletionQueueModel, mlx5, queue_memory::Provider::kMlx5);
BENCHMARK_CAPTURE(CompletionQueueModel, rxe, queue_memory::Provider::kRxe);

void Cliffs(benchmark::State& state, queue_memory::Provider provider) {
  uint32_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        queue_memory::QueuePairCliffs(provider, {}, Shape(++i)));
  }
}
BENCHMARK_CAPTURE(Cliffs, mlx5, queue_memory::Provider::kMlx5);
BENCHMARK_CAPTURE(Cliffs, rxe, queue_memory::Provider::kRxe);

void LargestSendWr(benchmark::State& state, queue_memory::Provider provider) {
  uint32_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(queue_memory::LargestSendWr(
        provider, {}, Shape(++i), {.total = 1 << 20}));
  }
}
BENCHMARK_CAPTURE(LargestSendWr, rxe, queue_memory::Provider::kRxe);

ledger::LedgerState ledger_state;

void LedgerReserveCommitRelease(benchmark::State& state) {
  if (state.thread_index() == 0) {
    ledger::Ledger::Format(ledger_state);
    ledger::Ledger(&ledger_state).SetBounds(1 << 30, 1 << 30);
  }
  ledger::Ledger ledger(&ledger_state);
  const ledger::Charge charge{.container = 808, .node = 303104};
  for (auto _ : state) {
    benchmark::DoNotOptimize(ledger.Reserve(charge));
    benchmark::DoNotOptimize(ledger.Commit(charge, charge));
    ledger.Release(charge);
  }
}
BENCHMARK(LedgerReserveCommitRelease)->Threads(1)->Threads(2)->UseRealTime();

std::mutex mutex;
uint64_t held = 0;

void MutexReserveCommitRelease(benchmark::State& state) {
  for (auto _ : state) {
    for (int step = 0; step < 3; ++step) {
      std::lock_guard lock(mutex);
      benchmark::DoNotOptimize(held += 303912);
    }
  }
}
BENCHMARK(MutexReserveCommitRelease)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace purser
