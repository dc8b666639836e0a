// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_fabric.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "spdlog/fmt/fmt.h"

namespace purser::fakes {
namespace {

bool IsWrite(v1::SendOpcode opcode) {
  return opcode == v1::SEND_OPCODE_RDMA_WRITE ||
         opcode == v1::SEND_OPCODE_RDMA_WRITE_WITH_IMM;
}
bool TakesReceive(v1::SendOpcode opcode) {
  return opcode != v1::SEND_OPCODE_RDMA_WRITE;
}
bool HasImmediate(v1::SendOpcode opcode) {
  return opcode == v1::SEND_OPCODE_RDMA_WRITE_WITH_IMM ||
         opcode == v1::SEND_OPCODE_SEND_WITH_IMM;
}

v1::PostFailure Full(const char* queue, uint32_t slots) {
  v1::PostFailure failure;
  failure.set_error_number(ENOMEM);
  failure.set_error_name("ENOMEM");
  failure.set_message(
      fmt::format("{} queue full: {} of {} posted", queue, slots, slots));
  return failure;
}

}  // namespace

FakeFabric::~FakeFabric() {
  for (auto& [id, region] : regions_) munmap(region.data, region.length);
}

uint32_t FakeFabric::AddQueuePair(uint32_t send_slots, uint32_t recv_slots) {
  std::lock_guard lock(mutex_);
  queue_pairs_[next_qp_num_] = {send_slots, recv_slots};
  return next_qp_num_++;
}

void FakeFabric::RemoveQueuePair(uint32_t qp_num) {
  std::lock_guard lock(mutex_);
  queue_pairs_.erase(qp_num);
  completed_.notify_all();
}

void FakeFabric::Connect(uint32_t qp_num, uint32_t dest_qp_num) {
  std::lock_guard lock(mutex_);
  queue_pairs_.at(qp_num).dest_qp_num = dest_qp_num;
}

uint64_t FakeFabric::AddRegion(const std::string& path, uint64_t length) {
  const int fd = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return 0;
  void* data = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (data == MAP_FAILED) return 0;
  std::lock_guard lock(mutex_);
  regions_[next_region_id_] = {static_cast<std::byte*>(data), length};
  return next_region_id_++;
}

void FakeFabric::RemoveRegion(uint64_t region_id) {
  std::lock_guard lock(mutex_);
  auto region = regions_.find(region_id);
  if (region == regions_.end()) return;
  munmap(region->second.data, region->second.length);
  regions_.erase(region);
}

size_t FakeFabric::regions() const {
  std::lock_guard lock(mutex_);
  return regions_.size();
}

v1::PostResponse FakeFabric::PostSend(uint32_t qp_num,
                                      const v1::PostSendRequest& posts) {
  std::lock_guard lock(mutex_);
  QueuePair& queue_pair = queue_pairs_.at(qp_num);
  v1::PostResponse response;
  for (const v1::SendWorkRequest& post : posts.work_requests()) {
    if (queue_pair.sends.size() >= queue_pair.send_slots) {
      *response.mutable_failure() = Full("send", queue_pair.send_slots);
      break;
    }
    queue_pair.sends.push_back(post);
    response.set_posted(response.posted() + 1);
    Pump(queue_pair);
  }
  return response;
}

v1::PostResponse FakeFabric::PostReceive(uint32_t qp_num,
                                         const v1::PostReceiveRequest& posts) {
  std::lock_guard lock(mutex_);
  QueuePair& queue_pair = queue_pairs_.at(qp_num);
  v1::PostResponse response;
  for (const v1::ReceiveWorkRequest& post : posts.work_requests()) {
    if (queue_pair.receives.size() >= queue_pair.recv_slots) {
      *response.mutable_failure() = Full("receive", queue_pair.recv_slots);
      break;
    }
    queue_pair.receives.push_back(post);
    response.set_posted(response.posted() + 1);
  }
  for (auto& [num, from] : queue_pairs_)
    if (from.dest_qp_num == qp_num) Pump(from);
  return response;
}

v1::PollCompletionsResponse FakeFabric::Poll(
    uint32_t qp_num, uint32_t max_entries, std::chrono::milliseconds wait,
    const std::function<bool()>& cancelled) {
  constexpr std::chrono::milliseconds slice(20);
  const auto end = std::chrono::steady_clock::now() + wait;
  std::unique_lock lock(mutex_);
  auto idle = [&] {
    auto found = queue_pairs_.find(qp_num);
    return found != queue_pairs_.end() && found->second.completions.empty();
  };
  while (idle() && !cancelled() && std::chrono::steady_clock::now() < end)
    completed_.wait_for(lock, std::min(wait, slice));
  v1::PollCompletionsResponse response;
  auto found = queue_pairs_.find(qp_num);
  if (found == queue_pairs_.end()) return response;
  std::deque<v1::WorkCompletion>& completions = found->second.completions;
  while (!completions.empty() &&
         response.completions_size() < static_cast<int>(max_entries)) {
    *response.add_completions() = std::move(completions.front());
    completions.pop_front();
  }
  return response;
}

void FakeFabric::CorruptDelivery(uint64_t count) {
  std::lock_guard lock(mutex_);
  corrupt_after_ = count;
}

void FakeFabric::FailNextSend(int status, const std::string& status_name) {
  std::lock_guard lock(mutex_);
  failure_.emplace();
  failure_->set_status(status);
  failure_->set_status_name(status_name);
}

void FakeFabric::Pump(QueuePair& from) {
  auto to = queue_pairs_.find(from.dest_qp_num);
  while (!from.sends.empty() && to != queue_pairs_.end()) {
    const v1::SendWorkRequest& send = from.sends.front();
    if (TakesReceive(send.opcode()) && to->second.receives.empty()) {
      // What a write carries is in place before its last packet, which alone
      // needs the receive, is turned back.
      if (IsWrite(send.opcode())) Place(send, At(send));
      return;
    }
    Deliver(from, to->second);
  }
}

uint32_t FakeFabric::Place(const v1::SendWorkRequest& send, std::byte* target) {
  uint32_t length = 0;
  for (const v1::Sge& sge : send.sg_list()) {
    memcpy(target + length, At(sge), sge.length());
    length += sge.length();
  }
  return length;
}

void FakeFabric::Deliver(QueuePair& from, QueuePair& to) {
  const v1::SendWorkRequest send = std::move(from.sends.front());
  from.sends.pop_front();
  v1::WorkCompletion sent;
  if (failure_) sent = *std::exchange(failure_, std::nullopt);
  sent.set_wr_id(send.wr_id());
  if (sent.status() == 0) {
    v1::WorkCompletion received;
    received.set_receive(true);
    if (HasImmediate(send.opcode())) received.set_imm_data(send.imm_data());
    std::byte* target = IsWrite(send.opcode()) ? At(send) : nullptr;
    if (TakesReceive(send.opcode())) {
      received.set_wr_id(to.receives.front().wr_id());
      if (target == nullptr && to.receives.front().sg_list_size() > 0)
        target = At(to.receives.front().sg_list(0));
      to.receives.pop_front();
    }
    received.set_byte_len(Place(send, target));
    if (corrupt_after_ > 0 && --corrupt_after_ == 0)
      target[received.byte_len() / 2] ^= std::byte{1};
    if (TakesReceive(send.opcode())) to.completions.push_back(received);
  }
  from.completions.push_back(sent);
  completed_.notify_all();
}

std::byte* FakeFabric::At(const v1::Sge& sge) {
  return regions_.at(sge.region_id()).data + sge.offset();
}

std::byte* FakeFabric::At(const v1::SendWorkRequest& write) {
  // A region's remote address is its id times 4 GiB.
  return regions_.at(write.rkey()).data +
         (write.remote_addr() - (uint64_t{write.rkey()} << 32));
}

}  // namespace purser::fakes
