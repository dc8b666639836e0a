// SPDX-License-Identifier: Apache-2.0
//
// Reading of sysfs attributes and directories, with errno kept in the status
// (rdma/verbs.h, ErrnoOf).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace purser::rdma {

// One attribute's text without trailing white space, at most a page.
absl::StatusOr<std::string> ReadAttribute(const std::filesystem::path& path);

// The same, "" where it cannot be read: an attribute that a device may lack, or
// that its driver cannot answer just now.
std::string OptionalAttribute(const std::filesystem::path& path);

// The number that a text begins with: "4: ACTIVE", "0x1a", "-1".
int64_t LeadingNumber(std::string_view text, int64_t otherwise);

// Names in a directory, sorted.
absl::StatusOr<std::vector<std::string>> ListDirectory(
    const std::filesystem::path& path);
// The same, none where it cannot be listed.
std::vector<std::string> OptionalDirectory(const std::filesystem::path& path);

// Last component of a link's target; "" when it is no link or is not there.
std::string LinkName(const std::filesystem::path& path);

// Whether the error means that the file is gone: never there, or its device
// unplugged while it was read.
bool IsGone(const absl::Status& status);

}  // namespace purser::rdma
