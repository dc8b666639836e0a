// SPDX-License-Identifier: Apache-2.0
//
// A range of a file in the shared volume, mapped shared. Clients write there
// and may truncate the file at any time, upon which a touch of the mapping is
// SIGBUS: so this process never reads or writes through it, it only has the
// device register it (registered pages stay, whatever becomes of the file).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace purser::sidecar {

class FileMapping {
 public:
  // `volume`: a descriptor of the shared volume's directory. `path` is relative
  // to it and never leaves it, whatever the client makes of the directories
  // meanwhile (openat2). InvalidArgument, NotFound, OutOfRange (the file is
  // shorter), FailedPrecondition (it has holes), each with what was asked.
  static absl::StatusOr<FileMapping> Map(const base::FileDescriptor& volume,
                                         const std::string& path,
                                         uint64_t offset, uint64_t length);
  FileMapping(FileMapping&& other) noexcept;
  FileMapping& operator=(FileMapping&& other) noexcept;
  ~FileMapping();

  void* address() const { return address_; }
  uint64_t length() const { return length_; }

 private:
  FileMapping(void* address, uint64_t length)
      : address_(address), length_(length) {}
  void* address_ = nullptr;
  uint64_t length_ = 0;
};

}  // namespace purser::sidecar
