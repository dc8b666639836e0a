// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device_events.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/logging.h"
#include "base/status_macros.h"
#include "sidecar/queue_pair_events.h"

namespace purser::sidecar {
namespace {

constexpr short kBroken = POLLERR | POLLHUP | POLLNVAL;

// The queue pair that an event is about, kept alive; null for events of ports
// and devices. Valid until the event is acknowledged: destruction waits for
// that.
std::shared_ptr<QueuePairEvents> QueuePairOf(const ibv_async_event& event) {
  void* context = nullptr;
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      context = event.element.cq->cq_context;
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      context = event.element.qp->qp_context;
      break;
    default:
      return nullptr;
  }
  return static_cast<QueuePairEvents*>(context)->shared_from_this();
}

}  // namespace

DeviceEvents::DeviceEvents(rdma::Verbs& verbs, const rdma::Context& context,
                           std::string device_name,
                           std::function<void()> on_device_lost)
    : verbs_(verbs),
      context_(context),
      device_name_(std::move(device_name)),
      on_device_lost_(std::move(on_device_lost)) {}

absl::StatusOr<std::unique_ptr<DeviceEvents>> DeviceEvents::Start(
    rdma::Verbs& verbs, const rdma::Context& context, std::string device_name,
    std::function<void()> on_device_lost) {
  std::unique_ptr<DeviceEvents> events(new DeviceEvents(
      verbs, context, std::move(device_name), std::move(on_device_lost)));
  events->stop_event_ =
      base::FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!events->stop_event_.valid())
    return absl::ErrnoToStatus(errno, "eventfd");
  PURSER_ASSIGN_OR_RETURN(events->channel_,
                          rdma::CreateCompChannel(verbs, context));
  events->thread_ = std::thread([self = events.get()] { self->Run(); });
  return events;
}

DeviceEvents::~DeviceEvents() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_event_.get(), 1);
  thread_.join();
}

void DeviceEvents::Run() {
  // A negative descriptor is one that poll leaves out.
  std::array<pollfd, 3> fds = {{{stop_event_.get(), POLLIN, 0},
                                {channel_->fd, POLLIN, 0},
                                {context_->async_fd, POLLIN, 0}}};
  pollfd& completions = fds[1];
  pollfd& asynchronous = fds[2];
  while (fds[0].revents == 0) {
    if (poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) continue;
      base::LogError("device events are no longer read: poll failed",
                     {{"device", device_name_}, {"errno", errno}});
      return;
    }
    if ((completions.revents & POLLIN) != 0 && !ReadCompletionEvents())
      completions.fd = -1;
    else if ((completions.revents & kBroken) != 0)
      completions.fd = -1;
    if (((asynchronous.revents & POLLIN) != 0 && !ReadAsyncEvents()) ||
        (asynchronous.revents & kBroken) != 0) {
      asynchronous.fd = -1;
      DeviceLost("its event descriptor closed");
    }
  }
}

bool DeviceEvents::ReadCompletionEvents() {
  for (;;) {
    absl::StatusOr<ibv_cq*> cq = verbs_.GetCqEvent(channel_.get());
    if (!cq.ok()) {
      base::LogError("completion events are no longer read",
                     {{"device", device_name_}, {"status", cq.status()}});
      return false;
    }
    if (*cq == nullptr) return true;
    std::shared_ptr<QueuePairEvents> events =
        static_cast<QueuePairEvents*>((*cq)->cq_context)->shared_from_this();
    verbs_.AckCqEvents(*cq, 1);
    events->CompletionEvent();
  }
}

bool DeviceEvents::ReadAsyncEvents() {
  for (;;) {
    ibv_async_event event{};
    absl::StatusOr<bool> read = verbs_.GetAsyncEvent(context_.get(), &event);
    if (!read.ok()) {
      base::LogError("asynchronous events are no longer read",
                     {{"device", device_name_}, {"status", read.status()}});
      return false;
    }
    if (!*read) return true;
    Handle(event);
  }
}

void DeviceEvents::Handle(ibv_async_event& event) {
  const ibv_event_type type = event.event_type;
  const int port_num = event.element.port_num;
  std::shared_ptr<QueuePairEvents> queue_pair = QueuePairOf(event);
  verbs_.AckAsyncEvent(&event);
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      base::LogError("completion queue overrun: completions were lost",
                     {{"device", device_name_}});
      queue_pair->CompletionEvent();
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      queue_pair->FailureEvent();
      queue_pair->CompletionEvent();
      break;
    case IBV_EVENT_DEVICE_FATAL:
      DeviceLost("the device reported a fatal error");
      break;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
      base::LogWarn(ibv_event_type_str(type),
                    {{"device", device_name_}, {"port", port_num}});
      break;
    default:
      break;
  }
}

void DeviceEvents::DeviceLost(const std::string& why) {
  if (!on_device_lost_) return;
  base::LogError("RDMA device lost", {{"device", device_name_}, {"why", why}});
  std::exchange(on_device_lost_, nullptr)();
}

}  // namespace purser::sidecar
