// SPDX-License-Identifier: Apache-2.0
#include "plugin/advertisement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deviceplugin/v1beta1/api.pb.h"
#include "plugin/config/unit_limit.h"

namespace purser::plugin {
namespace {

using ::testing::HasSubstr;

Advertisement Units(uint32_t count, bool healthy = true) {
  return {{UnitRange{.first = 0,
                     .count = count,
                     .healthy = healthy,
                     .reason = healthy ? "" : "port 1 DOWN"}}};
}

TEST(Advertisement, SerializesWhatTheKubeletParses) {
  const Advertisement advertisement{
      {UnitRange{.first = 0, .count = 12},
       UnitRange{.first = 12, .count = 1, .healthy = false, .reason = "x"}}};
  v1beta1::ListAndWatchResponse parsed;
  ASSERT_TRUE(parsed.ParseFromString(SerializeListAndWatch(advertisement)));
  ASSERT_EQ(parsed.devices_size(), 13);
  EXPECT_EQ(parsed.devices(0).id(), "0");
  EXPECT_EQ(parsed.devices(11).id(), "11");
  EXPECT_EQ(parsed.devices(11).health(), "Healthy");
  EXPECT_EQ(parsed.devices(12).id(), "12");
  EXPECT_EQ(parsed.devices(12).health(), "Unhealthy");
  EXPECT_FALSE(parsed.devices(0).has_topology());
  EXPECT_EQ(advertisement.capacity(), 13u);
  EXPECT_EQ(advertisement.allocatable(), 12u);
}

TEST(Advertisement, NamedUnitsComeByTheirNames) {
  const Advertisement advertisement{
      {},
      {NamedUnit{.id = "0000:3b:00.2"},
       NamedUnit{.id = "rxe0", .healthy = false, .reason = "port 1 DOWN"}}};
  v1beta1::ListAndWatchResponse parsed;
  ASSERT_TRUE(parsed.ParseFromString(SerializeListAndWatch(advertisement)));
  ASSERT_EQ(parsed.devices_size(), 2);
  EXPECT_EQ(parsed.devices(0).id(), "0000:3b:00.2");
  EXPECT_EQ(parsed.devices(0).health(), "Healthy");
  EXPECT_EQ(parsed.devices(1).health(), "Unhealthy");
  EXPECT_EQ(advertisement.capacity(), 2u);
  EXPECT_EQ(advertisement.allocatable(), 1u);
  using Ids = std::vector<std::string>;
  EXPECT_TRUE(CheckUnits(advertisement, Ids{"0000:3b:00.2"}).ok());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(CheckUnits(advertisement, Ids{"rxe0"})));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckUnits(advertisement, Ids{"0"})));
}

TEST(Advertisement, NoUnitsIsAnEmptyMessage) {
  EXPECT_EQ(SerializeListAndWatch({}), "");
}

TEST(Advertisement, MessageSizeIsReckonedToTheByte) {
  for (uint32_t count : {0u, 1u, 9u, 10u, 11u, 100u, 12345u, 100'001u}) {
    EXPECT_EQ(LargestMessageBytes(count),
              SerializeListAndWatch(Units(count, /*healthy=*/false)).size())
        << count;
  }
}

TEST(Advertisement, LargestUnitCountFillsTheKubeletsMessage) {
  const uint32_t largest = LargestUnitCount();
  EXPECT_LE(LargestMessageBytes(largest), kKubeletMaxMessageBytes);
  EXPECT_GT(LargestMessageBytes(largest + 1), kKubeletMaxMessageBytes);
}

TEST(CheckUnits, TakesKnownHealthyIds) {
  EXPECT_TRUE(
      CheckUnits(Units(1000), std::vector<std::string>{"0", "999"}).ok());
}

TEST(CheckUnits, RefusesWhatWasNeverAdvertised) {
  for (const char* id : {"1000", "-1", "+1", "007", "", " 1", "1 ", "0x1",
                         "mlx5_0", "99999999999999999999"}) {
    const absl::Status status =
        CheckUnits(Units(1000), std::vector<std::string>{id});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << id;
    EXPECT_THAT(std::string(status.message()), HasSubstr("1000 units"));
  }
  EXPECT_EQ(CheckUnits(Units(1000), {}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      CheckUnits(Units(1000), std::vector<std::string>{"1", "2", "1"}).code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckUnits({}, std::vector<std::string>{"0"}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CheckUnits, RefusesUnhealthyOnesWithTheReason) {
  const absl::Status status =
      CheckUnits(Units(10, /*healthy=*/false), std::vector<std::string>{"3"});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("port 1 DOWN"));
}

}  // namespace
}  // namespace purser::plugin
