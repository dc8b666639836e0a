// SPDX-License-Identifier: Apache-2.0
#include "base/status_macros.h"

#include <memory>

#include "gtest/gtest.h"

namespace purser::base {
namespace {

absl::Status ReturnIfError(const absl::Status& status, bool* passed) {
  PURSER_RETURN_IF_ERROR(status);
  *passed = true;
  return absl::OkStatus();
}

TEST(StatusMacrosTest, ReturnIfErrorReturnsOnlyErrors) {
  bool passed = false;
  EXPECT_EQ(ReturnIfError(absl::AbortedError("a"), &passed),
            absl::AbortedError("a"));
  EXPECT_FALSE(passed);
  EXPECT_TRUE(ReturnIfError(absl::OkStatus(), &passed).ok());
  EXPECT_TRUE(passed);
}

absl::StatusOr<int> Sum(absl::StatusOr<std::unique_ptr<int>> a,
                        absl::StatusOr<int> b) {
  PURSER_ASSIGN_OR_RETURN(const std::unique_ptr<int> first, std::move(a));
  int second = 0;
  PURSER_ASSIGN_OR_RETURN(second, b);
  return *first + second;
}

TEST(StatusMacrosTest, AssignOrReturnMovesValuesAndReturnsErrors) {
  EXPECT_EQ(*Sum(std::make_unique<int>(1), 2), 3);
  EXPECT_EQ(Sum(absl::AbortedError("a"), 2).status(), absl::AbortedError("a"));
  EXPECT_EQ(Sum(std::make_unique<int>(1), absl::DataLossError("b")).status(),
            absl::DataLossError("b"));
}

}  // namespace
}  // namespace purser::base
