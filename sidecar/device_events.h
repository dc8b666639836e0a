// SPDX-License-Identifier: Apache-2.0
//
// Reads everything that one device tells by itself, on one thread: completion
// events of all queue pairs and asynchronous events. One completion channel
// for the device instead of one for each queue pair, so that ten thousand
// queue pairs cost one file descriptor, and waiting for completions costs no
// thread. The thread finds a queue pair's QueuePairEvents in cq_context and
// qp_context. Outlives the queue pairs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "rdma/handles.h"

namespace purser::sidecar {

class DeviceEvents {
 public:
  // `on_device_lost` runs at most once, on the event thread: the device was
  // removed or its driver reset it for good. It must not destroy objects of
  // the device.
  static absl::StatusOr<std::unique_ptr<DeviceEvents>> Start(
      rdma::Verbs& verbs, const rdma::Context& context, std::string device_name,
      std::function<void()> on_device_lost);
  ~DeviceEvents();

  const rdma::CompletionChannel& channel() const { return channel_; }

 private:
  DeviceEvents(rdma::Verbs& verbs, const rdma::Context& context,
               std::string device_name, std::function<void()> on_device_lost);
  void Run();
  // False: nothing more will come from there.
  bool ReadCompletionEvents();
  bool ReadAsyncEvents();
  void Handle(ibv_async_event& event);
  void DeviceLost(const std::string& why);

  rdma::Verbs& verbs_;
  const rdma::Context& context_;
  const std::string device_name_;
  std::function<void()> on_device_lost_;  // the event thread's; empty once run
  base::FileDescriptor stop_event_;
  rdma::CompletionChannel channel_;
  std::thread thread_;
};

}  // namespace purser::sidecar
