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
  EXPECT_EQ(device.what, "soft-RoCE before Linux 5.13: 64-byte completions");
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

TEST(PlannerDeviceTest, EachLimitCanBeSet) {
  Device device;
  uint32_t value = 100;
  for (const std::string_view name : LimitNames())
    EXPECT_TRUE(SetLimit(name, value++, &device).ok()) << name;
  EXPECT_EQ(device.max_qp, 100u);
  EXPECT_EQ(device.max_cq, 101u);
  EXPECT_EQ(device.max_mr, 102u);
  EXPECT_EQ(device.max_srq, 103u);
  const queue_memory::DeviceLimits& limits = device.limits;
  EXPECT_EQ(limits.max_qp_wr, 104u);
  EXPECT_EQ(limits.max_sge, 105u);
  EXPECT_EQ(limits.max_cqe, 106u);
  EXPECT_EQ(limits.max_srq_wr, 107u);
  EXPECT_EQ(limits.max_srq_sge, 108u);
  EXPECT_EQ(limits.max_recv_wr, 109u);
  EXPECT_EQ(limits.max_recv_sge, 110u);
  EXPECT_EQ(limits.max_inline_data, 111u);
  EXPECT_EQ(limits.max_sq_desc_sz, 112u);
  EXPECT_EQ(limits.max_rq_desc_sz, 113u);
  EXPECT_EQ(limits.max_send_wqebb, 114u);
  EXPECT_EQ(limits.cqe_size, 115u);
  EXPECT_EQ(limits.page_size, 116u);
  EXPECT_EQ(limits.irdma.max_quanta, 117u);
  EXPECT_EQ(limits.efa.max_llq_size, 118u);
  EXPECT_EQ(limits.efa.min_sq_wr, 119u);
  EXPECT_EQ(limits.efa.sub_cqs, 120u);
  EXPECT_EQ(limits.qedr.send_elements, 121u);
  EXPECT_EQ(limits.qedr.receive_elements, 122u);
  EXPECT_EQ(LimitNames().size(), 23u);
  EXPECT_THAT(std::string(SetLimit("maxQpWrs", 1, &device).message()),
              HasSubstr("(did you mean \"maxQpWr\"?)"));
}

}  // namespace
}  // namespace purser::planner
