// SPDX-License-Identifier: Apache-2.0
#include "plugin/registration.h"

#include <algorithm>
#include <utility>

#include "base/logging.h"
#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kCloseDeadline{500};

}  // namespace

Registration::Registration(const RegistrationOptions& options,
                           std::shared_ptr<ResourceServer> server,
                           KubeletClient& client)
    : options_(options),
      owned_(std::move(server)),
      server_(*owned_),
      client_(client),
      peers_(server_.resource_name(), server_.identity()),
      bind_retry_(options.first_retry),
      retry_(options.first_retry) {
  state_.resource = server_.resource_name();
  state_.readiness = absl::UnavailableError("starting");
}

Registration::State Registration::state() const {
  const RegistrationService::State announced = server_.registration().state();
  std::lock_guard lock(mutex_);
  State state = state_;
  state.registered += announced.registered;
  state.failed += announced.failed;
  return state;
}

std::optional<Registration::TimePoint> Registration::heard_at() const {
  if (server_.streams().presence().open) return steady_clock::now();
  const RegistrationService::State state = server_.registration().state();
  if (state.outcome && !state.outcome->ok()) return std::nullopt;
  return state.heard_at;
}

Registration::TimePoint Registration::Reconcile(const World& world) {
  foreign_ = CheckPeers(world);
  const TimePoint again = Keep(world);
  return std::min(again, peers_.decides_at().value_or(again));
}

Registration::TimePoint Registration::Keep(const World& world) {
  if (world.way == RegistrationWay::kPluginsRegistry)
    return KeepAnnounced(world);
  const TimePoint again = KeepSocket(world);
  if (!server_.socket_id()) return again;
  if (world.kubelet_socket) return std::min(again, KeepRegistered(world));
  NotReady(world.why_not);
  return again;
}

absl::Status Registration::CheckPeers(const World& world) {
  return peers_.Look(world.others, steady_clock::now());
}

absl::Status Registration::Bind(const World& world) {
  registered_.reset();
  answer_lost_ = endpoint_spent_ = false;
  PURSER_RETURN_IF_ERROR(server_.Bind(world.directory, world.way));
  bound_at_ = steady_clock::now();
  registered_wall_ = std::chrono::system_clock::now();
  return absl::OkStatus();
}

void Registration::Release() {
  server_.Stop(std::chrono::system_clock::now() + kCloseDeadline);
  registered_.reset();
  kubelet_socket_.reset();
  next_bind_ = TimePoint();
  unheard_ = 0;
}

// When to look at the socket again; it is served if socket_id() is there.
Registration::TimePoint Registration::KeepSocket(const World& world) {
  const TimePoint now = steady_clock::now();
  const absl::StatusOr<bool> intact = server_.SocketIntact();
  if (intact.ok() && *intact) return now + options_.check_interval;
  if (now < next_bind_) return next_bind_;
  const absl::Status status = !intact.ok()     ? intact.status()
                              : !foreign_.ok() ? foreign_
                                               : Bind(world);
  if (status.ok()) {
    bind_retry_ = options_.first_retry;
    next_attempt_ = now;
    return now + options_.check_interval;
  }
  if (SetReadiness(status)) {
    base::LogError("cannot serve a resource; trying again",
                   {{"resource", server_.resource_name()}, {"error", status}});
  }
  next_bind_ = After(bind_retry_);
  return next_bind_;
}

Registration::TimePoint Registration::KeepRegistered(const World& world) {
  const TimePoint now = steady_clock::now();
  if (!server_.streams().advertisement()) {
    NotReady(
        absl::UnavailableError("the node's RDMA devices are not known yet"));
    return now + options_.check_interval;
  }
  const Incarnations incarnations{*world.kubelet_socket, *server_.socket_id()};
  // An answer that came too late was an answer, if the kubelet listens now.
  if (answer_lost_ && attempted_ == incarnations &&
      server_.streams().presence().open)
    registered_ = incarnations;
  if (registered_ == incarnations) {
    const std::optional<TimePoint> due =
        StreamDue(registered_at_, options_.lost_stream_timeout);
    if (!due) {
      if (const auto again = Listened(world)) return *again;
    } else {
      NotReady(absl::UnavailableError(
          "registered, but the kubelet has no ListAndWatch open"));
      if (now < *due) return *due;
      LogUnheard();
    }
    registered_.reset();
    next_attempt_ = now;
  }
  if (kubelet_socket_ != world.kubelet_socket) {
    kubelet_socket_ = world.kubelet_socket;
    retry_ = options_.first_retry;
    next_attempt_ = now;
  }
  if (now < next_attempt_) return next_attempt_;
  if (StandsBy()) return now + options_.check_interval;
  // A fault of binding is met, and told, at the next look.
  if (endpoint_spent_ && !Bind(world).ok()) return now;
  return Register(world);
}

Registration::TimePoint Registration::KeepAnnounced(const World& world) {
  const TimePoint now = steady_clock::now();
  // The kubelet calls a socket as soon as it is there.
  if (!server_.streams().advertisement()) {
    NotReady(
        absl::UnavailableError("the node's RDMA devices are not known yet"));
    return now + options_.check_interval;
  }
  const TimePoint again = KeepSocket(world);
  if (!server_.socket_id()) return again;
  const RegistrationService::State asked = server_.registration().state();
  // It looks once a second: no shorter patience for a stream that was lost.
  const std::optional<TimePoint> due =
      StreamDue(asked.heard_at.value_or(bound_at_), options_.stream_timeout);
  if (!due) {
    if (const auto listened = Listened(world)) return *listened;
    return Bind(world).ok() ? bound_at_ + options_.stream_timeout : now;
  }
  if (asked.outcome && !asked.outcome->ok()) {
    NotReady(*asked.outcome);
  } else if (asked.heard_at) {
    NotReady(absl::UnavailableError(
        "the kubelet found it, but has no ListAndWatch open"));
  } else {
    NotReady(absl::UnavailableError(fmt::format(
        "the kubelet has not called {} in {} yet; does it take device plugins "
        "from there?",
        server_.endpoint().text(), world.directory)));
  }
  if (now < *due) return std::min(again, *due);
  if (StandsBy()) return now + options_.check_interval;
  LogUnheard();
  if (!Bind(world).ok()) return now;
  return bound_at_ + options_.stream_timeout;
}

std::optional<Registration::TimePoint> Registration::StreamDue(
    TimePoint registered_at, milliseconds patience_if_lost) const {
  const ListStreams::Presence presence = server_.streams().presence();
  if (presence.open) return std::nullopt;
  const bool lost = presence.since > registered_at;
  const milliseconds patience =
      lost ? patience_if_lost : options_.stream_timeout;
  // Shifted no further than a long time-out needs.
  return std::max(presence.since, registered_at) +
         std::min(patience * (1 << std::min(unheard_, 16)),
                  options_.longest_stream_timeout);
}

std::optional<Registration::TimePoint> Registration::Listened(
    const World& world) {
  if (peers_.LaterOneWent(registered_wall_, steady_clock::now())) {
    base::LogInfo(
        "another process that served the resource went: registering again, "
        "since the kubelet may take that for the end of both",
        {{"resource", server_.resource_name()}});
    return std::nullopt;
  }
  if (SetReadiness(absl::OkStatus())) {
    base::LogInfo("ready: the kubelet listens",
                  {{"resource", server_.resource_name()},
                   {"registration", RegistrationWayName(world.way)}});
  }
  const TimePoint now = steady_clock::now();
  if (unheard_ == 0) return now + options_.check_interval;
  const TimePoint lasts =
      server_.streams().presence().since + options_.lasting_stream;
  if (now >= lasts) unheard_ = 0;
  return std::max(now, lasts) + options_.check_interval;
}

void Registration::LogUnheard() {
  ++unheard_;
  base::LogWarn("the kubelet has no ListAndWatch open: registering again",
                {{"resource", server_.resource_name()}, {"times", unheard_}});
}

bool Registration::StandsBy() {
  const EndpointName* newer = peers_.Newer();
  if (newer == nullptr) {
    standby_since_.reset();
    return false;
  }
  const TimePoint now = steady_clock::now();
  if (!standby_since_) {
    standby_since_ = now;
    base::LogInfo(
        "standing by: a newer process serves the resource",
        {{"resource", server_.resource_name()}, {"newer", newer->text()}});
  }
  NotReady(absl::FailedPreconditionError(fmt::format(
      "standing by: a newer process of this installation serves {} ({})",
      server_.resource_name(), newer->text())));
  // It may serve and yet not be able to register.
  return now < *standby_since_ + options_.longest_stream_timeout;
}

Registration::TimePoint Registration::Register(const World& world) {
  attempted_ = Incarnations{*world.kubelet_socket, *server_.socket_id()};
  const absl::Status status =
      client_.Register(server_.resource_name(), server_.endpoint().text(),
                       options_.register_deadline);
  // Where the kubelet restarted since `world` was looked at, the one of now
  // answered. Had it been the one before, the loss of its stream would tell.
  const auto answered_by = client_.Incarnation();
  if (answered_by.ok() && answered_by->has_value())
    attempted_->kubelet_socket = **answered_by;
  {
    std::lock_guard lock(mutex_);
    ++(status.ok() ? state_.registered : state_.failed);
  }
  endpoint_spent_ = !absl::IsUnavailable(status) && !absl::IsCancelled(status);
  answer_lost_ = absl::IsDeadlineExceeded(status);
  unknown_to_kubelet_ = absl::IsUnimplemented(status);
  if (!status.ok()) {
    if (!absl::IsCancelled(status) && SetReadiness(status)) {
      base::LogWarn("the kubelet did not take the registration; trying again",
                    {{"resource", server_.resource_name()}, {"error", status}});
    }
    next_attempt_ = After(retry_);
    return next_attempt_;
  }
  registered_ = attempted_;
  registered_at_ = steady_clock::now();
  registered_wall_ = std::chrono::system_clock::now();
  retry_ = options_.first_retry;
  standby_since_.reset();
  base::LogInfo("registered with the kubelet",
                {{"resource", server_.resource_name()}});
  // Looked at again at once: the stream may be open already.
  return registered_at_;
}

Registration::TimePoint Registration::After(milliseconds& retry) const {
  const TimePoint then = steady_clock::now() + retry;
  retry = std::min(retry * 2, options_.longest_retry);
  return then;
}

void Registration::NotReady(const absl::Status& why) { SetReadiness(why); }

bool Registration::SetReadiness(const absl::Status& status) {
  std::lock_guard lock(mutex_);
  if (state_.readiness == status) return false;
  state_.readiness = status;
  return true;
}

}  // namespace purser::plugin
