// SPDX-License-Identifier: Apache-2.0
//
// The ledger file as the sidecar has it: opened or made, read and written by
// pread and pwrite. It is never mapped here, since any process of the pod may
// truncate it. Needs libc alone; one thread at a time.
#pragma once

#include <cstdint>

#include "ledger/image.h"
#include "ledger/purser_ledger_layout.h"

namespace purser::ledger {

inline constexpr char kFileName[] = "ledger";

// Why the file cannot be used. What is there stays as it is.
enum class FileFault : uint8_t {
  kNone,
  kOpen,          // `error`
  kNotAFile,      // a directory, a device, ...
  kForeignOwner,  // `found`: its uid
  kInUse,         // another sidecar holds it
  kNotALedger,    // other content
  kOtherVersion,  // `found`: its version
  kAllocate,      // `error`: no room for PURSER_LEDGER_BYTES
  kCreate,        // `error`
};

struct OpenOutcome {
  FileFault fault = FileFault::kNone;
  int error = 0;
  uint64_t found = 0;
  bool created = false;
  uint64_t size = 0;  // before it was made whole
  bool ok() const { return fault == FileFault::kNone; }
};

class LedgerFile {
 public:
  LedgerFile() = default;
  ~LedgerFile();
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;

  // The file kFileName in `directory`, a descriptor of its own that stays open
  // as long as this file; a new one where there is none. Its content is not
  // looked at beyond whether it is a ledger: the Adjudicator repairs it.
  OpenOutcome Open(int directory);

  // The whole file. What is missing of it is 0. An errno.
  int Read(Image& image) const;
  // `count` words from `index` on. What is missing of them is 0. An errno.
  int Read(uint32_t index, uint64_t* words, uint32_t count) const;
  int Write(uint32_t index, const uint64_t* words, uint32_t count) const;
  // After a truncation, and where it has holes. An errno, or -1: it was
  // truncated, and what was missing is 0 now.
  int MakeWhole() const;

  // EAGAIN: a living process holds the slot.
  int LockSlot(uint32_t slot) const;
  void UnlockSlot(uint32_t slot) const;

  // Whether the name in the directory is still this file.
  bool InPlace() const;

 private:
  OpenOutcome OpenExisting();
  OpenOutcome Create();

  int directory_ = -1;
  int fd_ = -1;
};

// A ledger without budget in which nothing is held.
void Format(Image& image);

}  // namespace purser::ledger
