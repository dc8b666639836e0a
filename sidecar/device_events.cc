// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device_events.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "base/logging.h"
#include "sidecar/brokered_completion_queue.h"
#include "sidecar/queue_pair_events.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

constexpr short kBroken = POLLERR | POLLHUP | POLLNVAL;

std::shared_ptr<BrokeredCompletionQueue> QueueOf(const ibv_cq& cq) {
  return static_cast<BrokeredCompletionQueue*>(cq.cq_context)
      ->shared_from_this();
}

// What an event is about, kept alive; null for events of ports and devices.
// Valid until the event is acknowledged: destruction waits for that.
struct Subject {
  std::shared_ptr<QueuePairEvents> queue_pair;
  std::shared_ptr<BrokeredCompletionQueue> completion_queue;
};
Subject SubjectOf(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return {.completion_queue = QueueOf(*event.element.cq)};
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return {.queue_pair =
                  static_cast<QueuePairEvents*>(event.element.qp->qp_context)
                      ->shared_from_this()};
    default:
      return {};
  }
}

}  // namespace

DeviceEvents::DeviceEvents(OpenedDevice& device, int stop_fd,
                           std::chrono::milliseconds look_every)
    : device_(device), stop_fd_(stop_fd), look_every_(look_every) {}

std::optional<std::string> DeviceEvents::ReadUntilLost() {
  // A negative descriptor is one that poll leaves out.
  std::array<pollfd, 3> fds = {{{stop_fd_, POLLIN, 0},
                                {device_.channel()->fd, POLLIN, 0},
                                {device_.context()->async_fd, POLLIN, 0}}};
  pollfd& completions = fds[1];
  const pollfd& asynchronous = fds[2];
  while (fds[0].revents == 0) {
    if (!IsThere()) return fmt::format("device {} was removed", device_.name());
    if (poll(fds.data(), fds.size(), UntilNextLook()) < 0) {
      if (errno == EINTR) continue;
      base::LogError("device events are no longer read: poll failed",
                     {{"device", device_.name()}, {"errno", errno}});
      return std::nullopt;
    }
    if ((completions.revents & POLLIN) != 0 && !ReadCompletionEvents())
      completions.fd = -1;
    else if ((completions.revents & kBroken) != 0)
      completions.fd = -1;
    if (((asynchronous.revents & POLLIN) != 0 && !ReadAsyncEvents()) ||
        (asynchronous.revents & kBroken) != 0)
      return fmt::format("device {} gives no events any more", device_.name());
    if (fatal_)
      return fmt::format("device {} reported a fatal error", device_.name());
  }
  return std::nullopt;
}

// However many events come, sysfs is looked at this often and not more.
bool DeviceEvents::IsThere() {
  if (!device_.uverbs().has_value() || Clock::now() < next_look_) return true;
  next_look_ = Clock::now() + look_every_;
  return rdma::IsThere(*device_.uverbs());
}

int DeviceEvents::UntilNextLook() const {
  if (!device_.uverbs().has_value()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(next_look_ - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

bool DeviceEvents::ReadCompletionEvents() {
  for (;;) {
    absl::StatusOr<ibv_cq*> cq =
        device_.verbs().GetCqEvent(device_.channel().get());
    if (!cq.ok()) {
      base::LogError("completion events are no longer read",
                     {{"device", device_.name()}, {"status", cq.status()}});
      return false;
    }
    if (*cq == nullptr) return true;
    const std::shared_ptr<BrokeredCompletionQueue> queue = QueueOf(**cq);
    device_.verbs().AckCqEvents(*cq, 1);
    queue->CompletionEvent();
  }
}

bool DeviceEvents::ReadAsyncEvents() {
  for (;;) {
    ibv_async_event event{};
    absl::StatusOr<bool> read =
        device_.verbs().GetAsyncEvent(device_.context().get(), &event);
    if (!read.ok()) {
      base::LogError("asynchronous events are no longer read",
                     {{"device", device_.name()}, {"status", read.status()}});
      return false;
    }
    if (!*read) return true;
    Handle(event);
  }
}

void DeviceEvents::Handle(ibv_async_event& event) {
  const ibv_event_type type = event.event_type;
  const int port_num = event.element.port_num;
  const auto [queue_pair, completion_queue] = SubjectOf(event);
  device_.verbs().AckAsyncEvent(&event);
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      base::LogError("completion queue overrun: completions were lost",
                     {{"device", device_.name()}});
      completion_queue->Overran();
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      queue_pair->FailureEvent();
      queue_pair->CompletionEvent();
      break;
    case IBV_EVENT_DEVICE_FATAL:
      fatal_ = true;
      break;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
      base::LogWarn(ibv_event_type_str(type),
                    {{"device", device_.name()}, {"port", port_num}});
      break;
    default:
      break;
  }
}

}  // namespace purser::sidecar
