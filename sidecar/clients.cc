// SPDX-License-Identifier: Apache-2.0
#include "sidecar/clients.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr size_t kMaxNameLength = 63;

absl::StatusOr<std::string> RandomToken() {
  std::array<uint64_t, 2> bits{};
  // Up to 256 bytes come whole, or not at all (man getrandom).
  ssize_t got;
  do {
    got = getrandom(bits.data(), sizeof(bits), 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof(bits)) return absl::ErrnoToStatus(errno, "getrandom");
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

}  // namespace

absl::StatusOr<std::string> Clients::Add(const std::string& name) {
  if (name.size() > kMaxNameLength ||
      !std::all_of(name.begin(), name.end(),
                   [](char c) { return c >= 0x20 && c < 0x7f; }))
    return absl::InvalidArgumentError(
        fmt::format("name: at most {} printable ASCII characters; {} bytes "
                    "were given",
                    kMaxNameLength, name.size()));
  PURSER_ASSIGN_OR_RETURN(std::string client_id, RandomToken());
  std::lock_guard lock(mutex_);
  if (attached_.size() >= max_clients_)
    return absl::ResourceExhaustedError(fmt::format(
        "{} clients are attached, and maxClients is {}: end one, or raise "
        "maxClients in the sidecar's configuration",
        attached_.size(), max_clients_));
  attached_.emplace(client_id,
                    Attached{.name = name,
                             .since = std::chrono::steady_clock::now(),
                             .traffic = std::make_shared<Traffic>()});
  return client_id;
}

void Clients::Remove(const std::string& client_id) {
  std::lock_guard lock(mutex_);
  attached_.erase(client_id);
}

absl::StatusOr<std::string> Clients::NameOf(
    const std::string& client_id) const {
  std::lock_guard lock(mutex_);
  if (auto found = attached_.find(client_id); found != attached_.end())
    return found->second.name;
  return absl::UnauthenticatedError(
      client_id.empty()
          ? "client_id is missing: open an Attach stream, its first event "
            "brings one"
          : "client_id is not one of a live Attach stream: the stream has "
            "ended, or the sidecar was restarted; attach again");
}

bool Clients::IsLive(const std::string& client_id) const {
  std::lock_guard lock(mutex_);
  return attached_.contains(client_id);
}

std::shared_ptr<Traffic> Clients::TrafficOf(
    const std::string& client_id) const {
  std::lock_guard lock(mutex_);
  const auto found = attached_.find(client_id);
  return found == attached_.end() ? nullptr : found->second.traffic;
}

std::map<std::string, Clients::Attached> Clients::All() const {
  std::lock_guard lock(mutex_);
  return attached_;
}

uint64_t Clients::count() const {
  std::lock_guard lock(mutex_);
  return attached_.size();
}

}  // namespace purser::sidecar
