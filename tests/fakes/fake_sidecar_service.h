// SPDX-License-Identifier: Apache-2.0
//
// A sidecar that allocates nothing: a real gRPC server on a real unix socket
// with clients, a budget, queue pairs and, by a FakeFabric, data. A queue pair
// costs 128 bytes x max_send_wr + 64 x max_recv_wr and 4096 of overhead; its
// queues take 2^n - 1 posts, as soft-RoCE's do. Any thread.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_context.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "purser/v1/sidecar.grpc.pb.h"
#include "tests/fakes/fake_fabric.h"

namespace purser::fakes {

class FakeSidecarService final : public v1::Sidecar::Service {
 public:
  // Serves on `shared_volume`/sidecar.sock. `fabric` outlives it.
  FakeSidecarService(std::string shared_volume, FakeFabric& fabric);
  ~FakeSidecarService() override;

  std::string socket_path() const;
  // As kill -9 and a restart: clients, queue pairs and regions are gone.
  void Stop();
  void Start();

  void SetBudget(uint64_t bytes);
  // At most `count` queue pairs in a page of a listing.
  void SetPageSize(int count);
  // The next call of `method` answers this.
  void FailNext(const std::string& method, grpc::Status status);
  // The next call of `method` hangs until its client gives up.
  void HangNext(const std::string& method);
  void LoseDevice(const std::string& device);

  std::vector<v1::ModifyQueuePairRequest> modifications() const;
  std::vector<v1::CreateQueuePairRequest> creations() const;
  size_t clients() const;
  size_t queue_pairs() const;
  // Waits until it has this many clients; false after 5 s.
  bool WaitForClients(size_t count);

  grpc::Status Attach(grpc::ServerContext* context,
                      const v1::AttachRequest* request,
                      grpc::ServerWriter<v1::AttachEvent>* writer) override;
  grpc::Status CreateQueuePair(grpc::ServerContext* context,
                               const v1::CreateQueuePairRequest* request,
                               v1::CreateQueuePairResponse* response) override;
  grpc::Status ModifyQueuePair(grpc::ServerContext* context,
                               const v1::ModifyQueuePairRequest* request,
                               v1::ModifyQueuePairResponse* response) override;
  grpc::Status DestroyQueuePair(
      grpc::ServerContext* context, const v1::DestroyQueuePairRequest* request,
      v1::DestroyQueuePairResponse* response) override;
  grpc::Status ListQueuePairs(grpc::ServerContext* context,
                              const v1::ListQueuePairsRequest* request,
                              v1::ListQueuePairsResponse* response) override;
  grpc::Status GetBudget(grpc::ServerContext* context,
                         const v1::GetBudgetRequest* request,
                         v1::GetBudgetResponse* response) override;
  // It holds nothing.
  grpc::Status CreateSharedReceiveQueue(
      grpc::ServerContext* context,
      const v1::CreateSharedReceiveQueueRequest* request,
      v1::CreateSharedReceiveQueueResponse* response) override;
  grpc::Status DestroySharedReceiveQueue(
      grpc::ServerContext* context,
      const v1::DestroySharedReceiveQueueRequest* request,
      v1::DestroySharedReceiveQueueResponse* response) override;
  grpc::Status GetStatus(grpc::ServerContext* context,
                         const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override;
  grpc::Status RegisterMemory(grpc::ServerContext* context,
                              const v1::RegisterMemoryRequest* request,
                              v1::RegisterMemoryResponse* response) override;
  grpc::Status DeregisterMemory(
      grpc::ServerContext* context, const v1::DeregisterMemoryRequest* request,
      v1::DeregisterMemoryResponse* response) override;
  grpc::Status PostSend(grpc::ServerContext* context,
                        const v1::PostSendRequest* request,
                        v1::PostResponse* response) override;
  grpc::Status PostReceive(grpc::ServerContext* context,
                           const v1::PostReceiveRequest* request,
                           v1::PostResponse* response) override;
  grpc::Status PollCompletions(grpc::ServerContext* context,
                               const v1::PollCompletionsRequest* request,
                               v1::PollCompletionsResponse* response) override;

 private:
  struct Held {
    v1::QueuePair properties;
    std::string client_id;
  };
  // The status to answer instead, if any; hangs if so told.
  std::optional<grpc::Status> Interfere(grpc::ServerContext* context,
                                        const std::string& method);
  grpc::Status CheckClient(const std::string& client_id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The qp_num of this client's queue pair.
  grpc::Status Find(const std::string& client_id, uint64_t id,
                    uint32_t* qp_num) const;
  void RemoveClient(const std::string& client_id);
  uint64_t Used() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string shared_volume_;
  FakeFabric& fabric_;
  std::unique_ptr<grpc::Server> server_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> clients_
      ABSL_GUARDED_BY(mutex_);  // id: name
  std::map<uint64_t, Held> queue_pairs_ ABSL_GUARDED_BY(mutex_);
  std::multimap<std::string, uint64_t> regions_
      ABSL_GUARDED_BY(mutex_);  // by client id
  std::map<std::string, grpc::Status> failures_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> hanging_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lost_devices_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ModifyQueuePairRequest> modifications_
      ABSL_GUARDED_BY(mutex_);
  std::vector<v1::CreateQueuePairRequest> creations_ ABSL_GUARDED_BY(mutex_);
  uint64_t budget_bytes_ ABSL_GUARDED_BY(mutex_) = 64 << 20;
  uint64_t refusals_ ABSL_GUARDED_BY(mutex_) = 0;
  int page_size_ ABSL_GUARDED_BY(mutex_) = 1000;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace purser::fakes
