// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace purser::base {
namespace {

using testing::HasSubstr;

TEST(QuantityTest, ParsesWhatKubernetesTakes) {
  const struct {
    std::string text;
    uint64_t bytes;
  } kCases[] = {
      {"0", 0},
      {"1", 1},
      {"+1", 1},
      {"007", 7},
      {"67108864", 67108864},
      {"1k", 1000},
      {"500M", 500000000},
      {"2G", 2000000000},
      {"3T", 3000000000000},
      {"4P", 4000000000000000},
      {"5E", 5000000000000000000},
      {"1Ki", 1024},
      {"64Mi", 67108864},
      {"1.5Gi", 1610612736},
      {"1Ti", 1099511627776},
      {"1Pi", 1125899906842624},
      {"7Ei", 8070450532247928832},
      {".5Ki", 512},
      {"5.Ki", 5120},
      {"1e9", 1000000000},
      {"1E9", 1000000000},
      {"1e+3", 1000},
      {"1.25e2", 125},
      {"500e-2", 5},
      {"0.5", 1},      // rounded up
      {"0.1Ki", 103},  // 102.4
      {"1e-9", 1},     //
      {"1e-1000", 1},  //
      {"0e1000", 0},   //
      {"0.0000000000000000000000000000000000000000000000001Ei", 1},
      {"1000000m", 1000},  // whole
      {"1000000000n", 1},  //
      {"3000000u", 3},     //
      {"0m", 0},           //
      {"9223372036854775807", 9223372036854775807},
      {"1.00000000000000000000000000000", 1},
      {"0000000000000000000000000000000000000000000001", 1},
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<uint64_t> bytes = ParseQuantity(c.text);
    ASSERT_TRUE(bytes.ok()) << c.text << ": " << bytes.status();
    EXPECT_EQ(*bytes, c.bytes) << c.text;
  }
}

TEST(QuantityTest, RefusesTheRestAndShowsTheForm) {
  const struct {
    std::string text, fault;
  } kCases[] = {
      {"", "is empty"},
      {"-1", "is negative"},
      {"-64Mi", "is negative"},
      {"Mi", "is not a quantity"},
      {".", "is not a quantity"},
      {"+", "is not a quantity"},
      {"+-1", "is not a quantity"},
      {"1.2.3", "is not a quantity"},
      {"64 Mi", "is not a quantity"},
      {" 64Mi", "is not a quantity"},
      {"64Mi ", "is not a quantity"},
      {"64MiB", "is not a quantity"},
      {"64MB", "is not a quantity"},
      {"64mi", "is not a quantity"},
      {"64K", "is not a quantity"},  // Kubernetes has "k" and "Ki"
      {"0x40", "is not a quantity"},
      {"1e", "is not a quantity"},
      {"1e9Mi", "is not a quantity"},
      {"1e+-3", "is not a quantity"},
      {"1e1001", "is not a quantity"},
      {"1e99999999999", "is not a quantity"},
      {"NaN", "is not a quantity"},
      {"inf", "is not a quantity"},
      {"half", "is not a quantity"},
      {"9223372036854775808", "is more than 2^63-1 bytes"},
      {"18446744073709551616", "is more than 2^63-1 bytes"},
      {"8Ei", "is more than 2^63-1 bytes"},
      {"10E", "is more than 2^63-1 bytes"},
      {"1e1000", "is more than 2^63-1 bytes"},
      {"99999999999999999999Ei", "is more than 2^63-1 bytes"},
      {"123456789012345678901", "has more than 20 digits"},
      {"64m",
       "is a fraction of a byte (\"m\" divides; \"M\" and \"Mi\" "
       "multiply)"},
      {"1500m", "is a number with a fraction of a byte"},
      {"1u", "is a fraction of a byte"},
      {"1n", "is a fraction of a byte"},
      {"\xff\n", "\"\\ufffd\\n\" is not a quantity"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = ParseQuantity(c.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.fault)) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"64Mi\"")) << c.text;
  }
}

TEST(QuantityTest, ParsesFractions) {
  EXPECT_EQ(ParseFraction("0.5"), 0.5);
  EXPECT_EQ(ParseFraction("50%"), 0.5);
  EXPECT_EQ(ParseFraction("1"), 1);
  EXPECT_EQ(ParseFraction("100%"), 1);
  for (const std::string_view text :
       {"", "%", "0", "0%", "-0.5", "1.01", "101%", "nan", "inf", "0.5 ",
        "50%%", "half"})
    EXPECT_EQ(ParseFraction(text), std::nullopt) << text;
}

TEST(QuantityTest, FormatsBytesForPeople) {
  const struct {
    uint64_t bytes;
    std::string text;
  } kCases[] = {
      {0, "0 B"},
      {512, "512 B"},
      {1023, "1023 B"},
      {1024, "1 KiB"},
      {1536, "1.5 KiB"},
      {303104, "296 KiB"},
      {67108864, "64 MiB"},
      {1610612736, "1.5 GiB"},
      {1048575, "1 MiB"},  // 1023.999 KiB
      {1048524, "1023.9 KiB"},
      {1099511627775, "1 TiB"},
      {UINT64_MAX, "16 EiB"},
  };
  for (const auto& c : kCases) EXPECT_EQ(FormatBytes(c.bytes), c.text);
}

TEST(QuantityTest, FormatsCountsWithSeparators) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(67108864), "67,108,864");
  EXPECT_EQ(FormatCount(UINT64_MAX), "18,446,744,073,709,551,615");
}

}  // namespace
}  // namespace purser::base
