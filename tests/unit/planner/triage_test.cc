// SPDX-License-Identifier: Apache-2.0
#include "planner/triage.h"

#include "gmock/gmock.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TriageTest : public testing::Test {
 protected:
  Findings Of(Errno error, const std::string& group,
              const std::string& profile = "rxe",
              absl::StatusOr<std::vector<Counter>> counters =
                  std::vector<Counter>{{"rxe0 port 1 sent_pkts", 9}}) {
    const Workload workload = Read(Groups("- " + group + "\n"));
    const Plan plan = PlanOn(profile, workload);
    return Explain({.error = error,
                    .workload = workload,
                    .plan = plan,
                    .demand = {},
                    .machine = machine_,
                    .counters = std::move(counters)});
  }
  static Finding Line(const Findings& findings, const std::string& check) {
    for (const Finding& finding : findings)
      if (finding.check == check) return finding;
    return {};
  }

  Machine machine_;
};

TEST_F(TriageTest, TheOrderOfTheQuestions) {
  std::vector<std::string> checks;
  for (const Finding& finding : Of(Errno::kEnomem, "{name: a}"))
    checks.push_back(finding.check);
  EXPECT_THAT(checks, testing::ElementsAre(
                          "errno", "request", "device", "transport", "max_qp",
                          "max_qp_wr", "max_sge", "max_inline_data", "wqe_size",
                          "ring_size", "max_cqe", "max_cq", "max_srq", "srq",
                          "memlock", "cgroup_memory", "node_memory",
                          "written_back", "driver_counters", "verdict"));
}

TEST_F(TriageTest, ALimitIsTheVerdict) {
  const Findings findings =
      Of(Errno::kEinval, "{name: a, maxSendWr: 16384, maxRecvWr: 100}", "mlx5");
  EXPECT_EQ(Line(findings, "verdict").level, Level::kFailure);
  EXPECT_THAT(Line(findings, "verdict").found, HasSubstr("ring_size"));
  EXPECT_THAT(Line(findings, "written_back").found,
              AllOf(HasSubstr("the nearest, rc, send 8192 x 1"),
                    HasSubstr("granted as send 8192 x 1, inline 60, receive "
                              "128 x 1")));
  EXPECT_TRUE(Line(findings, "memlock").check.empty());
}

// Kernels tell a type that they do not have from what is too large.
TEST_F(TriageTest, TheVerdictIsOfTheErrorThatWasAskedAbout) {
  const std::string group = "{name: a, type: raw_packet}";
  Finding verdict = Line(Of(Errno::kEopnotsupp, group), "verdict");
  EXPECT_EQ(verdict.found, "transport, by all that is known here");
  EXPECT_THAT(verdict.advice, HasSubstr("the device answers EOPNOTSUPP"));
  verdict = Line(Of(Errno::kEinval, group), "verdict");
  EXPECT_EQ(verdict.level, Level::kFailure);
  EXPECT_THAT(verdict.found,
              HasSubstr("by EOPNOTSUPP where EINVAL was asked about"));
  // Of two, the one that ends in it.
  verdict = Line(Of(Errno::kEinval,
                    "{name: a, type: raw_packet, maxSendSge: "
                    "1000}"),
                 "verdict");
  EXPECT_EQ(verdict.found, "max_sge, by all that is known here");
}

TEST_F(TriageTest, NoMemoryIsMemlockFirst) {
  machine_.memlock = base::MemlockLimit{.soft_bytes = 4096};
  const Findings findings = Of(Errno::kEnomem, "{name: a}", "mlx5");
  EXPECT_THAT(Line(findings, "verdict").found, HasSubstr("memlock"));
}

TEST_F(TriageTest, NothingFound) {
  const Findings findings = Of(Errno::kEinval, "{name: a}");
  EXPECT_EQ(Line(findings, "verdict").level, Level::kWarning);
  EXPECT_THAT(Line(findings, "verdict").advice, HasSubstr("same context"));
  EXPECT_THAT(Line(findings, "driver_counters").found,
              HasSubstr("1 counters, none of failures is above 0"));
  EXPECT_THAT(Line(findings, "written_back").found,
              HasSubstr("granted as send 255 x 1"));
}

TEST_F(TriageTest, CountersOfFailures) {
  const Findings findings =
      Of(Errno::kEinval, "{name: a}", "rxe",
         std::vector<Counter>{{"rxe0 port 1 send_err", 3},
                              {"rxe0 port 1 out_of_sequence", 0},
                              {"rxe0 port 1 sent_pkts", 9}});
  EXPECT_EQ(Line(findings, "driver_counters").level, Level::kWarning);
  EXPECT_EQ(Line(findings, "driver_counters").found, "rxe0 port 1 send_err 3");
  EXPECT_THAT(Line(Of(Errno::kEinval, "{name: a}", "rxe",
                      absl::NotFoundError("none here")),
                   "driver_counters")
                  .found,
              "none here");
}

TEST_F(TriageTest, Names) {
  EXPECT_EQ(*ErrnoFromName("EINVAL"), Errno::kEinval);
  EXPECT_EQ(*ErrnoFromName("enomem"), Errno::kEnomem);
  EXPECT_EQ(*ErrnoFromName("95"), Errno::kEopnotsupp);
  EXPECT_THAT(std::string(ErrnoFromName("EINVAP").status().message()),
              AllOf(HasSubstr("did you mean \"EINVAL\""), HasSubstr("EAGAIN")));
}

}  // namespace
}  // namespace purser::planner
