// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_sidecar_service.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "google/rpc/status.pb.h"
#include "spdlog/fmt/fmt.h"

namespace purser::fakes {
namespace {

constexpr uint64_t kSendBytes = 128, kReceiveBytes = 64, kOverheadBytes = 4096;
constexpr std::chrono::milliseconds kTick(5);

v1::QueueMemory MemoryOf(const v1::Capabilities& cap) {
  v1::QueueMemory memory;
  memory.mutable_send()->set_container_bytes(kSendBytes * cap.max_send_wr());
  memory.mutable_receive()->set_container_bytes(kReceiveBytes *
                                                cap.max_recv_wr());
  memory.mutable_overhead()->set_node_bytes(kOverheadBytes);
  memory.set_total_bytes(memory.send().container_bytes() +
                         memory.receive().container_bytes() + kOverheadBytes);
  memory.set_exactness(v1::EXACTNESS_EXACT);
  memory.set_textbook_bytes(
      cap.max_send_wr() * (64 + 16 * uint64_t{cap.max_send_sge()}) +
      cap.max_recv_wr() * (64 + 16 * uint64_t{cap.max_recv_sge()}));
  return memory;
}

v1::Refusal BudgetRefusal(const v1::QueueMemory& needed, uint64_t used,
                          uint64_t budget) {
  v1::Refusal refusal;
  refusal.set_reason(v1::REASON_BUDGET);
  *refusal.mutable_needed() = needed;
  refusal.set_needed_bytes(needed.total_bytes());
  refusal.set_used_bytes(used);
  refusal.set_budget_bytes(budget);
  refusal.set_bound(v1::BUDGET_SOURCE_EXPLICIT);
  const uint64_t rest = needed.total_bytes() - needed.send().container_bytes();
  if (used + rest < budget)
    refusal.set_largest_max_send_wr(
        static_cast<uint32_t>((budget - used - rest) / kSendBytes));
  refusal.set_remedy("raise --budget or ask for fewer work requests");
  return refusal;
}

grpc::Status Refused(const v1::Refusal& refusal) {
  google::rpc::Status details;
  details.set_code(grpc::StatusCode::RESOURCE_EXHAUSTED);
  details.add_details()->PackFrom(refusal);
  return grpc::Status(
      grpc::StatusCode::RESOURCE_EXHAUSTED,
      fmt::format("queue memory budget: {} needed, {} of {} used",
                  refusal.needed_bytes(), refusal.used_bytes(),
                  refusal.budget_bytes()),
      details.SerializeAsString());
}

v1::Device FakeDevice() {
  v1::Device device;
  device.set_name("fake0");
  device.set_provider("rxe");
  device.set_port_num(1);
  device.set_link_layer(v1::LINK_LAYER_ETHERNET);
  device.set_port_state(v1::PORT_STATE_ACTIVE);
  device.set_active_mtu(1024);
  return device;
}

}  // namespace

FakeSidecarService::FakeSidecarService(std::string shared_volume,
                                       FakeFabric& fabric)
    : shared_volume_(std::move(shared_volume)), fabric_(fabric) {
  Start();
}

FakeSidecarService::~FakeSidecarService() { Stop(); }

std::string FakeSidecarService::socket_path() const {
  return shared_volume_ + "/sidecar.sock";
}

void FakeSidecarService::Start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_path(),
                           grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (!server_) throw std::runtime_error("cannot serve on " + socket_path());
}

void FakeSidecarService::Stop() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
  unlink(socket_path().c_str());
  std::lock_guard lock(mutex_);
  for (const auto& [id, held] : queue_pairs_)
    fabric_.RemoveQueuePair(held.properties.qp_num());
  queue_pairs_.clear();
}

void FakeSidecarService::SetBudget(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  budget_bytes_ = bytes;
}

void FakeSidecarService::SetPageSize(int count) {
  std::lock_guard lock(mutex_);
  page_size_ = count;
}

void FakeSidecarService::FailNext(const std::string& method,
                                  grpc::Status status) {
  std::lock_guard lock(mutex_);
  failures_[method] = std::move(status);
}

void FakeSidecarService::HangNext(const std::string& method) {
  std::lock_guard lock(mutex_);
  hanging_.insert(method);
}

void FakeSidecarService::LoseDevice(const std::string& device) {
  std::lock_guard lock(mutex_);
  lost_devices_.push_back(device);
  changed_.notify_all();
}

std::vector<v1::ModifyQueuePairRequest> FakeSidecarService::modifications()
    const {
  std::lock_guard lock(mutex_);
  return modifications_;
}

std::vector<v1::CreateQueuePairRequest> FakeSidecarService::creations() const {
  std::lock_guard lock(mutex_);
  return creations_;
}

size_t FakeSidecarService::clients() const {
  std::lock_guard lock(mutex_);
  return clients_.size();
}

size_t FakeSidecarService::queue_pairs() const {
  std::lock_guard lock(mutex_);
  return queue_pairs_.size();
}

bool FakeSidecarService::WaitForClients(size_t count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(5),
                           [&] { return clients_.size() == count; });
}

grpc::Status FakeSidecarService::Attach(
    grpc::ServerContext* context, const v1::AttachRequest* request,
    grpc::ServerWriter<v1::AttachEvent>* writer) {
  if (auto status = Interfere(context, "Attach")) return *status;
  v1::AttachEvent event;
  std::string client_id;
  size_t lost = 0;
  {
    std::lock_guard lock(mutex_);
    client_id = fmt::format("client-{}", next_id_++);
    clients_[client_id] = request->name();
    lost = lost_devices_.size();
    changed_.notify_all();
  }
  event.mutable_attached()->set_client_id(client_id);
  *event.mutable_attached()->add_devices() = FakeDevice();
  writer->Write(event);
  std::unique_lock lock(mutex_);
  while (!context->IsCancelled()) {
    changed_.wait_for(lock, kTick);
    for (; lost < lost_devices_.size(); ++lost) {
      event.mutable_device_lost()->set_device(lost_devices_[lost]);
      writer->Write(event);
    }
  }
  lock.unlock();
  RemoveClient(client_id);
  return grpc::Status::OK;
}

void FakeSidecarService::RemoveClient(const std::string& client_id) {
  std::lock_guard lock(mutex_);
  clients_.erase(client_id);
  std::erase_if(queue_pairs_, [&](const auto& entry) {
    const Held& held = entry.second;
    if (held.client_id != client_id || held.properties.detached()) return false;
    fabric_.RemoveQueuePair(held.properties.qp_num());
    return true;
  });
  for (auto [it, end] = regions_.equal_range(client_id); it != end; ++it)
    fabric_.RemoveRegion(it->second);
  regions_.erase(client_id);
  changed_.notify_all();
}

std::optional<grpc::Status> FakeSidecarService::Interfere(
    grpc::ServerContext* context, const std::string& method) {
  std::unique_lock lock(mutex_);
  if (hanging_.erase(method) > 0) {
    while (!context->IsCancelled()) changed_.wait_for(lock, kTick);
    return grpc::Status::CANCELLED;
  }
  auto failure = failures_.extract(method);
  if (failure.empty()) return std::nullopt;
  return failure.mapped();
}

grpc::Status FakeSidecarService::CheckClient(
    const std::string& client_id) const {
  if (clients_.contains(client_id)) return grpc::Status::OK;
  return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "no such client");
}

uint64_t FakeSidecarService::Used() const {
  uint64_t used = 0;
  for (const auto& [id, held] : queue_pairs_)
    used += held.properties.memory().total_bytes();
  return used;
}

grpc::Status FakeSidecarService::CreateQueuePair(
    grpc::ServerContext* context, const v1::CreateQueuePairRequest* request,
    v1::CreateQueuePairResponse* response) {
  if (auto status = Interfere(context, "CreateQueuePair")) return *status;
  std::lock_guard lock(mutex_);
  creations_.push_back(*request);
  if (auto status = CheckClient(request->client_id()); !status.ok())
    return status;
  v1::Capabilities cap = request->cap();
  v1::QueueMemory memory = MemoryOf(cap);
  if (Used() + memory.total_bytes() > budget_bytes_) {
    const v1::Refusal refusal = BudgetRefusal(memory, Used(), budget_bytes_);
    cap.set_max_send_wr(request->least().max_send_wr());
    cap.set_max_recv_wr(request->least().max_recv_wr());
    memory = MemoryOf(cap);
    if (!request->has_least() ||
        Used() + memory.total_bytes() > budget_bytes_) {
      ++refusals_;
      return Refused(refusal);
    }
    *response->mutable_shrunk()->mutable_refusal() = refusal;
    response->mutable_shrunk()->set_why("it did not fit");
  }
  v1::QueuePair& queue_pair = *response->mutable_queue_pair();
  queue_pair.set_send_slots(std::bit_ceil(request->cap().max_send_wr() + 1) -
                            1);
  queue_pair.set_recv_slots(std::bit_ceil(request->cap().max_recv_wr() + 1) -
                            1);
  queue_pair.set_id(next_id_++);
  queue_pair.set_qp_num(
      fabric_.AddQueuePair(queue_pair.send_slots(), queue_pair.recv_slots()));
  queue_pair.set_device("fake0");
  queue_pair.set_type(request->type() == v1::QUEUE_PAIR_TYPE_UNSPECIFIED
                          ? v1::QUEUE_PAIR_TYPE_RC
                          : request->type());
  queue_pair.set_state(v1::QUEUE_PAIR_STATE_RESET);
  *queue_pair.mutable_cap() = cap;
  *queue_pair.mutable_memory() = memory;
  queue_pair.set_client_name(clients_[request->client_id()]);
  queue_pair.set_detached(request->detached());
  v1::Endpoint& local = *queue_pair.mutable_local();
  local.set_qp_num(queue_pair.qp_num());
  local.set_gid(std::string("\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01", 16));
  local.set_gid_index(1);
  local.set_port_num(1);
  local.set_mtu(1024);
  queue_pairs_[queue_pair.id()] = {queue_pair, request->client_id()};
  return grpc::Status::OK;
}

grpc::Status FakeSidecarService::Find(const std::string& client_id, uint64_t id,
                                      uint32_t* qp_num) const {
  std::lock_guard lock(mutex_);
  if (auto status = CheckClient(client_id); !status.ok()) return status;
  auto found = queue_pairs_.find(id);
  if (found == queue_pairs_.end())
    return grpc::Status(grpc::StatusCode::NOT_FOUND,
                        fmt::format("no queue pair {}", id));
  if (found->second.client_id != client_id &&
      !found->second.properties.detached())
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED,
                        fmt::format("queue pair {} is another client's", id));
  *qp_num = found->second.properties.qp_num();
  return grpc::Status::OK;
}

grpc::Status FakeSidecarService::ModifyQueuePair(
    grpc::ServerContext* context, const v1::ModifyQueuePairRequest* request,
    v1::ModifyQueuePairResponse* response) {
  if (auto status = Interfere(context, "ModifyQueuePair")) return *status;
  uint32_t qp_num = 0;
  if (auto status = Find(request->client_id(), request->id(), &qp_num);
      !status.ok())
    return status;
  if (request->has_dest_qp_num())
    fabric_.Connect(qp_num, request->dest_qp_num());
  std::lock_guard lock(mutex_);
  modifications_.push_back(*request);
  v1::QueuePair& properties = queue_pairs_.at(request->id()).properties;
  properties.set_state(request->state());
  *response->mutable_queue_pair() = properties;
  return grpc::Status::OK;
}

grpc::Status FakeSidecarService::DestroyQueuePair(
    grpc::ServerContext* context, const v1::DestroyQueuePairRequest* request,
    v1::DestroyQueuePairResponse* response) {
  if (auto status = Interfere(context, "DestroyQueuePair")) return *status;
  uint32_t qp_num = 0;
  if (auto status = Find(request->client_id(), request->id(), &qp_num);
      !status.ok())
    return status;
  fabric_.RemoveQueuePair(qp_num);
  std::lock_guard lock(mutex_);
  response->set_returned_bytes(
      queue_pairs_.at(request->id()).properties.memory().total_bytes());
  queue_pairs_.erase(request->id());
  return grpc::Status::OK;
}

grpc::Status FakeSidecarService::ListQueuePairs(
    grpc::ServerContext* context, const v1::ListQueuePairsRequest* request,
    v1::ListQueuePairsResponse* response) {
  if (auto status = Interfere(context, "ListQueuePairs")) return *status;
  std::lock_guard lock(mutex_);
  for (auto it = queue_pairs_.upper_bound(request->after_id());
       it != queue_pairs_.end(); ++it) {
    if (response->queue_pairs_size() == page_size_) {
      response->set_more(true);
      break;
    }
    *response->add_queue_pairs() = it->second.properties;
  }
  return grpc::Status::OK;
}

grpc::Status FakeSidecarService::GetBudget(grpc::ServerContext* context,
                                           const v1::GetBudgetRequest*,
                                           v1::GetBudgetResponse* response) {
  if (auto status = Interfere(context, "GetBudget")) return *status;
  std::lock_guard lock(mutex_);
  v1::GetBudgetResponse::Bound& bound = *response->add_bounds();
  bound.set_source(v1::BUDGET_SOURCE_EXPLICIT);
  bound.set_limit_bytes(budget_bytes_);
  bound.set_used_bytes(Used());
  bound.set_binding(true);
  bound.set_origin("--budget");
  const uint64_t node = kOverheadBytes * queue_pairs_.size();
  response->mutable_used()->set_container_bytes(Used() - node);
  response->mutable_used()->set_node_bytes(node);
  response->set_headroom_bytes(budget_bytes_ - std::min(budget_bytes_, Used()));
  response->set_queue_pairs(static_cast<uint32_t>(queue_pairs_.size()));
  response->set_refusals(refusals_);
  return grpc::Status::OK;
}

grpc::Status FakeSidecarService::RegisterMemory(
    grpc::ServerContext* context, const v1::RegisterMemoryRequest* request,
    v1::RegisterMemoryResponse* response) {
  if (auto status = Interfere(context, "RegisterMemory")) return *status;
  std::lock_guard lock(mutex_);
  if (auto status = CheckClient(request->client_id()); !status.ok())
    return status;
  const uint64_t id = fabric_.AddRegion(shared_volume_ + "/" + request->path(),
                                        request->length());
  if (id == 0)
    return grpc::Status(grpc::StatusCode::NOT_FOUND,
                        "cannot map " + request->path());
  regions_.emplace(request->client_id(), id);
  response->set_region_id(id);
  response->set_rkey(static_cast<uint32_t>(id));
  response->set_remote_addr(id << 32);
  return grpc::Status::OK;
}

grpc::Status FakeSidecarService::CreateSharedReceiveQueue(
    grpc::ServerContext* context,
    const v1::CreateSharedReceiveQueueRequest* request,
    v1::CreateSharedReceiveQueueResponse* response) {
  if (auto status = Interfere(context, "CreateSharedReceiveQueue"))
    return *status;
  std::lock_guard lock(mutex_);
  if (auto status = CheckClient(request->client_id()); !status.ok())
    return status;
  v1::SharedReceiveQueue* queue = response->mutable_shared_receive_queue();
  queue->set_id(next_id_++);
  queue->set_max_wr(request->max_wr());
  queue->set_max_sge(request->max_sge());
  queue->set_class_(request->class_());
  queue->set_slots(std::bit_ceil(request->max_wr() + 1) - 1);
  return grpc::Status::OK;
}

grpc::Status FakeSidecarService::DestroySharedReceiveQueue(
    grpc::ServerContext* context,
    const v1::DestroySharedReceiveQueueRequest* request,
    v1::DestroySharedReceiveQueueResponse* response) {
  if (auto status = Interfere(context, "DestroySharedReceiveQueue"))
    return *status;
  std::lock_guard lock(mutex_);
  response->set_returned_bytes(4096);
  return CheckClient(request->client_id());
}

grpc::Status FakeSidecarService::GetStatus(grpc::ServerContext* context,
                                           const v1::GetStatusRequest*,
                                           v1::GetStatusResponse* response) {
  if (auto status = Interfere(context, "GetStatus")) return *status;
  std::lock_guard lock(mutex_);
  for (const auto& [id, name] : clients_)
    response->add_clients()->set_name(name);
  return grpc::Status::OK;
}

grpc::Status FakeSidecarService::DeregisterMemory(
    grpc::ServerContext* context, const v1::DeregisterMemoryRequest* request,
    v1::DeregisterMemoryResponse*) {
  if (auto status = Interfere(context, "DeregisterMemory")) return *status;
  std::lock_guard lock(mutex_);
  fabric_.RemoveRegion(request->region_id());
  std::erase_if(regions_, [&](const auto& entry) {
    return entry.second == request->region_id();
  });
  return grpc::Status::OK;
}

grpc::Status FakeSidecarService::PostSend(grpc::ServerContext* context,
                                          const v1::PostSendRequest* request,
                                          v1::PostResponse* response) {
  if (auto status = Interfere(context, "PostSend")) return *status;
  uint32_t qp_num = 0;
  grpc::Status status = Find(request->client_id(), request->id(), &qp_num);
  if (status.ok()) *response = fabric_.PostSend(qp_num, *request);
  return status;
}

grpc::Status FakeSidecarService::PostReceive(
    grpc::ServerContext* context, const v1::PostReceiveRequest* request,
    v1::PostResponse* response) {
  if (auto status = Interfere(context, "PostReceive")) return *status;
  uint32_t qp_num = 0;
  grpc::Status status = Find(request->client_id(), request->id(), &qp_num);
  if (status.ok()) *response = fabric_.PostReceive(qp_num, *request);
  return status;
}

grpc::Status FakeSidecarService::PollCompletions(
    grpc::ServerContext* context, const v1::PollCompletionsRequest* request,
    v1::PollCompletionsResponse* response) {
  if (auto status = Interfere(context, "PollCompletions")) return *status;
  uint32_t qp_num = 0;
  grpc::Status status = Find(request->client_id(), request->id(), &qp_num);
  if (!status.ok()) return status;
  const std::chrono::milliseconds wait(request->wait().seconds() * 1000 +
                                       request->wait().nanos() / 1'000'000);
  *response = fabric_.Poll(
      qp_num, request->max_entries() == 0 ? 256 : request->max_entries(), wait,
      [context] { return context->IsCancelled(); });
  return status;
}

}  // namespace purser::fakes
