// SPDX-License-Identifier: Apache-2.0
//
// The part of the Registrar that chooses the way, in RegistrationMode::kAuto.
// What works is never left. The kubelet's socket is first, since it alone
// proves that a kubelet takes registrations there (docs/adr/0006).
#include <algorithm>
#include <filesystem>

#include "base/unix_socket.h"
#include "plugin/registrar.h"

namespace purser::plugin {
namespace {

using std::chrono::steady_clock;

}  // namespace

Registrar::TimePoint Registrar::ChooseWay() {
  const TimePoint never = steady_clock::now() + options_.check_interval;
  if (options_.mode != RegistrationMode::kAuto ||
      options_.plugins_registry_dir.empty())
    return never;
  const bool works = std::any_of(
      registrations_.begin(), registrations_.end(),
      [](const auto& registration) { return registration->listened_to(); });
  if (works) {
    misgivings_since_.reset();
    return never;
  }
  const bool unknown = std::any_of(registrations_.begin(), registrations_.end(),
                                   [](const auto& registration) {
                                     return registration->unknown_to_kubelet();
                                   });
  const bool socket_answers =
      !unknown &&
      base::UnixSocketAnswers(options_.device_plugins_dir + "/kubelet.sock");
  return way() == RegistrationWay::kKubeletSocket
             ? LeaveSocketWay(socket_answers, unknown)
             : LeaveRegistryWay(socket_answers);
}

Registrar::TimePoint Registrar::LeaveSocketWay(bool socket_answers,
                                               bool unknown) {
  const TimePoint now = steady_clock::now();
  std::error_code ignored;
  socket_answered_ = socket_answered_ || socket_answers;
  if (socket_answers ||
      !std::filesystem::is_directory(options_.plugins_registry_dir, ignored)) {
    misgivings_since_.reset();
    return now + options_.check_interval;
  }
  if (!misgivings_since_) misgivings_since_ = now;
  const bool known = socket_answered_ && !unknown;
  const TimePoint due =
      *misgivings_since_ +
      (known ? options_.known_socket_patience : options_.socket_patience);
  if (now < due) return due;
  Take(RegistrationWay::kPluginsRegistry,
       "the kubelet's socket does not answer; its plugins_registry is there");
  return now;
}

Registrar::TimePoint Registrar::LeaveRegistryWay(bool socket_answers) {
  const TimePoint now = steady_clock::now();
  if (!socket_answers) {
    misgivings_since_.reset();
    return now + options_.check_interval;
  }
  if (!misgivings_since_) misgivings_since_ = now;
  TimePoint since = *misgivings_since_;
  for (const auto& registration : registrations_)
    since = std::max(since, registration->heard_at().value_or(since));
  const TimePoint due = since + options_.registry_patience;
  if (now < due) return due;
  Take(RegistrationWay::kKubeletSocket,
       "the kubelet does not register from its plugins_registry; its socket "
       "answers");
  return now;
}

}  // namespace purser::plugin
