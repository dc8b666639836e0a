// SPDX-License-Identifier: Apache-2.0
#include "planner/device.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::planner {
namespace {

using testing::HasSubstr;

TEST(PlannerDeviceTest, ByProfileProviderAndKernelDriver) {
  const auto rxe = DeviceOfProfile("rxe_6.1");
  ASSERT_TRUE(rxe.ok());
  EXPECT_EQ(rxe->name, "rxe_6.1");
  EXPECT_FALSE(rxe->limits.writes_back_real_slots);
  EXPECT_EQ(DeviceOfProfile("mlx5_core")->name, "mlx5");
  EXPECT_EQ(DeviceOfProfile("i40e")->limits.irdma.generation, 1u);
}

TEST(PlannerDeviceTest, UnknownProvidersAreSuggested) {
  const absl::Status status = DeviceOfProfile("rxe6.1").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("there is no provider \"rxe6.1\" (did you mean "
                        "\"rxe_6.1\"?); there are mlx5,"));
}

TEST(PlannerDeviceTest, TheKernelsVersion) {
  const auto real_slots = [](const char* version) {
    Device device = *DeviceOfProfile("rxe");
    EXPECT_TRUE(SetKernelVersion(version, &device).ok()) << version;
    return device.limits.writes_back_real_slots;
  };
  for (const char* version : {"6.6", "6.6.0-rc1+", "7.0", "6.5.3", "6.4.16"})
    EXPECT_TRUE(real_slots(version)) << version;
  for (const char* version :
       {"6.1", "6.1.0-31-amd64", "6.5.2", "6.4.15", "6.3.99", "5.16"})
    EXPECT_FALSE(real_slots(version)) << version;

  Device device = *DeviceOfProfile("rxe");
  EXPECT_TRUE(SetKernelVersion("5.10.0-28", &device).ok());
  EXPECT_EQ(device.limits.cqe_size, 64u);
  EXPECT_EQ(device.what,
            "soft-RoCE of Linux 5.6 to 5.12: low limits, 64-byte "
            "completions");
  device.what = "cannot be opened";
  EXPECT_TRUE(SetKernelVersion("6.12", &device).ok());
  EXPECT_EQ(device.limits.cqe_size, 0u);
  EXPECT_EQ(device.what, "cannot be opened");

  device = *DeviceOfProfile("mlx5");
  EXPECT_TRUE(SetKernelVersion("5.10", &device).ok());
  EXPECT_EQ(device.what, DeviceOfProfile("mlx5")->what);
  for (const char* text :
       {"", "6", "6.", "six", "6.x", "6.1.", "6.1.x", "-6.1", "99999999999.1"})
    EXPECT_TRUE(absl::IsInvalidArgument(SetKernelVersion(text, &device)))
        << text;
}

TEST(PlannerDeviceTest, AllAreThoseOfTheModel) {
  EXPECT_EQ(AllDevices().size(), queue_memory::KnownProfiles().size());
  EXPECT_EQ(AllDevices()[0].name, "mlx5");
}

TEST(PlannerDeviceTest, KernelsOfLowLimits) {
  const auto of = [](const char* version) {
    Device device = *DeviceOfProfile("rxe");
    EXPECT_TRUE(SetKernelVersion(version, &device).ok()) << version;
    return queue_memory::EffectiveLimits(device.provider, device.limits);
  };
  EXPECT_EQ(of("5.16").max_qp_wr, 1u << 20);
  EXPECT_EQ(of("5.15.0-100-generic").max_qp_wr, 0x4000u);
  EXPECT_EQ(of("5.15").max_srq_wr, 0x4000u);
  EXPECT_EQ(of("5.15").cqe_size, 72u);
  EXPECT_EQ(of("5.10").max_qp_wr, 0x4000u);
  EXPECT_EQ(of("5.10").max_inline_data, 512u);
  EXPECT_EQ(of("5.6").max_inline_data, 512u);
  EXPECT_EQ(of("5.5.19").max_inline_data, 400u);
  EXPECT_EQ(of("5.4").cqe_size, 64u);
  Device device = *DeviceOfProfile("rxe");
  EXPECT_EQ(device.counts.max_qp, 1048560u);
  EXPECT_TRUE(SetKernelVersion("5.15", &device).ok());
  EXPECT_EQ(device.counts.max_qp, 65536u);
}

// Whichever comes first.
TEST(PlannerDeviceTest, WhatIsToldStaysOnAnyKernel) {
  Device device = *DeviceOfProfile("rxe");
  Tell({.max_qp_wr = 5000}, {.max_cq = 7}, &device);
  EXPECT_TRUE(SetLimit("maxQp", 9, &device).ok());
  EXPECT_TRUE(SetKernelVersion("5.15", &device).ok());
  EXPECT_EQ(device.limits.max_qp_wr, 5000u);
  EXPECT_EQ(device.limits.max_srq_wr, 0x4000u);
  EXPECT_EQ(device.counts.max_cq, 7u);
  EXPECT_EQ(device.counts.max_qp, 9u);
  EXPECT_STREQ(Has(device, device.told_counts.max_qp), "has");
  EXPECT_STREQ(Has(device, device.told_counts.max_mr), "usually has");
  EXPECT_TRUE(SetKernelVersion("6.6", &device).ok());
  EXPECT_EQ(device.limits.max_qp_wr, 5000u);
  EXPECT_EQ(device.limits.max_srq_wr, 0u);
}

TEST(PlannerDeviceTest, EachLimitCanBeSet) {
  Device device;
  uint64_t value = 100;
  const auto set = [&](std::string_view name, const char* profile) {
    if (device.name != profile) device = *DeviceOfProfile(profile);
    EXPECT_TRUE(SetLimit(name, ++value, &device).ok()) << name;
    return value;
  };
  const auto& limits = device.limits;
  const auto& counts = device.counts;
  EXPECT_EQ(set("maxQp", "rxe"), counts.max_qp);
  EXPECT_EQ(set("maxCq", "rxe"), counts.max_cq);
  EXPECT_EQ(set("maxMr", "rxe"), counts.max_mr);
  EXPECT_EQ(set("maxSrq", "rxe"), counts.max_srq);
  EXPECT_EQ(set("maxQpWr", "rxe"), limits.max_qp_wr);
  EXPECT_EQ(set("maxSge", "rxe"), limits.max_sge);
  EXPECT_EQ(set("maxCqe", "rxe"), limits.max_cqe);
  EXPECT_EQ(set("maxSrqWr", "rxe"), limits.max_srq_wr);
  EXPECT_EQ(set("maxSrqSge", "rxe"), limits.max_srq_sge);
  EXPECT_EQ(set("maxRecvWr", "rxe"), limits.max_recv_wr);
  EXPECT_EQ(set("maxRecvSge", "rxe"), limits.max_recv_sge);
  EXPECT_EQ(set("maxInlineData", "rxe"), limits.max_inline_data);
  EXPECT_EQ(set("cqeSize", "rxe"), limits.cqe_size);
  EXPECT_EQ(set("maxSqDescSz", "mlx5"), limits.max_sq_desc_sz);
  EXPECT_EQ(set("maxRqDescSz", "mlx5"), limits.max_rq_desc_sz);
  EXPECT_EQ(set("maxSendWqebb", "mlx5"), limits.max_send_wqebb);
  EXPECT_EQ(set("irdmaMaxQuanta", "irdma"), limits.irdma.max_quanta);
  EXPECT_EQ(set("efaMaxLlqSize", "efa"), limits.efa.max_llq_size);
  EXPECT_EQ(set("efaMinSqWr", "efa"), limits.efa.min_sq_wr);
  EXPECT_EQ(set("efaSubCqs", "efa"), limits.efa.sub_cqs);
  EXPECT_EQ(set("qedrSendElements", "qedr"), limits.qedr.send_elements);
  EXPECT_EQ(set("qedrReceiveElements", "qedr"), limits.qedr.receive_elements);
  EXPECT_TRUE(SetLimit("pageSize", 65536, &device).ok());
  EXPECT_EQ(limits.page_size, 65536u);
  EXPECT_EQ(LimitNames().size(), 23u);
  EXPECT_THAT(std::string(SetLimit("maxQpWrs", 1, &device).message()),
              HasSubstr("(did you mean \"maxQpWr\"?)"));
}

TEST(PlannerDeviceTest, NonsenseIsNoLimit) {
  const struct {
    const char* name;
    uint64_t value;
    const char* message;
  } kCases[] = {
      {"maxQpWr", 0, "must be a whole number from 1 to 2147483647, not 0"},
      {"maxQpWr", uint64_t{1} << 31, "to 2147483647, not 2147483648"},
      {"maxQp", (1 << 24) + 1, "from 1 to 16777216"},
      {"maxSge", 65537, "from 1 to 65536"},
      {"cqeSize", 8, "from 16 to 4096"},
      {"pageSize", 5000, "must be a power of two from 4096"},
      {"efaSubCqs", 2, "is a limit of efa; rxe has none of that kind"},
      {"maxSendWqebb", 9, "is a limit of mlx5"},
  };
  Device device = *DeviceOfProfile("rxe");
  for (const auto& c : kCases) {
    const absl::Status status = SetLimit(c.name, c.value, &device);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
  EXPECT_EQ(device.limits.max_qp_wr, 0u) << "as it was";
}

}  // namespace
}  // namespace purser::planner
