// SPDX-License-Identifier: Apache-2.0
//
// The kubelet's v1beta1.DevicePlugin for one resource, by gRPC's callback API:
// no thread of its own, and nothing in here blocks.
#pragma once

#include <prometheus/histogram.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "deviceplugin/v1beta1/api.grpc.pb.h"
#include "plugin/list_streams.h"
#include "plugin/resource.h"

namespace purser::plugin {

// ListAndWatch is served raw: its message is built once per send without an
// object for each of perhaps a hundred thousand ids.
using DevicePluginBase =
    v1beta1::DevicePlugin::WithRawCallbackMethod_ListAndWatch<
        v1beta1::DevicePlugin::WithCallbackMethod_GetDevicePluginOptions<
            v1beta1::DevicePlugin::WithCallbackMethod_GetPreferredAllocation<
                v1beta1::DevicePlugin::WithCallbackMethod_Allocate<
                    v1beta1::DevicePlugin::WithCallbackMethod_PreStartContainer<
                        v1beta1::DevicePlugin::Service>>>>>;

// Owned by ResourceServer. Thread-safe.
class DevicePluginService : public DevicePluginBase {
 public:
  DevicePluginService(const Resource& resource,
                      std::shared_ptr<ListStreams> streams);

  void Update(std::shared_ptr<const Snapshot> snapshot);
  uint64_t allocations() const { return allocations_; }
  uint64_t refused_allocations() const { return refused_allocations_; }
  // Of Allocate, in seconds.
  prometheus::ClientMetric allocate_durations() const {
    return allocate_durations_.Collect();
  }

 private:
  using Context = grpc::CallbackServerContext;
  grpc::ServerUnaryReactor* GetDevicePluginOptions(
      Context* context, const v1beta1::Empty* request,
      v1beta1::DevicePluginOptions* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ListAndWatch(
      Context* context, const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* GetPreferredAllocation(
      Context* context, const v1beta1::PreferredAllocationRequest* request,
      v1beta1::PreferredAllocationResponse* response) override;
  grpc::ServerUnaryReactor* Allocate(
      Context* context, const v1beta1::AllocateRequest* request,
      v1beta1::AllocateResponse* response) override;

  // nullptr before the first Update().
  std::shared_ptr<const Snapshot> snapshot();
  absl::Status Prefer(const v1beta1::PreferredAllocationRequest& request,
                      v1beta1::PreferredAllocationResponse* response);
  absl::Status AllocateAll(const v1beta1::AllocateRequest& request,
                           v1beta1::AllocateResponse* response);

  const Resource& resource_;
  const std::shared_ptr<ListStreams> streams_;
  std::atomic<uint64_t> allocations_ = 0, refused_allocations_ = 0;
  prometheus::Histogram allocate_durations_;
  std::mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::plugin
