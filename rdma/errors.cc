// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <charconv>
#include <cstring>

#include "absl/strings/cord.h"
#include "rdma/verbs.h"
#include "spdlog/fmt/fmt.h"

namespace purser::rdma {
namespace {

// Several errnos share one status code (ENOMEM and ENOSPC are both
// ResourceExhausted), so the number travels with the status.
constexpr char kErrnoPayload[] = "purser.dev/errno";

}  // namespace

absl::Status StatusOf(int error_number, std::string_view what) {
  if (error_number == 0) return absl::OkStatus();
  absl::Status status = absl::ErrnoToStatus(
      error_number, fmt::format("{}: {}", what, ErrnoName(error_number)));
  status.SetPayload(kErrnoPayload, absl::Cord(std::to_string(error_number)));
  return status;
}

int ErrnoOf(const absl::Status& status) {
  if (status.ok()) return 0;
  const auto payload = status.GetPayload(kErrnoPayload);
  if (!payload.has_value()) return EIO;
  const std::string text(*payload);
  int number = EIO;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string ErrnoName(int error_number) {
  const char* name = strerrorname_np(error_number);
  return name != nullptr ? name : fmt::format("errno {}", error_number);
}

}  // namespace purser::rdma
