// SPDX-License-Identifier: Apache-2.0
#include "sidecar/regions.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/sidecar/fake_sidecar.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kPage = 4096;

class RegionsTest : public ::testing::Test {
 protected:
  RegionsTest() : client_(sidecar_.Attach()) {
    sidecar_.tree().Write("volume/buffer", std::string(4 * kPage, '\0'));
  }

  Regions::Request Request() const {
    return {.client_id = client_,
            .path = "buffer",
            .length = 4 * kPage,
            .access = IBV_ACCESS_LOCAL_WRITE};
  }
  absl::StatusOr<std::shared_ptr<const Region>> Register(
      const Regions::Request& request) {
    return sidecar_.regions().Register(sidecar_.device(), request);
  }
  absl::Status Refused(const Regions::Request& request) {
    const absl::Status status = Register(request).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(sidecar_.object_count(), 0);
    EXPECT_EQ(sidecar_.regions().count(), 0u);
    return status;
  }

  FakeSidecar sidecar_{{.mlx5 = true}};
  std::string client_;
};

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

TEST_F(RegionsTest, RegistersARangeOfAFile) {
  Regions::Request request = Request();
  request.offset = kPage;
  request.length = 100;
  const auto region = Register(request);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ((*region)->mapping.length(), 100u);
  EXPECT_EQ((*region)->mr->length, 100u);
  EXPECT_EQ(sidecar_.regions().count(), 1u);
  EXPECT_EQ(sidecar_.regions().bytes(), 100u);
  EXPECT_TRUE(sidecar_.regions().Find(client_, (*region)->id).ok());
  ASSERT_TRUE(sidecar_.regions().Deregister(client_, (*region)->id).ok());
  EXPECT_EQ(sidecar_.regions().bytes(), 0u);
  EXPECT_TRUE(
      absl::IsNotFound(sidecar_.regions().Deregister(client_, (*region)->id)));
}

TEST_F(RegionsTest, RefusesRangesThatAreNotWithinTheFile) {
  Regions::Request request = Request();
  for (const auto& [offset, length] :
       {std::pair<uint64_t, uint64_t>(0, 4 * kPage + 1),
        {4 * kPage, 1},
        {8 * kPage, 1},
        {kPage, UINT64_MAX - kPage + 1},
        {UINT64_MAX - kPage + 1, kPage},
        {0, UINT64_MAX}}) {
    request.offset = offset;
    request.length = length;
    const absl::Status status = Refused(request);
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_THAT(Text(status), HasSubstr("16384 bytes"));
  }
  request = Request();
  request.length = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(Refused(request)));
  request = Request();
  request.offset = 100;
  EXPECT_THAT(Text(Refused(request)), HasSubstr("page size 4096"));
}

TEST_F(RegionsTest, NeverLeavesTheVolume) {
  sidecar_.tree().Write("secret", std::string(4 * kPage, 'x'));
  sidecar_.tree().Directory("volume/sub");
  sidecar_.tree().Link("volume/link", sidecar_.tree().path("secret"));
  sidecar_.tree().Link("volume/inside", "buffer");
  sidecar_.tree().Link("volume/dirlink", sidecar_.tree().path(""));
  for (const std::string& path :
       {std::string("../secret"), std::string("sub/../../secret"),
        sidecar_.tree().path("secret"), std::string("link"),
        std::string("inside"), std::string("dirlink/secret"),
        std::string("/proc/self/exe")}) {
    Regions::Request request = Request();
    request.path = path;
    const absl::Status status = Refused(request);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << path << ": " << status;
    EXPECT_THAT(Text(status), HasSubstr("below the shared volume")) << path;
  }
}

TEST_F(RegionsTest, TakesRegularFilesAlone) {
  sidecar_.tree().Directory("volume/directory");
  ASSERT_EQ(mkfifo(sidecar_.tree().path("volume/fifo").c_str(), 0600), 0);
  sidecar_.tree().Write("volume/sub/nested", std::string(4 * kPage, '\0'));
  Regions::Request request = Request();
  request.path = "directory";
  EXPECT_FALSE(Refused(request).ok());
  request.path = "fifo";
  EXPECT_THAT(Text(Refused(request)), HasSubstr("not a regular file"));
  request.path = "absent";
  EXPECT_TRUE(absl::IsNotFound(Refused(request)));
  request.path = "";
  EXPECT_FALSE(Refused(request).ok());
  request.path = std::string("buffer\0x", 8);
  EXPECT_TRUE(absl::IsInvalidArgument(Refused(request)));
  request.path = std::string(100000, 'x');
  const absl::Status long_name = Refused(request);
  EXPECT_LT(long_name.message().size(), 300u);
  request.path = "sub/nested";
  EXPECT_TRUE(Register(request).ok());
}

TEST_F(RegionsTest, HolesWouldBeChargedToTheSidecar) {
  sidecar_.tree().Write("volume/sparse", "x");
  ASSERT_EQ(truncate(sidecar_.tree().path("volume/sparse").c_str(), 1 << 30),
            0);
  Regions::Request request = Request();
  request.path = "sparse";
  request.length = 1 << 30;
  const absl::Status status = Refused(request);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Text(status), HasSubstr("posix_fallocate"));
}

// What is allocated elsewhere in the file does not stand for the range.
TEST_F(RegionsTest, AFileWithHolesIsTakenWhereItHasNone) {
  const std::string path = sidecar_.tree().path("volume/half");
  sidecar_.tree().Write("volume/half", "");
  ASSERT_EQ(truncate(path.c_str(), 64 * kPage), 0);
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const std::string data(32 * kPage, 'x');
  ASSERT_EQ(pwrite(file, data.data(), data.size(), 32 * kPage),
            static_cast<ssize_t>(data.size()));
  close(file);
  Regions::Request request = Request();
  request.path = "half";
  request.length = 32 * kPage;
  for (const uint64_t offset : {0, 16}) {
    request.offset = offset * kPage;
    const absl::Status status = Refused(request);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
  request.offset = 32 * kPage;
  EXPECT_TRUE(Register(request).ok());
}

TEST_F(RegionsTest, ChecksAccessFlags) {
  Regions::Request request = Request();
  for (uint32_t access :
       {uint32_t{IBV_ACCESS_REMOTE_WRITE}, uint32_t{IBV_ACCESS_REMOTE_ATOMIC},
        uint32_t{IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE},
        uint32_t{1u << 31}}) {
    request.access = access;
    EXPECT_TRUE(absl::IsInvalidArgument(Refused(request))) << access;
  }
  for (uint32_t access :
       {0u, uint32_t{IBV_ACCESS_REMOTE_READ},
        uint32_t{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE}}) {
    request.access = access;
    EXPECT_TRUE(Register(request).ok()) << access;
  }
}

TEST_F(RegionsTest, FailuresOfTheDeviceAreExplainedAndLeakNothing) {
  sidecar_.SetMemlock("65536");
  absl::Status status;
  for (int error : {ENOMEM, EPERM}) {
    sidecar_.verbs().FailNext("reg_mr", error);
    status = Refused(Request());
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(Text(status), AllOf(HasSubstr("0 bytes are registered already"),
                                    HasSubstr("RLIMIT_MEMLOCK is 64 KiB"),
                                    HasSubstr("LimitMEMLOCK=infinity"),
                                    HasSubstr("sidecar.ipcLock")));
  }
  sidecar_.verbs().FailNext("reg_mr", EFAULT);
  status = Refused(Request());
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Text(status), HasSubstr("medium: Memory"));
  sidecar_.verbs().FailNext("reg_mr", EIO);
  EXPECT_THAT(Text(Refused(Request())), HasSubstr("EIO"));
  for (const char* error : {"ENOMEM", "EFAULT", "EIO"})
    EXPECT_EQ(CountOf(sidecar_.counters().create_failures, std::string("mr"),
                      std::string(error)),
              1u);
}

TEST_F(RegionsTest, ARegionIsItsOwnersAlone) {
  const uint64_t id = Register(Request()).value()->id;
  const std::string other = sidecar_.Attach();
  EXPECT_TRUE(
      absl::IsPermissionDenied(sidecar_.regions().Deregister(other, id)));
  EXPECT_TRUE(
      absl::IsPermissionDenied(sidecar_.regions().Find(other, id).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(sidecar_.regions().Deregister("x", id)));
  Regions::Request request = Request();
  request.client_id = "x";
  EXPECT_TRUE(absl::IsUnauthenticated(Register(request).status()));
  EXPECT_EQ(sidecar_.regions().count(), 1u);
}

TEST_F(RegionsTest, EndsWithItsClientAndWithItsDevice) {
  ASSERT_TRUE(Register(Request()).ok());
  sidecar_.broker().Detach(client_);
  EXPECT_TRUE(Eventually([&] { return sidecar_.object_count() == 0; }));
  client_ = sidecar_.Attach();
  ASSERT_TRUE(Register(Request()).ok());
  EXPECT_EQ(sidecar_.regions().EndDevice(sidecar_.device(1)), 0u);
  EXPECT_EQ(sidecar_.regions().count(), 1u);
  EXPECT_EQ(sidecar_.regions().EndDevice(sidecar_.device(0)), 1u);
  EXPECT_EQ(sidecar_.regions().count(), 0u);
  EXPECT_EQ(sidecar_.regions().bytes(), 0u);
}

TEST_F(RegionsTest, AClientThatEndsDuringARegistrationLeavesNothing) {
  sidecar_.verbs().Observe([&](std::string_view call) {
    if (call == "reg_mr") sidecar_.broker().Detach(client_);
  });
  EXPECT_TRUE(absl::IsUnauthenticated(Refused(Request())));
  sidecar_.verbs().Observe({});
}

TEST_F(RegionsTest, ATruncatedFileCannotHurt) {
  const auto region = Register(Request());
  ASSERT_TRUE(region.ok());
  ASSERT_EQ(truncate(sidecar_.tree().path("volume/buffer").c_str(), 0), 0);
  EXPECT_TRUE(SgeOf(**region, 0, 4 * kPage).ok());
}

TEST_F(RegionsTest, EntriesLieWithinTheRegion) {
  const auto region = Register(Request()).value();
  const uint64_t size = 4 * kPage;
  const auto whole = SgeOf(*region, 0, static_cast<uint32_t>(size));
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->addr, reinterpret_cast<uint64_t>(region->mapping.address()));
  EXPECT_EQ(whole->length, size);
  EXPECT_EQ(whole->lkey, region->mr->lkey);
  EXPECT_EQ(SgeOf(*region, 100, 5)->addr, whole->addr + 100);
  EXPECT_TRUE(SgeOf(*region, size, 0).ok());
  for (const auto& [offset, length] : {std::pair<uint64_t, uint32_t>(size, 1),
                                       {size + 1, 0},
                                       {1, static_cast<uint32_t>(size)},
                                       {0, UINT32_MAX},
                                       {UINT64_MAX, 1},
                                       {UINT64_MAX, UINT32_MAX},
                                       {UINT64_MAX - 10, 11}})
    EXPECT_TRUE(absl::IsOutOfRange(SgeOf(*region, offset, length).status()))
        << offset << " + " << length;
}

TEST(RegionsCreateTest, NamesAMissingVolume) {
  Clients clients(1);
  Counters counters;
  Undestroyed undestroyed(counters, FakeSidecar::kLookEvery);
  const absl::Status status = Regions::Create("/no/such/volume", clients,
                                              undestroyed, counters, "/proc")
                                  .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Text(status), AllOf(HasSubstr("/no/such/volume"),
                                  HasSubstr("ENOENT"), HasSubstr("emptyDir")));
}

}  // namespace
}  // namespace purser::sidecar
