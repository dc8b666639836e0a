// SPDX-License-Identifier: Apache-2.0
#include "base/text_table.h"

#include <gtest/gtest.h>

namespace purser::base {
namespace {

TEST(TextTableTest, AlignsEachColumnAndEndsNoLineWithSpaces) {
  TextTable table("lr", 2);
  table.Row({"a", "1", "note"});
  table.Row({"longer", "1,000", ""});
  table.Row({"", "22"});
  EXPECT_EQ(table.Text(),
            "  a           1  note\n"
            "  longer  1,000\n"
            "             22\n");
}

TEST(TextTableTest, NothingIsNothing) { EXPECT_EQ(TextTable("l").Text(), ""); }

}  // namespace
}  // namespace purser::base
