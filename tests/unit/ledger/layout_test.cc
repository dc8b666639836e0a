// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "ledger/ledger_file.h"
#include "ledger/purser_ledger_layout.h"

namespace purser::ledger {
namespace {

TEST(Layout, IsVersion1) {
  Image image;
  Format(image);
  EXPECT_EQ(sizeof(image), 36864u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(image.data()), 8),
            "PURSERLG");
  EXPECT_EQ(image[1], 1u);
  EXPECT_EQ(image[2], 36864u);
  EXPECT_EQ(image[3], 4096u);
  EXPECT_EQ(image[4], 128u);
  EXPECT_EQ(image[5], 256u);
  EXPECT_EQ(purser_ledger_slot_word(255, 15) * 8, 36864u - 8);
  // Where others find them, and how they are checked.
  EXPECT_EQ(image[64 / 8], purser_ledger_encode(64 / 8, 0));
  EXPECT_EQ(image[128 / 8 + 3], purser_ledger_encode(128 / 8 + 3, 0));
  EXPECT_EQ(image[1024 / 8 + 255], purser_ledger_encode(1024 / 8 + 255, 0));
  EXPECT_EQ(purser_ledger_encode(8, 0x123456789abc), 0x3555123456789abcu);
}

TEST(CheckedWord, HoldsEveryValueOf48Bits) {
  std::mt19937_64 random(1);
  for (uint32_t index = 0; index < PURSER_LEDGER_WORDS; ++index)
    for (const uint64_t value :
         {uint64_t{0}, uint64_t{1}, PURSER_LEDGER_MAX, random() >> 16}) {
      uint64_t decoded = 1;
      ASSERT_TRUE(purser_ledger_decode(
          index, purser_ledger_encode(index, value), &decoded));
      ASSERT_EQ(decoded, value);
    }
}

TEST(CheckedWord, NoticesWhatAccidentsDo) {
  std::mt19937_64 random(2);
  uint64_t value;
  for (uint32_t index = 0; index < PURSER_LEDGER_WORDS; ++index) {
    ASSERT_FALSE(purser_ledger_decode(index, 0, &value)) << "zeroed";
    ASSERT_FALSE(purser_ledger_decode(index, UINT64_MAX, &value));
    const uint64_t word = purser_ledger_encode(index, random() >> 20);
    for (int bit = 0; bit < 64; ++bit)
      ASSERT_FALSE(
          purser_ledger_decode(index, word ^ (uint64_t{1} << bit), &value))
          << "bit " << bit;
    ASSERT_FALSE(purser_ledger_decode(index + 1, word, &value)) << "moved";
    ASSERT_FALSE(purser_ledger_decode(index + 16, word, &value)) << "moved";
  }
}

TEST(CheckedWord, NoticesAllButOneOf65536RandomWords) {
  std::mt19937_64 random(3);
  int missed = 0;
  uint64_t value;
  for (int i = 0; i < 1'000'000; ++i)
    if (purser_ledger_decode(i % PURSER_LEDGER_WORDS, random(), &value))
      ++missed;
  EXPECT_LT(missed, 40);
}

TEST(State, EachChangeHasOneOfItsOwn) {
  uint64_t state = 0;
  EXPECT_FALSE(purser_ledger_taken(state));
  state = purser_ledger_state_taken(state);
  EXPECT_EQ(state, 1u);
  EXPECT_TRUE(purser_ledger_taken(state));
  EXPECT_EQ(purser_ledger_state_taken(state), 3u) << "from the dead";
  state = purser_ledger_state_free(state);
  EXPECT_EQ(state, 2u);
  EXPECT_EQ(purser_ledger_state_taken(state), 3u);
  EXPECT_EQ(purser_ledger_state_free(state), 4u);
  EXPECT_EQ(purser_ledger_state_free(PURSER_LEDGER_MAX), 0u) << "wraps";
  EXPECT_EQ(purser_ledger_state_taken(PURSER_LEDGER_MAX), 1u) << "wraps";
}

}  // namespace
}  // namespace purser::ledger
