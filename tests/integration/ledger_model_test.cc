// SPDX-License-Identifier: Apache-2.0
//
// A million random operations of a sidecar and its pod's processes on one file,
// beside a plain account: never over budget, never below zero, nothing left at
// the end. Injected: creations that fail, processes that die anywhere between
// operations, words that are overwritten, truncations, a sidecar that restarts,
// a volume in which nothing can be written.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "tests/unit/ledger/pod.h"

namespace purser::ledger {
namespace {

constexpr int kOperations = 1'000'000;
constexpr size_t kMostClients = 12;
constexpr size_t kMostLeases = 40;

// The reference: what was granted and not yet returned.
struct Account {
  uint64_t total = 0, container = 0;
  void Add(Charge charge) {
    total += charge.total();
    container += charge.container;
  }
  void Remove(Charge charge) {
    ASSERT_GE(total, charge.total());
    ASSERT_GE(container, charge.container);
    total -= charge.total();
    container -= charge.container;
  }
};

class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) { SetBounds(); }

  void Step() {
    const uint64_t kind = random_() % 1000;
    if (kind < 350)
      ReserveAsClient();
    else if (kind < 550)
      ReserveAsSidecar();
    else if (kind < 750)
      Return();
    else if (kind < 850)
      Commit();
    else if (kind < 900)
      Come();
    else if (kind < 925)
      Go();
    else if (kind < 950)
      Die();
    else if (kind < 980)
      Round();
    else if (kind < 990)
      SetBounds();
    else if (kind < 998)
      Damage();
    else if (kind == 998)
      Restart();
    else
      FillUp();
  }

  void End() {
    clients_.clear();
    for (const Charge lease : leases_) pod_.account().Release(lease);
    const Findings findings = pod_.account().Adjudicate();
    EXPECT_EQ(findings.leases.held, Amounts{});
    EXPECT_EQ(findings.leases.slots_taken, 0u);
    EXPECT_EQ(pod_.account().balance().held, Charge());
    EXPECT_EQ(pod_.account().balance().leases, 0u);
    EXPECT_EQ(pod_.account().Adjudicate().repaired, 0u);
  }

  std::map<std::string, uint64_t> happened;

 private:
  struct Process {
    explicit Process(const std::string& path) : client(path) {}
    Client client;
    std::vector<Charge> leases;
  };

  Charge SomeCharge() { return {random_() % 300, random_() % 300}; }
  Process* SomeClient() {
    return clients_.empty() ? nullptr
                            : clients_[random_() % clients_.size()].get();
  }

  // All that is really held, by whomever.
  Account Held() const {
    Account held;
    for (const Charge lease : leases_) held.Add(lease);
    for (const auto& process : clients_)
      for (const Charge lease : process->leases) held.Add(lease);
    return held;
  }
  // After a grant that made a lease of `before` one of `after`.
  void ExpectWithin(Charge before, Charge after) {
    const Account held = Held();
    ASSERT_TRUE(after.total() <= before.total() || held.total <= total_bound_);
    ASSERT_TRUE(after.container <= before.container ||
                held.container <= container_bound_);
  }
  // A refusal is right when the account has no room, too.
  void ExpectNoRoom(Charge charge) {
    const Account held = Held();
    ASSERT_TRUE(held.total + charge.total() > total_bound_ ||
                held.container + charge.container > container_bound_);
  }

  void ReserveAsClient() {
    Process* process = SomeClient();
    if (process == nullptr || process->leases.size() >= kMostLeases) return;
    const Charge charge = SomeCharge();
    const int error = process->client.Reserve(charge.container, charge.node);
    ++happened[error == 0 ? "granted" : "refused"];
    if (error == 0) {
      process->leases.push_back(charge);
      ExpectWithin({}, charge);
      if (random_() % 8 != 0) return;
      // The creation failed.
      ASSERT_EQ(process->client.Release(charge.container, charge.node), 0);
      process->leases.pop_back();
    } else {
      ASSERT_EQ(error, EDQUOT);
      // The dead count until they were looked for.
      if (!dead_) ExpectNoRoom(charge);
    }
  }

  void ReserveAsSidecar() {
    if (leases_.size() >= kMostLeases) return;
    const Charge charge = SomeCharge();
    const bool ok = pod_.account().Reserve(charge).ok();
    ++happened[ok ? "granted" : "refused"];
    if (!ok) return ExpectNoRoom(charge);
    leases_.push_back(charge);
    ExpectWithin({}, charge);
    if (random_() % 8 != 0) return;
    pod_.account().Release(charge);
    leases_.pop_back();
  }

  void Return() {
    Process* process = SomeClient();
    if (process != nullptr && !process->leases.empty()) {
      const Charge lease = process->leases.back();
      ASSERT_EQ(process->client.Release(lease.container, lease.node), 0);
      process->leases.pop_back();
    }
    if (leases_.empty()) return;
    std::swap(leases_[random_() % leases_.size()], leases_.back());
    pod_.account().Release(leases_.back());
    leases_.pop_back();
  }

  void Commit() {
    Process* process = SomeClient();
    if (process != nullptr && !process->leases.empty()) {
      Charge& lease = process->leases.back();
      const Charge before = lease, actual = SomeCharge();
      const int error = process->client.Commit(before, actual);
      ASSERT_TRUE(error == 0 || error == EDQUOT) << error;
      if (error == 0) lease = actual;
      if (error == 0) ExpectWithin(before, actual);
    }
    if (leases_.empty()) return;
    Charge& lease = leases_[random_() % leases_.size()];
    const Charge before = lease, actual = SomeCharge();
    if (!pod_.account().Commit(before, actual).ok()) return;
    lease = actual;
    ExpectWithin(before, actual);
  }

  void Come() {
    if (clients_.size() >= kMostClients) return;
    clients_.push_back(std::make_unique<Process>(pod_.path()));
    ASSERT_EQ(clients_.back()->client.error(), 0);
  }
  void Go() {
    if (clients_.empty()) return;
    clients_.back()->client.Detach();
    clients_.pop_back();
  }
  void Die() {
    if (clients_.empty()) return;
    std::swap(clients_[random_() % clients_.size()], clients_.back());
    clients_.pop_back();
    dead_ = true;
    ++happened["died"];
  }

  void Round() {
    const Findings findings = pod_.account().Adjudicate();
    ASSERT_EQ(findings.repaired, 0u);
    ExpectSame(findings);
  }
  void ExpectSame(const Findings& findings) {
    dead_ = false;
    const Account held = Held();
    const Charge own = pod_.account().balance().held;
    ASSERT_EQ(findings.error, 0);
    ASSERT_EQ(findings.leases.slots_unknown, 0u);
    ASSERT_EQ(findings.leases.slots_taken, clients_.size());
    ASSERT_EQ(findings.leases.held[0] + own.total(), held.total);
    ASSERT_EQ(findings.leases.held[1] + own.container, held.container);
    ASSERT_EQ(pod_.account().balance().leases, leases_.size());
  }

  void SetBounds() {
    total_bound_ = random_() % 12000;
    container_bound_ = random_() % 8000;
    ASSERT_EQ(pod_.account().SetBounds(total_bound_, container_bound_), 0);
  }

  // Seen before it was damaged, so that it can be undone.
  void Damage() {
    ASSERT_EQ(pod_.account().Adjudicate().error, 0);
    const uint64_t repaired = pod_.adjudicator().counts().repaired;
    Scribbler scribbler(pod_.path());
    if (random_() % 16 == 0) {
      scribbler.Truncate(static_cast<off_t>(random_() % PURSER_LEDGER_BYTES));
      ++happened["truncated"];
    } else {
      for (uint64_t words = 1 + random_() % 30; words > 0; --words)
        scribbler.Write(SomeWord(), random_() % 2 == 0 ? 0 : 0xdead);
    }
    if (Process* process = SomeClient(); process && random_() % 2 == 0)
      if (process->client.Reserve(100000, 0) == EUCLEAN) ++happened["denied"];
    ASSERT_FALSE(pod_.account().Reserve({50000, 0}).ok());
    const Findings findings = pod_.account().Adjudicate();
    if (findings.leases.slots_unknown == 0)
      ExpectSame(findings);
    else
      EndUnknown(findings);
    happened["repaired"] += pod_.adjudicator().counts().repaired - repaired;
  }
  // What is unknown is more than anything; it ends with its process.
  void EndUnknown(const Findings& findings) {
    const Account held = Held();
    const Charge own = pod_.account().balance().held;
    ASSERT_GE(findings.leases.held[0] + own.total(), held.total);
    ASSERT_GE(findings.leases.held[1] + own.container, held.container);
    ++happened["unknown"];
    clients_.clear();
    ExpectSame(pod_.account().Adjudicate());
  }
  uint32_t SomeWord() {
    switch (random_() % 5) {
      case 0:
        return static_cast<uint32_t>(random_() % PURSER_LEDGER_WORDS);
      case 1:
        return static_cast<uint32_t>(PURSER_LEDGER_BUDGET + random_() % 24);
      case 2:
        return static_cast<uint32_t>(PURSER_LEDGER_STATES + random_() % 20);
      default:
        return purser_ledger_slot_word(
            static_cast<uint32_t>(random_() % (kMostClients + 4)),
            static_cast<uint32_t>(random_() % PURSER_LEDGER_SLOT_WORDS));
    }
  }

  // With it go its objects.
  void Restart() {
    leases_.clear();
    pod_.Restart();
    ASSERT_TRUE(pod_.sidecar().outcome().ok());
    ASSERT_EQ(pod_.account().SetBounds(total_bound_, container_bound_), 0);
    ASSERT_EQ(pod_.adjudicator().Publish({}), 0);
    ++happened["restarted"];
  }

  void FillUp() {
    const NothingCanBeWritten full;
    ASSERT_FALSE(pod_.account().Reserve({1, 1}).ok());
    if (leases_.empty()) return;
    pod_.account().Release(leases_.back());
    leases_.pop_back();
    if (Process* process = SomeClient(); process && !process->leases.empty()) {
      const Charge lease = process->leases.back();
      ASSERT_EQ(process->client.Release(lease.container, lease.node), 0);
      process->leases.pop_back();
    }
    ++happened["full"];
    dead_ = true;  // what the file says of the sidecar is too much till a round
  }

  std::mt19937_64 random_;
  Pod pod_;
  std::vector<std::unique_ptr<Process>> clients_;
  std::vector<Charge> leases_;  // the sidecar's
  uint64_t total_bound_ = 0, container_bound_ = 0;
  bool dead_ = false;
};

TEST(LedgerModel, AMillionOperationsAgreeWithAPlainAccount) {
  Model model(7);
  for (int i = 0; i < kOperations; ++i) {
    model.Step();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "operation " << i;
  }
  model.End();
  for (const auto& [what, count] : model.happened) {
    RecordProperty(what, std::to_string(count));
    EXPECT_GT(count, 100u) << what;
  }
  EXPECT_EQ(model.happened.size(), 9u);
}

}  // namespace
}  // namespace purser::ledger
