// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/names.h"
#include "purser/v1/sidecar.pb.h"

namespace purser::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(JsonTest, HasZerosAndReadableGids) {
  v1::ListQueuePairsResponse list;
  v1::QueuePair& queue_pair = *list.add_queue_pairs();
  queue_pair.set_id(7);
  queue_pair.set_qp_num(18);
  queue_pair.set_client_name("\"gid\": \"AAAA\"");  // not a field
  queue_pair.mutable_local()->set_gid(
      std::string("\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01", 16));
  list.add_queue_pairs()->mutable_local();
  const std::string json = Json(list);
  EXPECT_THAT(json,
              AllOf(HasSubstr("\"queuePairs\": ["), HasSubstr("\"id\": \"7\""),
                    HasSubstr("\"qpNum\": 18"), HasSubstr("\"sendSlots\": 0"),
                    HasSubstr("\"gid\": \"::ffff:10.0.0.1\""),
                    HasSubstr("\"gid\": \"\""),
                    HasSubstr("\"\\\"gid\\\": \\\"AAAA\\\"\"")));
  EXPECT_EQ(json.back(), '\n');
}

TEST(NamesTest, AreWhatPeopleKnow) {
  EXPECT_EQ(TypeName(v1::QUEUE_PAIR_TYPE_RC), "RC");
  EXPECT_EQ(StateName(v1::QUEUE_PAIR_STATE_RTS), "RTS");
  EXPECT_EQ(SourceName(v1::BUDGET_SOURCE_PLUGIN), "plugin");
  EXPECT_EQ(StateName(static_cast<v1::QueuePairState>(99)), "99");
  EXPECT_EQ(GidText("\x01\xff"), "01ff");
  EXPECT_EQ(Bytes(4'739'072), "4,739,072 bytes (4.5 MiB)");
  EXPECT_EQ(Count(1, "queue pair"), "1 queue pair");
  EXPECT_EQ(Count(1'200, "queue pair"), "1,200 queue pairs");
}

}  // namespace
}  // namespace purser::cli
