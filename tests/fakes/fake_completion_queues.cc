// SPDX-License-Identifier: Apache-2.0
//
// The verbs fake's completion channels, completion queues and shared receive
// queues.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "spdlog/fmt/fmt.h"
#include "tests/fakes/fake_verbs_state.h"

namespace purser::fakes {

using rdma::StatusOf;

// ---- Completion channels and queues ----

absl::StatusOr<ibv_comp_channel*> FakeVerbs::CreateCompChannel(
    ibv_context* context) {
  Call call(*state_, "create_comp_channel");
  auto& fake = Live<FakeContext>(*state_, context, "ibv_create_comp_channel");
  if (const int error = ContextError(call, fake); error != 0)
    return StatusOf(error, What("ibv_create_comp_channel", fake));
  auto* channel = state_->Add<FakeChannel>("comp_channel", &fake);
  channel->fd = channel->event.fd();
  return channel;
}

absl::Status FakeVerbs::DestroyCompChannel(ibv_comp_channel* channel) {
  Call call(*state_, "destroy_comp_channel");
  auto& fake = Live<FakeChannel>(*state_, channel, "ibv_destroy_comp_channel");
  if (const int error = DestroyError(call, fake); error != 0)
    return StatusOf(error,
                    What("ibv_destroy_comp_channel", *fake.fake_context));
  fake.event.Close();
  state_->Retire(fake);
  return absl::OkStatus();
}

absl::StatusOr<ibv_cq*> FakeVerbs::CreateCq(ibv_context* context, int cqe,
                                            void* cq_context,
                                            ibv_comp_channel* channel) {
  Call call(*state_, "create_cq");
  auto& fake = Live<FakeContext>(*state_, context, "ibv_create_cq");
  const FakeDevice& device = fake.device_state->device;
  int error = ContextError(call, fake);
  if (error == 0 && (cqe < 1 || cqe > device.attr.max_cqe)) error = EINVAL;
  if (error == 0) error = TooMany(fake, "cq", device.attr.max_cq);
  if (error != 0)
    return StatusOf(error,
                    fmt::format("{} cqe {}", What("ibv_create_cq", fake), cqe));
  auto* cq = state_->Add<FakeCq>("cq", &fake);
  cq->cq_context = cq_context;
  cq->cqe = static_cast<int>(
      device.size_completion_queue(static_cast<uint32_t>(cqe)));
  cq->channel = channel;
  if (channel != nullptr) {
    ++Live<FakeChannel>(*state_, channel, "ibv_create_cq").children;
    ++channel->refcnt;
  }
  return cq;
}

absl::Status FakeVerbs::DestroyCq(ibv_cq* cq) {
  Call call(*state_, "destroy_cq");
  auto& fake = Live<FakeCq>(*state_, cq, "ibv_destroy_cq");
  if (const int error = DestroyError(call, fake); error != 0)
    return StatusOf(error, What("ibv_destroy_cq", *fake.fake_context));
  call.AwaitAcknowledged(fake, "ibv_destroy_cq");
  DropAsyncEvents(fake);
  if (fake.channel != nullptr) {
    auto& channel = *static_cast<FakeChannel*>(fake.channel);
    const size_t dropped = std::erase(channel.events, &fake);
    for (size_t i = 0; i < dropped; ++i) channel.event.Take();
    --channel.children;
    --channel.refcnt;
  }
  state_->Retire(fake);
  return absl::OkStatus();
}

absl::StatusOr<ibv_cq*> FakeVerbs::GetCqEvent(ibv_comp_channel* channel) {
  Call call(*state_, "get_cq_event");
  auto& fake = Live<FakeChannel>(*state_, channel, "ibv_get_cq_event");
  if (call.injected() != 0)
    return StatusOf(call.injected(),
                    What("ibv_get_cq_event", *fake.fake_context));
  if (fake.events.empty()) return nullptr;
  FakeCq* cq = fake.events.front();
  fake.events.pop_front();
  fake.event.Take();
  ++cq->unacknowledged;
  return cq;
}

void FakeVerbs::AckCqEvents(ibv_cq* cq, unsigned int count) {
  std::lock_guard lock(state_->fabric->mutex);
  auto& fake = Live<FakeCq>(*state_, cq, "ibv_ack_cq_events");
  fake.unacknowledged -= static_cast<int>(count);
  if (fake.unacknowledged < 0)
    Die("ibv_ack_cq_events of more events than were read");
  state_->fabric->changed.notify_all();
}

absl::Status FakeVerbs::ResizeCq(ibv_cq* cq, int cqe) {
  Call call(*state_, "resize_cq");
  auto& fake = Live<FakeCq>(*state_, cq, "ibv_resize_cq");
  const FakeDevice& device = fake.fake_context->device_state->device;
  int error = ContextError(call, *fake.fake_context);
  if (error == 0 && (cqe < 1 || cqe > device.attr.max_cqe ||
                     static_cast<size_t>(cqe) < fake.entries.size()))
    error = EINVAL;
  if (error != 0)
    return StatusOf(
        error, fmt::format("{} cqe {}",
                           What("ibv_resize_cq", *fake.fake_context), cqe));
  fake.cqe = static_cast<int>(
      device.size_completion_queue(static_cast<uint32_t>(cqe)));
  return absl::OkStatus();
}

// ---- Shared receive queues ----

// rxe_srq_from_init, mlx5_create_srq: a power of two of which one stays empty.
absl::StatusOr<ibv_srq*> FakeVerbs::CreateSrq(ibv_pd* pd,
                                              ibv_srq_init_attr* attr) {
  Call call(*state_, "create_srq");
  auto& fake_pd = Live<FakePd>(*state_, pd, "ibv_create_srq");
  FakeContext& context = *fake_pd.fake_context;
  const FakeDevice& device = context.device_state->device;
  int error = ContextError(call, context);
  if (error == 0 &&
      (attr->attr.max_wr < 1 ||
       attr->attr.max_wr > static_cast<uint32_t>(device.attr.max_srq_wr) ||
       attr->attr.max_sge > static_cast<uint32_t>(device.attr.max_srq_sge)))
    error = EINVAL;
  if (error == 0) error = TooMany(context, "srq", device.attr.max_srq);
  if (error != 0)
    return StatusOf(
        error, fmt::format("{} {} wr x {} sge", What("ibv_create_srq", context),
                           attr->attr.max_wr, attr->attr.max_sge));
  ++fake_pd.children;
  auto* srq = state_->Add<FakeSrq>("srq", &context);
  srq->srq_context = attr->srq_context;
  srq->pd = pd;
  srq->slots = std::bit_ceil(attr->attr.max_wr + 1) - 1;
  srq->max_sge = attr->attr.max_sge;
  if (device.hardware) attr->attr.max_wr = srq->slots;
  return srq;
}

absl::Status FakeVerbs::DestroySrq(ibv_srq* srq) {
  Call call(*state_, "destroy_srq");
  auto& fake = Live<FakeSrq>(*state_, srq, "ibv_destroy_srq");
  if (const int error = DestroyError(call, fake); error != 0)
    return StatusOf(error, What("ibv_destroy_srq", *fake.fake_context));
  --static_cast<FakePd*>(fake.pd)->children;
  state_->Retire(fake);
  return absl::OkStatus();
}

}  // namespace purser::fakes
