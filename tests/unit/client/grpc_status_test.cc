// SPDX-License-Identifier: Apache-2.0
#include "client/grpc_status.h"

#include <gtest/gtest.h>

#include <string>

#include "client/refusal.h"
#include "google/rpc/status.pb.h"

namespace purser::client {
namespace {

grpc::Status WithDetails(const std::string& details) {
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, "too much", details};
}

TEST(FromGrpcTest, KeepsCodeAndMessage) {
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
  EXPECT_EQ(FromGrpc({grpc::StatusCode::NOT_FOUND, "no queue pair 7"}),
            absl::NotFoundError("no queue pair 7"));
}

TEST(FromGrpcTest, CarriesTheRefusal) {
  v1::Refusal refusal;
  refusal.set_needed_bytes(42);
  google::rpc::Status details;
  details.add_details()->PackFrom(v1::ChargedBytes());
  details.add_details()->PackFrom(refusal);
  absl::Status status = FromGrpc(WithDetails(details.SerializeAsString()));
  ASSERT_TRUE(RefusalOf(status).has_value());
  EXPECT_EQ(RefusalOf(status)->needed_bytes(), 42u);
}

TEST(FromGrpcTest, LeavesOutDetailsThatItCannotRead) {
  google::rpc::Status foreign, broken;
  foreign.add_details()->PackFrom(v1::ChargedBytes());
  broken.add_details()->set_type_url("type.googleapis.com/purser.v1.Refusal");
  broken.mutable_details(0)->set_value("\xff\xff\xff");
  for (const std::string& details :
       {std::string(), std::string("\xff\xff garbage"),
        foreign.SerializeAsString(), broken.SerializeAsString()}) {
    absl::Status status = FromGrpc(WithDetails(details));
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(status.message(), "too much");
    EXPECT_FALSE(RefusalOf(status).has_value());
  }
}

TEST(RefusalOfTest, OtherErrorsHaveNone) {
  EXPECT_FALSE(RefusalOf(absl::OkStatus()).has_value());
  EXPECT_FALSE(RefusalOf(absl::InternalError("x")).has_value());
}

}  // namespace
}  // namespace purser::client
