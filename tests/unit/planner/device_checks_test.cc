// SPDX-License-Identifier: Apache-2.0
#include "planner/device_checks.h"

#include "gmock/gmock.h"
#include "planner/refusal.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Finding Line(const Findings& findings, const std::string& check) {
  for (const Finding& finding : findings)
    if (finding.check == check) return finding;
  ADD_FAILURE() << "no line " << check;
  return {};
}

Findings On(const Device& device, const Workload& workload) {
  const auto plan = MakePlan(workload, device);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? DeviceFindings(workload, *plan) : Findings{};
}

Findings Of(std::string_view profile, const std::string& groups) {
  return On(planner::On(profile), Read(Groups(groups)));
}

TEST(DeviceChecks, AllIsWell) {
  Device device = planner::On("rxe");
  device.opened = true;
  device.counts.max_qp = device.counts.max_cq = 100;
  const Findings findings = On(device, Read(Groups("- {name: a}\n")));
  EXPECT_EQ(Worst(findings), Level::kOk) << RenderFindings(findings);
  EXPECT_THAT(RenderFindings(findings),
              AllOf(HasSubstr("ok  max_qp_wr        at most 128 sends and 128 "
                              "receives; rxe takes 1,048,576\n"),
                    HasSubstr(" ok, 0 warnings, 0 failures\n")));
}

struct Case {
  const char* profile;
  const char* group;
  const char* check;
  const char* found;
};

TEST(DeviceChecks, EachLimitAndJointRule) {
  const Case kCases[] = {
      {"siw", "{name: a, type: ud}", "transport", "no queue pairs of that"},
      {"mlx5", "{name: a, maxSendWr: 40000}", "max_qp_wr", "max_send_wr is "},
      {"rxe", "{name: a, maxRecvWr: 1048577}", "max_qp_wr", "max_recv_wr is "},
      {"rxe", "{name: a, maxSendSge: 33}", "max_sge", "rxe takes 32"},
      {"rxe", "{name: a, maxRecvSge: 33}", "max_sge", "max_recv_sge is 33"},
      {"rxe", "{name: a, maxInlineData: 513}", "max_inline_data", "takes 512"},
      {"mlx5", "{name: a, maxInlineData: 900}", "wqe_size", "an entry would"},
      {"mlx5", "{name: a, maxSendWr: 16384}", "ring_size", "ring would be"},
      {"irdma", "{name: a, maxSendWr: 4096, maxSendSge: 8}", "ring_size",
       "ring would be"},
  };
  for (const Case& c : kCases) {
    const Finding line =
        Line(Of(c.profile, std::string("- ") + c.group + "\n"), c.check);
    EXPECT_EQ(line.level, Level::kFailure) << c.group << ": " << line.found;
    EXPECT_THAT(line.found, AllOf(StartsWith("w.yaml:3:"), HasSubstr(c.found)));
  }
}

TEST(DeviceChecks, AGroupThatBreaksSeveralIsToldOfInEach) {
  const Findings findings =
      Of("rxe",
         "- {name: a, maxSendWr: 2000000, maxSendSge: 40, maxInlineData: 600, "
         "maxRecvWr: 2000000, maxRecvSge: 40}\n"
         "- {name: b, maxSendSge: 33}\n");
  for (const char* check : {"max_qp_wr", "max_sge", "max_inline_data"})
    EXPECT_EQ(Line(findings, check).level, Level::kFailure) << check;
  EXPECT_THAT(Line(findings, "max_qp_wr").found, HasSubstr("(and 1 more)"));
  EXPECT_THAT(Line(findings, "max_sge").found, HasSubstr("(and 2 more)"));
  EXPECT_EQ(Line(findings, "transport").level, Level::kOk);
}

TEST(DeviceChecks, WhatIsLeftAfterAllRefusalsIsAccepted) {
  for (const char* profile : {"mlx5", "mlx4", "irdma", "bnxt_re", "efa", "rxe",
                              "siw", "hns", "erdma", "mana", "qedr"}) {
    const Device device = planner::On(profile);
    const Refusals refusals =
        AllRefusals(device, {.type = queue_memory::QueuePairType::kDci,
                             .max_send_wr = UINT32_MAX,
                             .max_send_sge = UINT32_MAX,
                             .max_inline_data = UINT32_MAX,
                             .max_recv_wr = UINT32_MAX,
                             .max_recv_sge = UINT32_MAX});
    EXPECT_FALSE(refusals.all.empty()) << profile;
    EXPECT_FALSE(queue_memory::QueuePairMemory(device.provider, device.limits,
                                               refusals.accepted)
                     .refusal)
        << profile;
  }
}

TEST(DeviceChecks, ObjectsInNumber) {
  Device device = planner::On("rxe");
  device.counts.max_qp = 10;
  device.counts.max_cq = 5;
  Workload workload = Read(Groups("- {name: a, count: 6}\n"));
  EXPECT_EQ(Line(On(device, workload), "max_qp").level, Level::kOk);
  EXPECT_EQ(Line(On(device, workload), "max_cq").level, Level::kFailure);
  workload.pods_per_node = 2;
  EXPECT_EQ(Line(On(device, workload), "max_qp").level, Level::kWarning);
  device.counts.max_qp = 0;
  EXPECT_THAT(Line(On(device, workload), "max_qp").found,
              HasSubstr("how many rxe has is known of an opened device"));
}

TEST(DeviceChecks, SharedReceiveQueues) {
  const Workload shared = Read(
      "version: v1\nsharedReceiveQueues: [{name: s, maxWr: 100}]\n"
      "groups: [{name: a, sharedReceiveQueue: s}]\n");
  EXPECT_EQ(Line(On(planner::On("rxe"), shared), "srq").level, Level::kOk);
  EXPECT_EQ(Line(On(planner::On("erdma"), shared), "srq").level,
            Level::kFailure);
}

TEST(DeviceChecks, SharedReceiveQueuesInNumber) {
  Device device = planner::On("rxe");
  device.counts.max_srq = 3;
  Workload workload = Read(
      "version: v1\nsharedReceiveQueues: [{name: s, count: 2, maxWr: 100}]\n"
      "groups: [{name: a, sharedReceiveQueue: s}]\n");
  EXPECT_EQ(Line(On(device, workload), "max_srq").level, Level::kOk);
  workload.pods_per_node = 2;
  EXPECT_EQ(Line(On(device, workload), "max_srq").level, Level::kWarning);
  device.counts.max_srq = 1;
  EXPECT_EQ(Line(On(device, workload), "max_srq").level, Level::kFailure);
}

TEST(DeviceChecks, WhatIsNotKnownForCertain) {
  EXPECT_EQ(Line(Of("rxe", "- {name: a}\n"), "device").level, Level::kWarning);
  EXPECT_EQ(Line(Of("ionic", "- {name: a}\n"), "model").level, Level::kWarning);
}

TEST(DeviceChecks, AsJson) {
  const Finding findings[] = {{Level::kFailure, "max_sge", "\xff", "less"}};
  EXPECT_THAT(RenderFindingsJson(findings),
              AllOf(HasSubstr("\"result\": \"failure\""),
                    HasSubstr("\"check\": \"max_sge\"")));
}

}  // namespace
}  // namespace purser::planner
