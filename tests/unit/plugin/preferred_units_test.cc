// SPDX-License-Identifier: Apache-2.0
#include "plugin/preferred_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace purser::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Strings = std::vector<std::string>;

constexpr auto kSpread = Placement::kSpread;
constexpr auto kPacked = Placement::kPacked;
constexpr auto kTogether = Company::kTogether;
constexpr auto kApart = Company::kApart;

TEST(PreferUnits, SharesOfOneContainerAreOfOneHca) {
  const std::vector<HcaUnits> hcas = {{.available = {"a1", "a2"}},
                                      {.available = {"b1", "b2", "b3", "b4"}},
                                      {.available = {"c1", "c2", "c3"}}};
  EXPECT_THAT(PreferUnits(hcas, 3, kSpread, kTogether),
              ElementsAre("b1", "b2", "b3"));
  EXPECT_THAT(PreferUnits(hcas, 3, kPacked, kTogether),
              ElementsAre("c1", "c2", "c3"));
  EXPECT_THAT(PreferUnits(hcas, 1, kSpread, kTogether), ElementsAre("b1"));
  EXPECT_THAT(PreferUnits(hcas, 1, kPacked, kTogether), ElementsAre("a1"));
}

TEST(PreferUnits, WhatMustBeIncludedDecidesTheHca) {
  const std::vector<HcaUnits> hcas = {
      {.must_include = {"a0"}, .available = {"a1", "a2"}},
      {.available = {"b1", "b2", "b3", "b4"}}};
  EXPECT_THAT(PreferUnits(hcas, 3, kSpread, kTogether),
              ElementsAre("a0", "a1", "a2"));
  EXPECT_THAT(PreferUnits(hcas, 1, kSpread, kTogether), ElementsAre("a0"));
}

TEST(PreferUnits, FewHcasOfOneNumaNodeWhereOneDoesNotSuffice) {
  const std::vector<HcaUnits> hcas = {
      {.numa_node = 0, .available = {"a1", "a2", "a3"}},
      {.numa_node = 1, .available = {"b1", "b2"}},
      {.numa_node = 1, .available = {"c1"}},
      {.numa_node = 1, .available = {"d1", "d2"}}};
  EXPECT_THAT(PreferUnits(hcas, 4, kSpread, kTogether),
              ElementsAre("b1", "b2", "d1", "d2"));
  EXPECT_THAT(PreferUnits(hcas, 5, kPacked, kTogether),
              ElementsAre("b1", "b2", "d1", "d2", "c1"));
  // No node has so many.
  EXPECT_EQ(PreferUnits(hcas, 7, kPacked, kTogether).size(), 7u);
}

TEST(PreferUnits, TheRestIsOfTheSameNumaNode) {
  const std::vector<HcaUnits> hcas = {
      {.numa_node = 0, .available = {"a1", "a2", "a3", "a4"}},
      {.numa_node = 1, .must_include = {"b0"}, .available = {}},
      {.numa_node = 1, .available = {"c1", "c2"}}};
  EXPECT_THAT(PreferUnits(hcas, 3, kSpread, kTogether),
              ElementsAre("b0", "c1", "c2"));
}

TEST(PreferUnits, DevicesApartAreOfManyHcasOfOneNode) {
  const std::vector<HcaUnits> hcas = {
      {.numa_node = 1, .available = {"a1", "a2"}},
      {.numa_node = 0, .available = {"b1", "b2", "b3"}},
      {.numa_node = 1, .available = {"c1", "c2", "c3"}}};
  EXPECT_THAT(PreferUnits(hcas, 2, kSpread, kApart),
              UnorderedElementsAre("a1", "c1"));
  EXPECT_THAT(PreferUnits(hcas, 4, kSpread, kApart),
              UnorderedElementsAre("a1", "a2", "c1", "c2"));
  EXPECT_THAT(PreferUnits(hcas, 2, kPacked, kTogether),
              UnorderedElementsAre("a1", "a2"));
}

TEST(PreferUnits, NoMoreThanThereAre) {
  EXPECT_THAT(PreferUnits({}, 3, kSpread, kTogether), IsEmpty());
  EXPECT_THAT(PreferUnits({{.available = {"a1"}}, {}}, 3, kSpread, kApart),
              ElementsAre("a1"));
  EXPECT_THAT(PreferUnits({{.available = {"a1"}}}, 0, kSpread, kTogether),
              IsEmpty());
}

}  // namespace
}  // namespace purser::plugin
