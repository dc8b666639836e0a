// SPDX-License-Identifier: Apache-2.0
#include "ledger/ledger_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/purser_ledger.h"

namespace purser::ledger {
namespace {

constexpr char kNewName[] = "ledger.new";
constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
// The pod's containers run as other users.
constexpr mode_t kMode = 0666;

// What of a damaged file is enough to know it for a ledger.
constexpr int kEnoughStates = PURSER_LEDGER_SLOTS / 2;

bool HasStates(const Image& image) {
  int valid = 0;
  for (uint32_t i = 0; i < PURSER_LEDGER_SLOTS; ++i) {
    const uint32_t index = PURSER_LEDGER_STATES + i;
    uint64_t state;
    if (purser_ledger_decode(index, image[index], &state)) ++valid;
  }
  return valid >= kEnoughStates;
}

bool Blank(const Image& image) {
  for (const uint64_t word : image)
    if (word != 0) return false;
  return true;
}

OpenOutcome Judge(const Image& image) {
  if (image[0] == PURSER_LEDGER_MAGIC) {
    // A version that its checked copy does not confirm is damage.
    uint64_t version;
    if (image[1] == PURSER_LEDGER_VERSION ||
        !purser_ledger_decode(PURSER_LEDGER_CHECKED_VERSION,
                              image[PURSER_LEDGER_CHECKED_VERSION], &version) ||
        version != image[1])
      return {};
    return {.fault = FileFault::kOtherVersion, .found = version};
  }
  if (HasStates(image) || Blank(image)) return {};
  return {.fault = FileFault::kNotALedger};
}

int Transfer(bool reads, int fd, uint32_t index, uint64_t* words,
             uint32_t count, uint64_t* done) {
  char* bytes = reinterpret_cast<char*>(words);
  const uint64_t wanted = uint64_t{count} * 8;
  for (*done = 0; *done < wanted;) {
    const off_t offset = static_cast<off_t>(uint64_t{index} * 8 + *done);
    const ssize_t length =
        reads ? pread(fd, bytes + *done, wanted - *done, offset)
              : pwrite(fd, bytes + *done, wanted - *done, offset);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return errno;
    if (length == 0) break;
    *done += static_cast<uint64_t>(length);
  }
  return 0;
}

}  // namespace

void Format(Image& image) {
  for (uint64_t& word : image) word = 0;
  const auto set = [&image](uint32_t first, uint32_t count, uint64_t value) {
    for (uint32_t i = first; i < first + count; ++i)
      image[i] = purser_ledger_encode(i, value);
  };
  for (uint32_t i = 0; i < PURSER_LEDGER_HEADER_WORDS; ++i)
    image[i] = purser_ledger_header_word(i);
  set(PURSER_LEDGER_BUDGET, PURSER_LEDGER_AMOUNTS, 0);
  set(PURSER_LEDGER_BROKERED, PURSER_LEDGER_AMOUNTS, 0);
  set(PURSER_LEDGER_LEFT, 2, 0);
  set(PURSER_LEDGER_SIDECAR, PURSER_LEDGER_SIDECAR_WORDS, 0);
  set(PURSER_LEDGER_STATES, PURSER_LEDGER_SLOTS, 0);
  for (uint32_t slot = 0; slot < PURSER_LEDGER_SLOTS; ++slot)
    set(purser_ledger_slot_word(slot, 0), PURSER_LEDGER_SLOT_USED_WORDS, 0);
}

LedgerFile::~LedgerFile() {
  if (fd_ >= 0) close(fd_);
  if (directory_ >= 0) close(directory_);
}

OpenOutcome LedgerFile::Open(int directory) {
  directory_ = fcntl(directory, F_DUPFD_CLOEXEC, 0);
  if (directory_ < 0) return {.fault = FileFault::kOpen, .error = errno};
  fd_ = openat(directory_, kFileName, kFlags);
  if (fd_ >= 0) return OpenExisting();
  const int error = errno;
  if (error == ENOENT) return Create();
  if (error == EISDIR || error == ELOOP || error == ENXIO)
    return {.fault = FileFault::kNotAFile, .error = error};
  struct stat status;
  // Who may not write it is told whose it is.
  if (error == EACCES &&
      fstatat(directory_, kFileName, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      status.st_uid != geteuid())
    return {.fault = FileFault::kForeignOwner, .found = status.st_uid};
  return {.fault = FileFault::kOpen, .error = error};
}

OpenOutcome LedgerFile::OpenExisting() {
  struct stat status;
  if (fstat(fd_, &status) != 0)
    return {.fault = FileFault::kOpen, .error = errno};
  if (!S_ISREG(status.st_mode)) return {.fault = FileFault::kNotAFile};
  if (status.st_uid != geteuid())
    return {.fault = FileFault::kForeignOwner, .found = status.st_uid};
  if (purser_ledger_lock(fd_, 0, F_WRLCK) != 0)
    return {.fault = FileFault::kInUse};
  Image image;
  if (const int error = Read(image))
    return {.fault = FileFault::kOpen, .error = error};
  OpenOutcome outcome = Judge(image);
  if (!outcome.ok()) return outcome;
  outcome.size = static_cast<uint64_t>(status.st_size);
  // Holes too: to touch one in a full volume is SIGBUS for who has mapped it.
  outcome.error = posix_fallocate(fd_, 0, PURSER_LEDGER_BYTES);
  if (outcome.error != 0) {
    outcome.fault = FileFault::kAllocate;
  } else if (fchmod(fd_, kMode) != 0) {
    outcome.error = errno;
    outcome.fault = FileFault::kOpen;
  }
  return outcome;
}

OpenOutcome LedgerFile::Create() {
  OpenOutcome outcome = {.created = true, .size = PURSER_LEDGER_BYTES};
  unlinkat(directory_, kNewName, 0);
  fd_ = openat(directory_, kNewName, kFlags | O_CREAT | O_EXCL, kMode);
  if (fd_ < 0) return {.fault = FileFault::kCreate, .error = errno};
  Image image;
  Format(image);
  outcome.error = posix_fallocate(fd_, 0, PURSER_LEDGER_BYTES);
  if (outcome.error != 0) {
    outcome.fault = FileFault::kAllocate;
  } else {
    outcome.error = purser_ledger_lock(fd_, 0, F_WRLCK);
    if (outcome.error == 0)
      outcome.error = Write(0, image.data(), PURSER_LEDGER_WORDS);
    // The umask does not count.
    if (outcome.error == 0 && fchmod(fd_, kMode) != 0) outcome.error = errno;
    // Unlike a rename it overwrites nothing.
    if (outcome.error == 0 &&
        linkat(directory_, kNewName, directory_, kFileName, 0) != 0)
      outcome.error = errno;
    if (outcome.error != 0) outcome.fault = FileFault::kCreate;
  }
  unlinkat(directory_, kNewName, 0);
  return outcome;
}

int LedgerFile::Read(uint32_t index, uint64_t* words, uint32_t count) const {
  uint64_t done;
  const int error = Transfer(true, fd_, index, words, count, &done);
  // A word that is there in part keeps it: nothing that is in the file looks
  // like an empty one.
  char* bytes = reinterpret_cast<char*>(words);
  for (uint64_t i = error ? 0 : done; i < uint64_t{count} * 8; ++i)
    bytes[i] = 0;
  return error;
}

int LedgerFile::Read(Image& image) const {
  return Read(0, image.data(), PURSER_LEDGER_WORDS);
}

int LedgerFile::Write(uint32_t index, const uint64_t* words,
                      uint32_t count) const {
  uint64_t done;
  return Transfer(false, fd_, index, const_cast<uint64_t*>(words), count,
                  &done);
}

int LedgerFile::MakeWhole() const {
  struct stat status;
  if (fstat(fd_, &status) != 0) return errno;
  const bool truncated = status.st_size < PURSER_LEDGER_BYTES;
  // Holes too, as when it is opened.
  const int error = truncated || status.st_blocks * 512 < PURSER_LEDGER_BYTES
                        ? posix_fallocate(fd_, 0, PURSER_LEDGER_BYTES)
                        : 0;
  return error == 0 && truncated ? -1 : error;
}

int LedgerFile::LockSlot(uint32_t slot) const {
  return purser_ledger_lock(fd_, purser_ledger_slot_offset(slot), F_WRLCK);
}

void LedgerFile::UnlockSlot(uint32_t slot) const {
  purser_ledger_lock(fd_, purser_ledger_slot_offset(slot), F_UNLCK);
}

bool LedgerFile::InPlace() const {
  struct stat name, file;
  return fstatat(directory_, kFileName, &name, AT_SYMLINK_NOFOLLOW) == 0 &&
         fstat(fd_, &file) == 0 && name.st_dev == file.st_dev &&
         name.st_ino == file.st_ino;
}

}  // namespace purser::ledger
