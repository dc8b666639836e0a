// SPDX-License-Identifier: Apache-2.0
//
// An RDMA device that the sidecar was started with, for the sidecar's life: as
// it is opened now, or why it is not. Devices are removed from nodes and come
// back; the device's DeviceWatch follows that. Owned by the App. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "sidecar/opened_device.h"

namespace purser::sidecar {

class Device {
 public:
  // As OpenedDevice::Open.
  static absl::StatusOr<std::unique_ptr<Device>> Open(rdma::Verbs& verbs,
                                                      const std::string& name,
                                                      SystemRoots roots);

  const std::string& name() const { return name_; }
  rdma::Verbs& verbs() const { return verbs_; }
  queue_memory::Provider provider() const { return provider_; }

  // To be held for one call alone: the device is closed when the last lets go.
  // Unavailable says why it is not open.
  absl::StatusOr<std::shared_ptr<OpenedDevice>> Opened() const;

  // As it was opened last.
  DeviceTraits traits() const;
  rdma::Capabilities capabilities() const;
  uint8_t port_num() const;

  // Looked up now: GID indices move.
  absl::StatusOr<rdma::Gid> PreferredGid() const;
  absl::StatusOr<ibv_port_attr> QueryPort() const;

  // ---- For its DeviceWatch ----
  // From now on Opened() fails with `why`. The device closes once all that use
  // it have let go.
  void Lose(const std::string& why);
  // On success Opened() answers again. Else it goes on failing, and says why
  // this failed.
  absl::Status Reopen();
  const SystemRoots& roots() const { return roots_; }

 private:
  Device(rdma::Verbs& verbs, std::string name, SystemRoots roots);
  absl::StatusOr<std::shared_ptr<OpenedDevice>> OpenAgain() const;
  void Set(std::shared_ptr<OpenedDevice> opened);

  rdma::Verbs& verbs_;
  const std::string name_;
  const SystemRoots roots_;
  queue_memory::Provider provider_ = queue_memory::Provider::kUnknown;
  mutable std::mutex mutex_;
  std::shared_ptr<OpenedDevice> opened_
      ABSL_GUARDED_BY(mutex_);  // null: not open, see why_
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  DeviceTraits traits_ ABSL_GUARDED_BY(mutex_);
  rdma::Capabilities capabilities_ ABSL_GUARDED_BY(mutex_);
  uint8_t port_num_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace purser::sidecar
