// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/sidecar/many_queue_pairs.h"

#include "gtest/gtest.h"

namespace purser::sidecar {
namespace {

TEST(ManyQueuePairs, HaveASmallFootprint) {
  ManyQueuePairs many(10'000);
  const uint64_t bytes = many.BytesEach();
  const std::string scrape = many.Scrape();
  std::printf("%lu bytes a queue pair beyond the rings, %zu bytes a scrape\n",
              bytes, scrape.size());
  EXPECT_LE(bytes, 1024u);
  EXPECT_LE(scrape.size(), 64u << 10);
}

}  // namespace
}  // namespace purser::sidecar
