// SPDX-License-Identifier: Apache-2.0
#include "node_view/kernel_rings.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace purser::node_view {
namespace {

using queue_memory::Provider;

constexpr uint64_t kPage = 4096;
constexpr char kRecorded[] =
    "0xffffc9000002d000-0xffffc9000004f000  139264 rxe_queue_init+0x9a/0x150 "
    "[rdma_rxe] pages=33 vmalloc N0=33";

TEST(KernelRingsTest, ReadsALineAsTheKernelWritesIt) {
  const auto area = ParseVmallocArea(kRecorded, kPage);
  ASSERT_TRUE(area.has_value());
  EXPECT_EQ(area->provider, Provider::kRxe);
  EXPECT_EQ(area->bytes, 139264u - kPage);
  EXPECT_EQ(ParseVmallocArea("0x0-0x0 69632 siw_create_qp+0x1/0x2 [siw] pages=1"
                             " vmalloc",
                             kPage)
                ->provider,
            Provider::kSiw);
}

TEST(KernelRingsTest, OtherAreasAreNone) {
  for (const char* line :
       {"", "0x0-0x0 20480 gen_pool_add_owner+0x42/0xb0 pages=4 vmalloc N0=4",
        "0x0-0x0 20480 rxe_queue_init2+0x1/0x2", "0x0-0x0 20480",
        "0x0-0x0 many rxe_queue_init+0x1/0x2",
        "0x0-0x0 4095 rxe_queue_init+0x1/0x2",
        "0xffffc90000000000-0xffffc90000002000    8192 unpurged vm_area"})
    EXPECT_FALSE(ParseVmallocArea(line, kPage).has_value()) << line;
}

TEST(KernelRingsTest, SurvivesGarbage) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string line = kRecorded;
    for (int change = 0; change < 4; ++change)
      line[random() % line.size()] = static_cast<char>(random());
    (void)ParseVmallocArea(line.substr(0, random() % line.size()), kPage);
  }
}

}  // namespace
}  // namespace purser::node_view
