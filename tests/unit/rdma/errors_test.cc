// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "rdma/verbs.h"

namespace purser::rdma {
namespace {

using ::testing::HasSubstr;

TEST(ErrorsTest, StatusCarriesItsErrno) {
  for (const int error : {ENOMEM, ENOSPC, EINVAL, EBUSY, EIO, EOPNOTSUPP}) {
    EXPECT_EQ(ErrnoOf(StatusOf(error, "ibv_create_qp rxe0")), error);
  }
}

TEST(ErrorsTest, MessageNamesCallAndErrno) {
  const absl::Status status = StatusOf(ENOMEM, "ibv_create_qp rxe0");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("ibv_create_qp rxe0: ENOMEM"));
}

TEST(ErrorsTest, NoErrorIsOk) {
  EXPECT_TRUE(StatusOf(0, "ibv_create_qp rxe0").ok());
  EXPECT_EQ(ErrnoOf(absl::OkStatus()), 0);
}

TEST(ErrorsTest, StatusOfOtherOriginIsEio) {
  EXPECT_EQ(ErrnoOf(absl::InternalError("bug")), EIO);
}

TEST(ErrorsTest, Names) {
  EXPECT_EQ(ErrnoName(ENOMEM), "ENOMEM");
  EXPECT_EQ(ErrnoName(4711), "errno 4711");
}

}  // namespace
}  // namespace purser::rdma
