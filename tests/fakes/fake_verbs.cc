// SPDX-License-Identifier: Apache-2.0
//
// The verbs fake's control path.
#include "tests/fakes/fake_verbs.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "spdlog/fmt/fmt.h"
#include "tests/fakes/fake_verbs_state.h"

namespace purser::fakes {

void Die(const std::string& message) {
  std::fprintf(stderr, "FakeVerbs: %s\n", message.c_str());
  std::abort();
}

// ---- EventFd ----

EventFd::EventFd()
    : fd_(eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0) Die("eventfd failed");
}
EventFd::~EventFd() { Close(); }
void EventFd::Add() {
  if (eventfd_write(fd_, 1) != 0) Die("eventfd_write failed");
}
void EventFd::Take() {
  eventfd_t one;
  if (eventfd_read(fd_, &one) != 0) Die("eventfd_read failed");
}
void EventFd::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

// ---- State and Call ----

namespace {

constexpr std::array kCalls = {"get_device_list",
                               "open_device",
                               "close_device",
                               "query_device",
                               "query_port",
                               "query_gid",
                               "alloc_pd",
                               "dealloc_pd",
                               "create_comp_channel",
                               "destroy_comp_channel",
                               "create_cq",
                               "destroy_cq",
                               "resize_cq",
                               "create_srq",
                               "destroy_srq",
                               "reg_mr",
                               "dereg_mr",
                               "create_qp",
                               "modify_qp",
                               "query_qp",
                               "destroy_qp",
                               "get_cq_event",
                               "get_async_event",
                               "post_send",
                               "post_recv",
                               "post_srq_recv",
                               "poll_cq",
                               "req_notify_cq"};

}  // namespace

CallState& FakeVerbs::State::CallNamed(std::string_view call) {
  const auto found = calls.find(call);
  if (found == calls.end())
    Die(fmt::format("no call of the verbs seam is named \"{}\"", call));
  return found->second;
}

DeviceState& FakeVerbs::State::Device(const std::string& name) {
  const auto found = devices.find(name);
  if (found == devices.end()) Die("no device " + name);
  return *found->second;
}

bool FakeVerbs::State::IsBeingRemoved(const std::string& name) const {
  return std::any_of(objects.begin(), objects.end(), [&](const auto& object) {
    const auto* context = dynamic_cast<const FakeContext*>(object.get());
    return context != nullptr && context->alive &&
           context->device_state->device.name == name &&
           std::find(removed.begin(), removed.end(), context->device_state) !=
               removed.end();
  });
}

void FakeVerbs::State::Retire(Tracked& object) {
  object.alive = false;
  if (object.fake_context != nullptr) {
    --object.fake_context->children;
    --object.fake_context->device_state->objects[object.kind];
  }
}

Call::Call(FakeVerbs::State& state, const char* name)
    : fabric_(*state.fabric), lock_(fabric_.mutex) {
  if (const auto observer = state.observer; observer != nullptr) {
    lock_.unlock();
    (*observer)(name);
    lock_.lock();
  }
  CallState& call = state.CallNamed(name);
  ++call.calls;
  injected_ = call.always;
  if (injected_ != 0 || call.failures.empty()) return;
  if (call.failures.front().successes-- > 0) return;
  injected_ = call.failures.front().error_number;
  call.failures.pop_front();
}

void Call::AwaitAcknowledged(const Tracked& object, const char* what) {
  if (!fabric_.changed.wait_for(lock_, std::chrono::seconds(10),
                                [&] { return object.unacknowledged == 0; }))
    Die(
        fmt::format("{}: {} events were read and never acknowledged; "
                    "libibverbs would wait for ever",
                    what, object.unacknowledged));
}

std::shared_ptr<VerbsFabric> NewFabric() {
  return std::make_shared<VerbsFabric>();
}

FakeVerbs::FakeVerbs(std::shared_ptr<VerbsFabric> fabric)
    : state_(std::make_unique<State>()) {
  state_->fabric = std::move(fabric);
  for (const char* call : kCalls) state_->calls[call];
}

FakeVerbs::~FakeVerbs() {
  std::lock_guard lock(state_->fabric->mutex);
  const auto mine = [&](const auto& entry) {
    return entry.second->owner == state_.get();
  };
  std::erase_if(state_->fabric->queue_pairs, mine);
  std::erase_if(state_->fabric->pending, mine);
  std::erase_if(state_->fabric->regions, mine);
}

// ---- Devices ----

void FakeVerbs::AddDevice(FakeDevice device) {
  std::lock_guard lock(state_->fabric->mutex);
  auto added = std::make_shared<DeviceState>();
  added->device = std::move(device);
  const std::string& name = added->device.name;
  if (state_->devices.contains(name)) Die("device added twice: " + name);
  if (state_->IsBeingRemoved(name))
    Die("device added while its removal waits for users: " + name);
  added->verbs_device.node_type = IBV_NODE_CA;
  added->verbs_device.transport_type = IBV_TRANSPORT_IB;
  name.copy(added->verbs_device.name, IBV_SYSFS_NAME_MAX - 1);
  fmt::format("uverbs{}", state_->devices.size())
      .copy(added->verbs_device.dev_name, IBV_SYSFS_NAME_MAX - 1);
  state_->devices[name] = added;
}

void FakeVerbs::RemoveDevice(const std::string& name, Removal removal) {
  if (removal == Removal::kDisassociate)
    RaiseAsyncEvent(name, IBV_EVENT_DEVICE_FATAL);
  std::lock_guard lock(state_->fabric->mutex);
  state_->Device(name).disassociated = removal == Removal::kDisassociate;
  state_->removed.push_back(std::move(state_->devices.extract(name).mapped()));
}

bool FakeVerbs::AwaitRemoval(const std::string& name) {
  std::unique_lock lock(state_->fabric->mutex);
  return state_->fabric->changed.wait_for(lock, std::chrono::seconds(10), [&] {
    return !state_->IsBeingRemoved(name);
  });
}

void FakeVerbs::SetPortState(const std::string& device, uint8_t port_num,
                             ibv_port_state port_state) {
  bool was_active;
  {
    std::lock_guard lock(state_->fabric->mutex);
    ibv_port_attr& attr =
        state_->Device(device).device.ports.at(port_num - 1u).attr;
    was_active = attr.state == IBV_PORT_ACTIVE;
    attr.state = port_state;
    attr.phys_state = port_state == IBV_PORT_ACTIVE ? 5 : 3;
  }
  if (was_active != (port_state == IBV_PORT_ACTIVE))
    RaiseAsyncEvent(device,
                    was_active ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE,
                    port_num);
}

void FakeVerbs::SetGid(const std::string& device, uint8_t port_num,
                       int gid_index, const ibv_gid& gid) {
  std::lock_guard lock(state_->fabric->mutex);
  state_->Device(device)
      .device.ports.at(port_num - 1u)
      .gids.at(static_cast<size_t>(gid_index)) = gid;
}

// ---- Faults and observation ----

void FakeVerbs::FailNext(std::string_view call, int error_number) {
  FailAfter(call, 0, error_number);
}

void FakeVerbs::FailAfter(std::string_view call, int successes,
                          int error_number) {
  std::lock_guard lock(state_->fabric->mutex);
  state_->CallNamed(call).failures.push_back({successes, error_number});
}

void FakeVerbs::FailAlways(std::string_view call, int error_number) {
  std::lock_guard lock(state_->fabric->mutex);
  state_->CallNamed(call).always = error_number;
}

void FakeVerbs::StopFailing(std::string_view call) {
  std::lock_guard lock(state_->fabric->mutex);
  state_->CallNamed(call).always = 0;
  state_->CallNamed(call).failures.clear();
}

void FakeVerbs::Observe(std::function<void(std::string_view)> observer) {
  std::lock_guard lock(state_->fabric->mutex);
  state_->observer =
      observer ? std::make_shared<std::function<void(std::string_view)>>(
                     std::move(observer))
               : nullptr;
}

uint64_t FakeVerbs::Calls(std::string_view call) const {
  std::lock_guard lock(state_->fabric->mutex);
  return state_->CallNamed(call).calls;
}

std::map<std::string, int> FakeVerbs::LiveObjects() const {
  std::lock_guard lock(state_->fabric->mutex);
  std::map<std::string, int> live;
  for (const auto& object : state_->objects)
    if (object->alive) ++live[object->kind];
  return live;
}

int FakeVerbs::LiveObjectCount() const {
  int count = 0;
  for (const auto& [kind, live] : LiveObjects()) count += live;
  return count;
}

// ---- Events ----

void FakeVerbs::RaiseAsyncEvent(const std::string& device, ibv_event_type type,
                                int port_num) {
  std::lock_guard lock(state_->fabric->mutex);
  const DeviceState& raising = state_->Device(device);
  for (const auto& object : state_->objects) {
    auto* context = dynamic_cast<FakeContext*>(object.get());
    if (context == nullptr || !context->alive ||
        context->device_state.get() != &raising)
      continue;
    ibv_async_event event{};
    event.event_type = type;
    event.element.port_num = port_num;
    PushAsyncEvent(*context, event);
  }
}

void FakeVerbs::RaiseQpEvent(ibv_qp* qp, ibv_event_type type) {
  std::lock_guard lock(state_->fabric->mutex);
  FakeQp& fake = Live<FakeQp>(*state_, qp, "RaiseQpEvent");
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = qp;
  PushAsyncEvent(*fake.fake_context, event);
}

void FakeVerbs::RaiseCqEvent(ibv_cq* cq, ibv_event_type type) {
  std::lock_guard lock(state_->fabric->mutex);
  FakeCq& fake = Live<FakeCq>(*state_, cq, "RaiseCqEvent");
  ibv_async_event event{};
  event.event_type = type;
  event.element.cq = cq;
  PushAsyncEvent(*fake.fake_context, event);
}

void FakeVerbs::BreakQp(ibv_qp* qp) {
  {
    std::lock_guard lock(state_->fabric->mutex);
    FakeQp& fake = Live<FakeQp>(*state_, qp, "BreakQp");
    fake.device_state = IBV_QPS_ERR;
    Flush(*state_->fabric, fake);
  }
  RaiseQpEvent(qp, IBV_EVENT_QP_FATAL);
}

void FakeVerbs::HoldWire() {
  std::lock_guard lock(state_->fabric->mutex);
  state_->fabric->held = true;
}

bool FakeVerbs::Step() {
  std::lock_guard lock(state_->fabric->mutex);
  const auto pending = state_->fabric->pending;
  return std::any_of(pending.begin(), pending.end(), [&](const auto& entry) {
    return CarryOne(*state_->fabric, *entry.second);
  });
}

void FakeVerbs::ReleaseWire() {
  std::lock_guard lock(state_->fabric->mutex);
  state_->fabric->held = false;
  CarryAll(*state_->fabric);
}

}  // namespace purser::fakes
