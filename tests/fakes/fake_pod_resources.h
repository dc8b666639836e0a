// SPDX-License-Identifier: Apache-2.0
//
// The kubelet's PodResources service: a real gRPC server on a real unix socket,
// that can vanish and return.
#pragma once

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "podresources/v1/api.grpc.pb.h"

namespace purser::fakes {

// Thread-safe.
class FakePodResources : public ::v1::PodResourcesLister::Service {
 public:
  // `socket`'s directory is made.
  explicit FakePodResources(std::string socket) : socket_(std::move(socket)) {
    std::filesystem::create_directories(
        std::filesystem::path(socket_).parent_path());
    Start();
  }
  ~FakePodResources() override { Stop(); }

  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_,
                             grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  void Stop() {
    if (server_ != nullptr) server_->Shutdown();
    server_ = nullptr;
    std::filesystem::remove(socket_);
  }

  // Gives a container units of a resource, beside those it has; `copies` of the
  // entry, as for several NUMA nodes.
  void Give(const std::string& name_space, const std::string& pod,
            const std::string& container, const std::string& resource,
            int units, int copies = 1) {
    std::lock_guard lock(mutex_);
    ::v1::PodResources* of_pod = nullptr;
    for (auto& existing : *list_.mutable_pod_resources())
      if (existing.namespace_() == name_space && existing.name() == pod)
        of_pod = &existing;
    if (of_pod == nullptr) of_pod = list_.add_pod_resources();
    of_pod->set_namespace_(name_space);
    of_pod->set_name(pod);
    ::v1::ContainerResources* of_container = of_pod->add_containers();
    of_container->set_name(container);
    for (int copy = 0; copy < copies; ++copy) {
      ::v1::ContainerDevices* devices = of_container->add_devices();
      devices->set_resource_name(resource);
      for (int i = 0; i < units; ++i)
        devices->add_device_ids(std::to_string(next_id_++));
    }
  }
  void Fail(std::optional<grpc::Status> error) {
    std::lock_guard lock(mutex_);
    error_ = std::move(error);
  }

  grpc::Status List(grpc::ServerContext* /*context*/,
                    const ::v1::ListPodResourcesRequest* /*request*/,
                    ::v1::ListPodResourcesResponse* response) override {
    std::lock_guard lock(mutex_);
    if (error_) return *error_;
    *response = list_;
    return grpc::Status::OK;
  }

 private:
  const std::string socket_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  ::v1::ListPodResourcesResponse list_;
  std::optional<grpc::Status> error_;
  int next_id_ = 0;
};

}  // namespace purser::fakes
