// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "planner/plan.h"
#include "planner/workload.h"

namespace purser::planner {

inline Workload Read(std::string_view text) {
  auto workload = ReadWorkload("w.yaml", text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return workload.ok() ? *std::move(workload) : Workload{};
}

inline std::shared_ptr<const Workload> Shared(std::string_view text) {
  return std::make_shared<const Workload>(Read(text));
}

inline Device On(std::string_view profile) {
  auto device = DeviceOfProfile(profile);
  EXPECT_TRUE(device.ok()) << device.status();
  return device.ok() ? *std::move(device) : Device{};
}

inline Plan PlanOn(std::string_view profile, const Workload& workload) {
  auto plan = MakePlan(workload, On(profile));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : Plan{};
}

// `text` after the head that every workload has.
inline std::string Groups(std::string_view text) {
  return "version: v1\ngroups:\n" + std::string(text);
}

}  // namespace purser::planner
