// SPDX-License-Identifier: Apache-2.0
//
// The verbs fake's devices, contexts, protection domains and memory regions.
#include <algorithm>
#include <cerrno>

#include "spdlog/fmt/fmt.h"
#include "tests/fakes/fake_verbs_state.h"

namespace purser::fakes {

using rdma::StatusOf;

namespace {

bool IsQpEvent(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return true;
    default:
      return false;
  }
}

}  // namespace

Tracked* ObjectOf(const ibv_async_event& event) {
  if (event.event_type == IBV_EVENT_CQ_ERR)
    return static_cast<FakeCq*>(event.element.cq);
  if (IsQpEvent(event.event_type))
    return static_cast<FakeQp*>(event.element.qp);
  return nullptr;
}

std::string What(const char* call, const FakeContext& context) {
  return fmt::format("{} {}", call, context.device_state->device.name);
}

int ContextError(const Call& call, const FakeContext& context) {
  if (call.injected() != 0) return call.injected();
  return context.device_state->disassociated ? EIO : 0;
}

int DestroyError(const Call& call, const Tracked& object) {
  if (call.injected() != 0) return call.injected();
  return object.children > 0 ? EBUSY : 0;
}

int TooMany(const FakeContext& context, const char* kind, int limit) {
  const auto& objects = context.device_state->objects;
  const auto found = objects.find(kind);
  const int live = found == objects.end() ? 0 : found->second;
  return live >= limit ? context.device_state->device.too_many_errno : 0;
}

void DropAsyncEvents(Tracked& object) {
  FakeContext& context = *object.fake_context;
  const size_t dropped = std::erase_if(
      context.events,
      [&](const ibv_async_event& event) { return ObjectOf(event) == &object; });
  for (size_t i = 0; i < dropped; ++i) context.async.Take();
}

// ---- Devices and contexts ----

absl::StatusOr<std::vector<std::string>> FakeVerbs::DeviceNames() {
  Call call(*state_, "get_device_list");
  if (call.injected() != 0)
    return StatusOf(call.injected(), "ibv_get_device_list");
  std::vector<std::string> names;
  for (const auto& [name, device] : state_->devices) names.push_back(name);
  return names;
}

absl::StatusOr<ibv_context*> FakeVerbs::OpenDevice(const std::string& name) {
  Call call(*state_, "open_device");
  if (call.injected() != 0)
    return StatusOf(call.injected(), "ibv_open_device " + name);
  const auto found = state_->devices.find(name);
  if (found == state_->devices.end()) {
    std::string names;
    for (const auto& [other, device] : state_->devices) names += " " + other;
    return absl::NotFoundError(
        fmt::format("no RDMA device {}; there are:{}", name, names));
  }
  auto* context = state_->Add<FakeContext>("context", nullptr);
  context->device_state = found->second;
  context->device = &found->second->verbs_device;
  context->ops = DataPathOps();
  context->async_fd = context->async.fd();
  context->cmd_fd = -1;
  context->num_comp_vectors = 1;
  return context;
}

absl::Status FakeVerbs::CloseDevice(ibv_context* context) {
  Call call(*state_, "close_device");
  auto& fake = Live<FakeContext>(*state_, context, "ibv_close_device");
  if (const int error = DestroyError(call, fake); error != 0)
    return StatusOf(error, What("ibv_close_device", fake));
  fake.async.Close();
  state_->Retire(fake);
  state_->fabric->changed.notify_all();
  return absl::OkStatus();
}

absl::StatusOr<ibv_device_attr> FakeVerbs::QueryDevice(ibv_context* context) {
  Call call(*state_, "query_device");
  auto& fake = Live<FakeContext>(*state_, context, "ibv_query_device");
  if (const int error = ContextError(call, fake); error != 0)
    return StatusOf(error, What("ibv_query_device", fake));
  return fake.device_state->device.attr;
}

absl::StatusOr<ibv_port_attr> FakeVerbs::QueryPort(ibv_context* context,
                                                   uint8_t port_num) {
  Call call(*state_, "query_port");
  auto& fake = Live<FakeContext>(*state_, context, "ibv_query_port");
  int error = ContextError(call, fake);
  const auto& ports = fake.device_state->device.ports;
  if (error == 0 && (port_num < 1 || port_num > ports.size())) error = EINVAL;
  if (error != 0)
    return StatusOf(error, fmt::format("{} port {}",
                                       What("ibv_query_port", fake), port_num));
  return ports[port_num - 1u].attr;
}

absl::StatusOr<ibv_gid> FakeVerbs::QueryGid(ibv_context* context,
                                            uint8_t port_num, int gid_index) {
  Call call(*state_, "query_gid");
  auto& fake = Live<FakeContext>(*state_, context, "ibv_query_gid");
  int error = ContextError(call, fake);
  const auto& ports = fake.device_state->device.ports;
  if (error == 0 && (port_num < 1 || port_num > ports.size() || gid_index < 0 ||
                     gid_index >= ports[port_num - 1u].attr.gid_tbl_len))
    error = EINVAL;
  if (error != 0)
    return StatusOf(
        error, fmt::format("{} port {} index {}", What("ibv_query_gid", fake),
                           port_num, gid_index));
  const auto& gids = ports[port_num - 1u].gids;
  const auto index = static_cast<size_t>(gid_index);
  return index < gids.size() ? gids[index] : ibv_gid{};
}

absl::StatusOr<bool> FakeVerbs::GetAsyncEvent(ibv_context* context,
                                              ibv_async_event* event) {
  Call call(*state_, "get_async_event");
  auto& fake = Live<FakeContext>(*state_, context, "ibv_get_async_event");
  if (call.injected() != 0)
    return StatusOf(call.injected(), What("ibv_get_async_event", fake));
  if (fake.events.empty()) return false;
  *event = fake.events.front();
  fake.events.pop_front();
  fake.async.Take();
  if (Tracked* object = ObjectOf(*event)) ++object->unacknowledged;
  return true;
}

void FakeVerbs::AckAsyncEvent(ibv_async_event* event) {
  std::lock_guard lock(state_->fabric->mutex);
  Tracked* object = ObjectOf(*event);
  if (object == nullptr) return;
  if (object->unacknowledged-- <= 0)
    Die("an event of a " + object->kind + " was acknowledged twice");
  state_->fabric->changed.notify_all();
}

// ---- Protection domains and memory regions ----

absl::StatusOr<ibv_pd*> FakeVerbs::AllocPd(ibv_context* context) {
  Call call(*state_, "alloc_pd");
  auto& fake = Live<FakeContext>(*state_, context, "ibv_alloc_pd");
  int error = ContextError(call, fake);
  if (error == 0)
    error = TooMany(fake, "pd", fake.device_state->device.attr.max_pd);
  if (error != 0) return StatusOf(error, What("ibv_alloc_pd", fake));
  return state_->Add<FakePd>("pd", &fake);
}

absl::Status FakeVerbs::DeallocPd(ibv_pd* pd) {
  Call call(*state_, "dealloc_pd");
  auto& fake = Live<FakePd>(*state_, pd, "ibv_dealloc_pd");
  if (const int error = DestroyError(call, fake); error != 0)
    return StatusOf(error, What("ibv_dealloc_pd", *fake.fake_context));
  state_->Retire(fake);
  return absl::OkStatus();
}

absl::StatusOr<ibv_mr*> FakeVerbs::RegMr(ibv_pd* pd, void* addr, size_t length,
                                         int access) {
  Call call(*state_, "reg_mr");
  auto& fake_pd = Live<FakePd>(*state_, pd, "ibv_reg_mr");
  FakeContext& context = *fake_pd.fake_context;
  const ibv_device_attr& attr = context.device_state->device.attr;
  int error = ContextError(call, context);
  if (error == 0) error = TooMany(context, "mr", attr.max_mr);
  constexpr int kRemoteWriters =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if (error == 0 &&
      (length > attr.max_mr_size || ((access & kRemoteWriters) != 0 &&
                                     (access & IBV_ACCESS_LOCAL_WRITE) == 0)))
    error = EINVAL;
  if (error != 0)
    return StatusOf(error,
                    fmt::format("{} length {} access {:#x}",
                                What("ibv_reg_mr", context), length, access));
  auto* mr = state_->Add<FakeMr>("mr", &context);
  mr->pd = pd;
  mr->addr = addr;
  mr->length = length;
  mr->access = access;
  mr->lkey = mr->rkey = state_->fabric->next_key++;
  state_->fabric->regions[mr->lkey] = mr;
  ++fake_pd.children;
  return mr;
}

absl::Status FakeVerbs::DeregMr(ibv_mr* mr) {
  Call call(*state_, "dereg_mr");
  auto& fake = Live<FakeMr>(*state_, mr, "ibv_dereg_mr");
  if (const int error = DestroyError(call, fake); error != 0)
    return StatusOf(error, What("ibv_dereg_mr", *fake.fake_context));
  state_->fabric->regions.erase(fake.lkey);
  --static_cast<FakePd*>(fake.pd)->children;
  state_->Retire(fake);
  return absl::OkStatus();
}

}  // namespace purser::fakes
