// SPDX-License-Identifier: Apache-2.0
#include "ledger/ledger_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "tests/unit/ledger/pod.h"

namespace purser::ledger {
namespace {

class LedgerFileTest : public testing::Test {
 protected:
  std::string path() const { return volume_.path(kFileName); }
  uint64_t Size() const { return std::filesystem::file_size(path()); }
  // Opening fails so, and leaves nothing behind.
  OpenOutcome Fault(FileFault fault) {
    const SidecarSide sidecar(volume_.root());
    EXPECT_EQ(sidecar.outcome().fault, fault);
    EXPECT_FALSE(std::filesystem::exists(volume_.path("ledger.new")));
    return sidecar.outcome();
  }
  // In a process of its own, since it changes what that may do.
  static void InAChild(const std::function<bool()>& holds) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      try {
        _exit(holds() ? 0 : 1);
      } catch (...) {
        _exit(2);
      }
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  fakes::FileTree volume_;
};

TEST_F(LedgerFileTest, IsMadeForEveryUserOfThePod) {
  const mode_t before = umask(077);
  const SidecarSide sidecar(volume_.root());
  umask(before);
  ASSERT_TRUE(sidecar.outcome().ok());
  EXPECT_TRUE(sidecar.outcome().created);
  struct stat status;
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0666u);
  EXPECT_EQ(status.st_nlink, 1u);
  EXPECT_EQ(status.st_size, PURSER_LEDGER_BYTES);
  EXPECT_GE(status.st_blocks * 512, PURSER_LEDGER_BYTES) << "no holes";
}

TEST_F(LedgerFileTest, OutlivesTheSidecar) {
  {
    SidecarSide sidecar(volume_.root());
    ASSERT_EQ(sidecar.adjudicator().SetBudget({1, 2, 3, 4}), 0);
  }
  SidecarSide sidecar(volume_.root());
  ASSERT_TRUE(sidecar.outcome().ok());
  EXPECT_FALSE(sidecar.outcome().created);
  uint64_t words[4];
  ASSERT_EQ(sidecar.file().Read(PURSER_LEDGER_BUDGET, words, 4), 0);
  EXPECT_EQ(words[2], purser_ledger_encode(PURSER_LEDGER_BUDGET + 2, 3));
}

TEST_F(LedgerFileTest, OneSidecarAtATime) {
  const SidecarSide first(volume_.root());
  Fault(FileFault::kInUse);
}

TEST_F(LedgerFileTest, WhatAKilledSidecarLeftHalfMadeIsMadeAnew) {
  volume_.Write("ledger.new", "half");
  const SidecarSide sidecar(volume_.root());
  EXPECT_TRUE(sidecar.outcome().ok());
  EXPECT_FALSE(std::filesystem::exists(volume_.path("ledger.new")));
}

TEST_F(LedgerFileTest, SomethingElseInThePlaceOfTheHalfMadeOne) {
  std::filesystem::create_directory(volume_.path("ledger.new"));
  const SidecarSide sidecar(volume_.root());
  EXPECT_EQ(sidecar.outcome().fault, FileFault::kCreate);
  EXPECT_EQ(sidecar.outcome().error, EEXIST);
}

TEST_F(LedgerFileTest, ADirectoryALinkAPipe) {
  std::filesystem::create_directory(path());
  Fault(FileFault::kNotAFile);
  std::filesystem::remove(path());
  volume_.Write("elsewhere", "x");
  std::filesystem::create_symlink("elsewhere", path());
  Fault(FileFault::kNotAFile);
  std::filesystem::remove(path());
  ASSERT_EQ(mkfifo(path().c_str(), 0666), 0);
  Fault(FileFault::kNotAFile);
  EXPECT_TRUE(std::filesystem::is_fifo(path()));
}

TEST_F(LedgerFileTest, AnotherVersionStaysAsItIs) {
  { const SidecarSide sidecar(volume_.root()); }
  Scribbler(path()).Write(1, 2);
  Scribbler(path()).Write(
      PURSER_LEDGER_CHECKED_VERSION,
      purser_ledger_encode(PURSER_LEDGER_CHECKED_VERSION, 2));
  Scribbler(path()).Truncate(100);
  EXPECT_EQ(Fault(FileFault::kOtherVersion).found, 2u);
  EXPECT_EQ(Size(), 100u);
}

// One that nothing confirms was damaged.
TEST_F(LedgerFileTest, ADamagedVersionIsRepaired) {
  { const SidecarSide sidecar(volume_.root()); }
  for (const uint64_t confirmed :
       {purser_ledger_encode(PURSER_LEDGER_CHECKED_VERSION, 1),
        purser_ledger_encode(PURSER_LEDGER_CHECKED_VERSION, 3), uint64_t{2}}) {
    Scribbler(path()).Write(1, 2);
    Scribbler(path()).Write(PURSER_LEDGER_CHECKED_VERSION, confirmed);
    SidecarSide sidecar(volume_.root());
    ASSERT_TRUE(sidecar.outcome().ok());
    EXPECT_GT(sidecar.adjudicator().Adjudicate().repaired, 0u);
    EXPECT_EQ(Scribbler(path()).Read(1), 1u);
  }
}

TEST_F(LedgerFileTest, OtherContentStaysAsItIs) {
  for (const std::string content : {"income, expenses\n", "money"}) {
    volume_.Write(kFileName, content);
    Fault(FileFault::kNotALedger);
    std::ifstream file(path());
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), content);
  }
}

TEST_F(LedgerFileTest, WhoseItIs) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  { const SidecarSide sidecar(volume_.root()); }
  ASSERT_EQ(chown(path().c_str(), 4711, 4711), 0);
  EXPECT_EQ(Fault(FileFault::kForeignOwner).found, 4711u);
  // Nor may it be written.
  ASSERT_EQ(chmod(path().c_str(), 0600), 0);
  ASSERT_EQ(chmod(volume_.root().c_str(), 0755), 0);
  InAChild([this] {
    return seteuid(65534) == 0 && Fault(FileFault::kForeignOwner).found == 4711;
  });
}

TEST_F(LedgerFileTest, NotWritableForItsOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another";
  InAChild([this] {
    return chown(volume_.root().c_str(), 65534, 65534) == 0 &&
           seteuid(65534) == 0 && SidecarSide(volume_.root()).outcome().ok() &&
           chmod(path().c_str(), 0444) == 0 &&
           Fault(FileFault::kOpen).error == EACCES && Size() == 36864;
  });
}

TEST_F(LedgerFileTest, NotEnoughRoomToMakeIt) {
  OpenOutcome outcome;
  {
    const NothingCanBeWritten full;
    outcome = Fault(FileFault::kAllocate);
  }
  EXPECT_EQ(outcome.error, EFBIG);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(LedgerFileTest, NotEnoughRoomToMakeItWhole) {
  { const SidecarSide sidecar(volume_.root()); }
  Scribbler(path()).Truncate(5000);
  const NothingCanBeWritten full;
  EXPECT_EQ(Fault(FileFault::kAllocate).error, EFBIG);
  EXPECT_EQ(Size(), 5000u);
}

TEST_F(LedgerFileTest, ATruncatedOneIsMadeWhole) {
  { const SidecarSide sidecar(volume_.root()); }
  for (const off_t size : {off_t{5000}, off_t{100}, off_t{0}}) {
    Scribbler(path()).Truncate(size);
    SidecarSide sidecar(volume_.root());
    ASSERT_TRUE(sidecar.outcome().ok()) << size;
    EXPECT_FALSE(sidecar.outcome().created);
    EXPECT_EQ(sidecar.outcome().size, static_cast<uint64_t>(size));
    EXPECT_EQ(Size(), uint64_t{PURSER_LEDGER_BYTES});
    EXPECT_GT(sidecar.adjudicator().Adjudicate().repaired, 0u);
  }
}

TEST_F(LedgerFileTest, IsKnownByItsStatesWhereTheHeaderIsDamaged) {
  { const SidecarSide sidecar(volume_.root()); }
  Scribbler(path()).Write(0, 0x1234);
  EXPECT_TRUE(SidecarSide(volume_.root()).outcome().ok());
  // Half of the states are still enough.
  for (uint32_t i = 0; i < 128; ++i)
    Scribbler(path()).Write(PURSER_LEDGER_STATES + i, 0x1234);
  EXPECT_TRUE(SidecarSide(volume_.root()).outcome().ok());
  Scribbler(path()).Write(PURSER_LEDGER_STATES + 128, 0x1234);
  Fault(FileFault::kNotALedger);
}

TEST_F(LedgerFileTest, ALongerOneIsUsed) {
  { const SidecarSide sidecar(volume_.root()); }
  Scribbler(path()).Truncate(100000);
  EXPECT_TRUE(SidecarSide(volume_.root()).outcome().ok());
}

TEST_F(LedgerFileTest, WhatIsMissingReadsAs0) {
  SidecarSide sidecar(volume_.root());
  Scribbler(path()).Truncate(20);
  uint64_t words[4] = {7, 7, 7, 7};
  EXPECT_EQ(sidecar.file().Read(0, words, 4), 0);
  EXPECT_EQ(words[0], PURSER_LEDGER_MAGIC);
  EXPECT_EQ(words[2], uint64_t{PURSER_LEDGER_BYTES}) << "of its first half";
  EXPECT_EQ(words[3], 0u);
  EXPECT_EQ(sidecar.file().MakeWhole(), -1);
  EXPECT_EQ(sidecar.file().MakeWhole(), 0);
}

// To touch one in a full volume is SIGBUS for who has mapped the file.
TEST_F(LedgerFileTest, HolesAreFilled) {
  SidecarSide sidecar(volume_.root());
  const auto allocated = [this] {
    struct stat status;
    stat(path().c_str(), &status);
    return status.st_blocks * 512;
  };
  const auto before = allocated();
  Scribbler(path()).Truncate(0);
  Scribbler(path()).Truncate(PURSER_LEDGER_BYTES);
  ASSERT_LT(allocated(), before);
  EXPECT_EQ(sidecar.file().MakeWhole(), 0);
  EXPECT_GE(allocated(), PURSER_LEDGER_BYTES);
}

TEST_F(LedgerFileTest, ErrorsOfAFileThatIsNotOpen) {
  LedgerFile file;
  Image image;
  image.fill(7);
  EXPECT_EQ(file.Read(image), EBADF);
  EXPECT_EQ(image[7], 0u);
  EXPECT_EQ(file.Write(0, image.data(), 1), EBADF);
  EXPECT_EQ(file.MakeWhole(), EBADF);
  EXPECT_EQ(file.LockSlot(0), EBADF);
  EXPECT_FALSE(file.InPlace());
  EXPECT_EQ(LedgerFile().Open(-1).fault, FileFault::kOpen);
}

TEST_F(LedgerFileTest, InPlaceUntilTheNameIsAnothers) {
  SidecarSide sidecar(volume_.root());
  EXPECT_TRUE(sidecar.file().InPlace());
  std::filesystem::rename(path(), volume_.path("moved"));
  EXPECT_FALSE(sidecar.file().InPlace());
  volume_.Write(kFileName, "another");
  EXPECT_FALSE(sidecar.file().InPlace());
  std::filesystem::rename(volume_.path("moved"), path());
  EXPECT_TRUE(sidecar.file().InPlace());
}

}  // namespace
}  // namespace purser::ledger
