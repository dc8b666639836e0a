// SPDX-License-Identifier: Apache-2.0
//
// Reserve, commit and release on the ledger file, as an application does it:
// alone, beside another process that does the same all the while, and with
// other processes that hold slots. By this process's own time: the machine may
// have others to serve.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ledger/adjudicator.h"
#include "ledger/brokered_account.h"
#include "ledger/ledger_file.h"
#include "ledger/purser_ledger.h"
#include "tests/fakes/file_tree.h"

namespace purser::ledger {
namespace {

constexpr purser_ledger_charge kCharge = {808, 303104, 1};

// What the sidecar has; a budget that nothing here exceeds.
struct Sidecar {
  Sidecar() {
    Ledger::Format(state);
    const int directory = open(volume.root().c_str(), O_PATH | O_DIRECTORY);
    file.Open(directory);
    close(directory);
    adjudicator = std::make_unique<Adjudicator>(file);
    account = std::make_unique<BrokeredAccount>(state, *adjudicator);
    account->SetBounds(1 << 30, 1 << 30);
  }
  std::string path() const { return volume.path(kFileName); }
  fakes::FileTree volume;
  LedgerState state{};
  LedgerFile file;
  std::unique_ptr<Adjudicator> adjudicator;
  std::unique_ptr<BrokeredAccount> account;
};

bool Once(purser_ledger& ledger, const purser_ledger_charge& actual = kCharge) {
  return purser_ledger_reserve(&ledger, &kCharge, nullptr) == 0 &&
         purser_ledger_commit(&ledger, &kCharge, &actual, nullptr) == 0 &&
         purser_ledger_release(&ledger, &actual) == 0;
}

// A process that never rests.
class Rival {
 public:
  explicit Rival(const std::string& path) : pid_(fork()) {
    if (pid_ != 0) return;
    purser_ledger ledger;
    if (purser_ledger_attach(&ledger, path.c_str()) != 0) _exit(1);
    while (Once(ledger)) continue;
    _exit(1);
  }
  ~Rival() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Rival(const Rival&) = delete;

 private:
  pid_t pid_;
};

void Measure(benchmark::State& state, const Sidecar& sidecar,
             const purser_ledger_charge& actual = kCharge) {
  purser_ledger ledger;
  if (purser_ledger_attach(&ledger, sidecar.path().c_str()) != 0)
    return state.SkipWithError("attach");
  for (auto _ : state)
    if (!Once(ledger, actual)) return state.SkipWithError("reserve");
  state.counters["bound_ns"] = 1000;
  purser_ledger_detach(&ledger);
}

void FileReserveCommitRelease(benchmark::State& state) {
  const Sidecar sidecar;
  Measure(state, sidecar);
}
BENCHMARK(FileReserveCommitRelease);

// The device took less than was predicted.
void FileReserveCommitLessRelease(benchmark::State& state) {
  const Sidecar sidecar;
  Measure(state, sidecar, {404, 202752, 1});
}
BENCHMARK(FileReserveCommitLessRelease);

void FileReserveCommitReleaseBesideAnotherProcess(benchmark::State& state) {
  const Sidecar sidecar;
  const Rival rival(sidecar.path());
  Measure(state, sidecar);
}
BENCHMARK(FileReserveCommitReleaseBesideAnotherProcess);

void FileReserveCommitReleaseWithSlotsTaken(benchmark::State& state) {
  const Sidecar sidecar;
  std::vector<purser_ledger> others(static_cast<size_t>(state.range(0)));
  for (purser_ledger& other : others)
    purser_ledger_attach(&other, sidecar.path().c_str());
  Measure(state, sidecar);
  for (purser_ledger& other : others) purser_ledger_detach(&other);
}
BENCHMARK(FileReserveCommitReleaseWithSlotsTaken)->Arg(15)->Arg(63)->Arg(254);

// The sidecar's: each of the three by pread and pwrite.
void BrokeredReserveCommitRelease(benchmark::State& state) {
  Sidecar sidecar;
  const Charge charge{.container = 808, .node = 303104};
  for (auto _ : state) {
    benchmark::DoNotOptimize(sidecar.account->Reserve(charge));
    benchmark::DoNotOptimize(sidecar.account->Commit(charge, charge));
    sidecar.account->Release(charge);
  }
}
BENCHMARK(BrokeredReserveCommitRelease);

void AdjudicateRound(benchmark::State& state) {
  Sidecar sidecar;
  std::vector<purser_ledger> others(static_cast<size_t>(state.range(0)));
  for (purser_ledger& other : others)
    purser_ledger_attach(&other, sidecar.path().c_str());
  for (auto _ : state) benchmark::DoNotOptimize(sidecar.account->Adjudicate());
  for (purser_ledger& other : others) purser_ledger_detach(&other);
}
BENCHMARK(AdjudicateRound)->Arg(0)->Arg(64);

}  // namespace
}  // namespace purser::ledger
