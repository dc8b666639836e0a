// SPDX-License-Identifier: Apache-2.0
#include "base/suggest.h"

#include <vector>

#include "gtest/gtest.h"

namespace purser::base {
namespace {

TEST(SuggestTest, NamesTheNearestCandidateWithinReach) {
  const std::vector<std::string_view> kCandidates = {
      "resourceName", "resources", "logLevel", "rdmaHcaMax", "port", "qp"};
  const struct {
    std::string_view unknown, suggestion;
  } kCases[] = {
      {"resorces", "resources"},         // missing letter
      {"resourcess", "resources"},       // one too many
      {"resourses", "resources"},        // wrong letter
      {"resoruces", "resources"},        // swapped
      {"loglevel", "logLevel"},          // case
      {"LOG_LEVEL", "logLevel"},         // spelt as in the environment
      {"log-level", "logLevel"},         // spelt as a flag
      {"rdmaHcaMaximum", "rdmaHcaMax"},  // a third of the length
      {"prot", "port"},
      {"pq", "qp"},
      {"xy", ""},  // every word of two letters is two edits away
      {"por", "port"},
      {"pods", "port"},
      {"verbosity", ""},
      {"", ""},
  };
  for (const auto& c : kCases) {
    const std::string expected =
        c.suggestion.empty()
            ? ""
            : " (did you mean \"" + std::string(c.suggestion) + "\"?)";
    EXPECT_EQ(DidYouMean(c.unknown, kCandidates), expected) << c.unknown;
  }
}

TEST(SuggestTest, FirstOfEquallyNearCandidates) {
  const std::vector<std::string_view> kCandidates = {"poolA", "poolB"};
  EXPECT_EQ(DidYouMean("poolC", kCandidates), " (did you mean \"poolA\"?)");
}

TEST(SuggestTest, NoCandidates) { EXPECT_EQ(DidYouMean("port", {}), ""); }

TEST(SuggestTest, LongWordsCostNothing) {
  const std::vector<std::string_view> kCandidates = {"port"};
  EXPECT_EQ(DidYouMean(std::string(1 << 20, 'p'), kCandidates), "");
}

}  // namespace
}  // namespace purser::base
