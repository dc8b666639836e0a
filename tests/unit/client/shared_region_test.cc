// SPDX-License-Identifier: Apache-2.0
#include "client/shared_region.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tests/unit/client/client_fixture.h"

namespace purser::client {
namespace {

using testing::HasSubstr;

class SharedRegionTest : public ClientTest {
 protected:
  // Files in the volume beside the socket.
  size_t Files() const {
    auto files = std::filesystem::directory_iterator(volume_.root());
    return std::count_if(begin(files), end(files), [](const auto& entry) {
      return entry.is_regular_file();
    });
  }
  std::string Volume() const { return volume_.root().string(); }

  std::unique_ptr<Client> client_ = Connected();
};

TEST_F(SharedRegionTest, IsZeroWritableAndWithoutAName) {
  auto region = SharedRegion::Create(*client_, Volume(), 10'000);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(region->size(), 10'000u);
  EXPECT_TRUE(std::all_of(region->data(), region->data() + region->size(),
                          [](std::byte b) { return b == std::byte{0}; }));
  region->data()[9'999] = std::byte{1};
  EXPECT_EQ(Files(), 0u);
  EXPECT_EQ(fabric_.regions(), 1u);
  EXPECT_NE(region->rkey(), 0u);
  EXPECT_NE(region->remote_addr(), 0u);
  const v1::Sge sge = region->Slice(8, 16);
  EXPECT_EQ(sge.offset(), 8u);
  EXPECT_EQ(sge.length(), 16u);
  EXPECT_NE(sge.region_id(), 0u);
}

TEST_F(SharedRegionTest, IsDeregisteredOnceWithItsLastOwner) {
  {
    auto first = SharedRegion::Create(*client_, Volume(), 1);
    ASSERT_TRUE(first.ok());
    std::byte* data = first->data();
    SharedRegion second = std::move(*first);
    EXPECT_EQ(second.data(), data);
    EXPECT_EQ(fabric_.regions(), 1u);
    auto third = SharedRegion::Create(*client_, Volume(), 1);
    ASSERT_TRUE(third.ok());
    EXPECT_EQ(fabric_.regions(), 2u);
    second = std::move(*third);
    EXPECT_EQ(fabric_.regions(), 1u);
  }
  EXPECT_EQ(fabric_.regions(), 0u);
}

TEST_F(SharedRegionTest, NamesADirectoryThatDoesNotExist) {
  auto region = SharedRegion::Create(*client_, "/nonexistent", 1);
  EXPECT_EQ(region.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(region.status().message()),
              HasSubstr("/nonexistent"));
}

TEST_F(SharedRegionTest, RefusesZeroBytes) {
  EXPECT_EQ(SharedRegion::Create(*client_, Volume(), 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SharedRegionTest, AFullVolumeIsAnError) {
  // A tmpfs says so before it allocates anything.
  const std::string shm = "/dev/shm";
  struct statfs volume {};
  if (statfs(shm.c_str(), &volume) != 0 || volume.f_type != TMPFS_MAGIC ||
      volume.f_blocks == 0)
    GTEST_SKIP() << shm << " is no tmpfs with a size";
  const uint64_t too_much = volume.f_bsize * (volume.f_blocks + 1);
  auto region = SharedRegion::Create(*client_, shm, too_much);
  EXPECT_EQ(region.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(region.status().message()),
              testing::AllOf(HasSubstr(std::to_string(too_much) + " bytes"),
                             HasSubstr(shm), HasSubstr("sizeLimit")));
}

TEST_F(SharedRegionTest, AnImpossibleSizeLeavesNothing) {
  auto region = SharedRegion::Create(*client_, Volume(), size_t{1} << 62);
  EXPECT_FALSE(region.ok());
  EXPECT_THAT(std::string(region.status().message()), HasSubstr(Volume()));
  EXPECT_EQ(Files(), 0u);
}

TEST_F(SharedRegionTest, ARefusedRegistrationLeavesNothing) {
  sidecar_.FailNext("RegisterMemory",
                    {grpc::StatusCode::RESOURCE_EXHAUSTED, "memlock"});
  EXPECT_EQ(SharedRegion::Create(*client_, Volume(), 4096).status(),
            absl::ResourceExhaustedError("memlock"));
  EXPECT_EQ(Files(), 0u);
}

}  // namespace
}  // namespace purser::client
