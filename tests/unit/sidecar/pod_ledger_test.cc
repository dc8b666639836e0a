// SPDX-License-Identifier: Apache-2.0
#include "sidecar/pod_ledger.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/metric_family.h"
#include "sidecar/ledger_metrics.h"
#include "tests/unit/ledger/pod.h"

namespace purser::sidecar {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PodLedgerTest : public ::testing::Test {
 protected:
  std::string path() const { return volume_.path("ledger"); }
  std::string Fault() {
    const auto ledger = PodLedger::Open(volume_.root());
    EXPECT_TRUE(absl::IsFailedPrecondition(ledger.status())) << ledger.status();
    return std::string(ledger.status().message());
  }
  // With a budget of 1000 bytes, 600 of them container-charged.
  void Open() {
    ledger_.reset();
    auto opened = PodLedger::Open(volume_.root());
    ASSERT_TRUE(opened.ok()) << opened.status();
    ledger_ = *std::move(opened);
    account().SetBounds(1000, 600, 4);
    ledger_->Round();
  }
  ledger::Ledger account() { return ledger_->ledger(); }
  double Metric(const std::string& name, const std::string& label = "") {
    for (const auto& family : LedgerMetrics(*ledger_).Collect()) {
      if (family.name != name) continue;
      for (const auto& metric : family.metric)
        if (label.empty() || metric.label[0].value == label)
          return family.type == prometheus::MetricType::Counter
                     ? metric.counter.value
                     : metric.gauge.value;
    }
    ADD_FAILURE() << "no " << name << " " << label;
    return -1;
  }
  fakes::FileTree volume_;
  std::unique_ptr<PodLedger> ledger_;
};

TEST_F(PodLedgerTest, GrantsBesideWhatApplicationsLease) {
  Open();
  ledger::Client client(path());
  ASSERT_EQ(client.Reserve(300, 400), 0);
  EXPECT_FALSE(account().Reserve({0, 301}).ok());
  ASSERT_TRUE(account().Reserve({100, 200}).ok());
  EXPECT_FALSE(account().Commit({100, 200}, {100, 201}).ok());
  EXPECT_EQ(client.Reserve(1, 0), EDQUOT);
  ledger_->Round();
  EXPECT_EQ(account().balance().held, (ledger::Charge{400, 600}))
      << "of the whole pod";
  account().Release({100, 200});
  EXPECT_EQ(account().balance().held, (ledger::Charge{300, 400}));
}

TEST_F(PodLedgerTest, QueuePairsOfApplicationsCount) {
  Open();
  ledger::Client client(path());
  ASSERT_EQ(client.Reserve(1, 1, 4), 0);
  const ledger::ReserveResult result = account().Reserve({1, 1});
  EXPECT_EQ(result.refused_by, ledger::Bound::kLeases);
  EXPECT_EQ(result.held, 4u);
}

TEST_F(PodLedgerTest, AnotherSidecarTakesOver) {
  Open();
  ASSERT_TRUE(account().Reserve({100, 200}).ok());
  ledger::Client living(path()), dead(path());
  ASSERT_EQ(living.Reserve(10, 20), 0);
  ASSERT_EQ(dead.Reserve(10, 20), 0);
  ledger_.reset();
  dead.Die();
  Open();
  EXPECT_EQ(account().balance().held, (ledger::Charge{10, 20}));
  EXPECT_EQ(Metric("purser_ledger_slots_reclaimed_total"), 1);
}

TEST_F(PodLedgerTest, Metrics) {
  Open();
  ledger::Client client(path());
  ASSERT_EQ(client.Reserve(10, 20, 2), 0);
  ASSERT_EQ(client.Reserve(1000, 0), EDQUOT);
  ledger_->Round();
  EXPECT_EQ(Metric("purser_ledger_lease_bytes", "container"), 10);
  EXPECT_EQ(Metric("purser_ledger_lease_bytes", "node"), 20);
  EXPECT_EQ(Metric("purser_ledger_lease_queue_pairs"), 2);
  EXPECT_EQ(Metric("purser_ledger_slots_taken"), 1);
  EXPECT_EQ(Metric("purser_ledger_slots_unknown"), 0);
  EXPECT_EQ(Metric("purser_ledger_reserves_total", "granted"), 1);
  EXPECT_EQ(Metric("purser_ledger_reserves_total", "refused"), 1);
  EXPECT_EQ(Metric("purser_ledger_sound"), 1);
  ledger::Scribbler(path()).Write(client.Word(0), 0);
  ledger_->Round();
  EXPECT_EQ(Metric("purser_ledger_repaired_words_total"), 1);
  EXPECT_EQ(Metric("purser_ledger_sound"), 1);
}

TEST_F(PodLedgerTest, UnknownLeasesGrantNothingUntilTheirProcessEnds) {
  Open();
  ledger::Client client(path());
  ASSERT_EQ(client.Reserve(10, 20), 0);
  ledger_.reset();
  ledger::Scribbler(path()).Write(client.Word(1), 0);
  Open();
  EXPECT_FALSE(account().Reserve({1, 0}).ok());
  EXPECT_EQ(Metric("purser_ledger_slots_unknown"), 1);
  EXPECT_EQ(Metric("purser_ledger_sound"), 0);
  EXPECT_EQ(Metric("purser_ledger_lease_bytes", "container"), 0);
  client.Die();
  ledger_->Round();
  EXPECT_TRUE(account().Reserve({1, 0}).ok());
  EXPECT_EQ(Metric("purser_ledger_sound"), 1);
}

TEST_F(PodLedgerTest, DisplacedOrNotWritableIsNotSound) {
  Open();
  {
    const ledger::NothingCanBeWritten full;
    EXPECT_FALSE(account().Reserve({1, 0}).ok());
    ledger_->Round();
    EXPECT_EQ(Metric("purser_ledger_sound"), 0);
  }
  ledger_->Round();
  EXPECT_EQ(Metric("purser_ledger_sound"), 1);
  std::filesystem::remove(path());
  ledger_->Round();
  EXPECT_EQ(Metric("purser_ledger_sound"), 0);
}

TEST_F(PodLedgerTest, ATruncatedFileIsRepairedAtTheStart) {
  Open();
  ledger_.reset();
  std::filesystem::resize_file(path(), 100);
  Open();
  EXPECT_TRUE(account().Reserve({600, 400}).ok());
  EXPECT_GT(Metric("purser_ledger_repaired_words_total"), 0);
}

TEST_F(PodLedgerTest, ManyThreadsTakeTurns) {
  Open();
  ledger_->Start();
  account().SetBounds(1000, 600, 1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([this] {
      ledger::Ledger mine = account();
      for (int round = 0; round < 200; ++round) {
        if (!mine.Reserve({150, 150}).ok()) continue;
        const bool grown = mine.Commit({150, 150}, {200, 200}).ok();
        mine.Release(grown ? ledger::Charge{200, 200}
                           : ledger::Charge{150, 150});
      }
    });
  for (std::thread& thread : threads) thread.join();
  ledger_->Stop();
  ledger_->Stop();
  EXPECT_EQ(account().balance().held, ledger::Charge());
  EXPECT_EQ(account().balance().leases, 0u);
}

TEST_F(PodLedgerTest, OneForEachVolume) {
  Open();
  EXPECT_THAT(Fault(), AllOf(HasSubstr(path()), HasSubstr("another sidecar")));
}

TEST_F(PodLedgerTest, SaysWhatIsInItsPlace) {
  std::filesystem::create_directory(path());
  EXPECT_THAT(Fault(), AllOf(HasSubstr(path()), HasSubstr("no regular file"),
                             HasSubstr("remove it")));
  std::filesystem::remove(path());
  volume_.Write("ledger", "income");
  EXPECT_THAT(Fault(), HasSubstr("is no ledger"));
  std::filesystem::remove(path());
  Open();
  ledger_.reset();
  ledger::Scribbler(path()).Write(1, 3);
  ledger::Scribbler(path()).Write(
      PURSER_LEDGER_CHECKED_VERSION,
      purser_ledger_encode(PURSER_LEDGER_CHECKED_VERSION, 3));
  EXPECT_THAT(Fault(),
              HasSubstr("version 3, and this sidecar knows version 1"));
}

TEST_F(PodLedgerTest, SaysWhyItCannotBeMade) {
  {
    const ledger::NothingCanBeWritten full;
    EXPECT_THAT(Fault(), AllOf(HasSubstr("36864 bytes"), HasSubstr("EFBIG"),
                               HasSubstr("sizeLimit")));
  }
  std::filesystem::create_directory(volume_.path("ledger.new"));
  EXPECT_THAT(Fault(), HasSubstr("cannot be made: EEXIST"));
}

TEST_F(PodLedgerTest, SaysWhoseItIs) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  Open();
  ledger_.reset();
  ASSERT_EQ(chown(path().c_str(), 4711, 4711), 0);
  EXPECT_THAT(Fault(), HasSubstr("belongs to user 4711, and the sidecar runs "
                                 "as user 0"));
}

TEST_F(PodLedgerTest, NoSuchVolume) {
  const auto ledger = PodLedger::Open(volume_.path("none"));
  EXPECT_THAT(std::string(ledger.status().message()), HasSubstr("EBADF"));
}

}  // namespace
}  // namespace purser::sidecar
