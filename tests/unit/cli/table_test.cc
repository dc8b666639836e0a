// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <gtest/gtest.h>

namespace purser::cli {
namespace {

TEST(TableTest, AlignsEachColumnAndEndsNoLineWithSpaces) {
  Table table("lr", 2);
  table.Row({"a", "1", "note"});
  table.Row({"longer", "1,000", ""});
  table.Row({"", "22"});
  EXPECT_EQ(table.Text(),
            "  a           1  note\n"
            "  longer  1,000\n"
            "             22\n");
}

TEST(TableTest, NothingIsNothing) { EXPECT_EQ(Table("l").Text(), ""); }

}  // namespace
}  // namespace purser::cli
