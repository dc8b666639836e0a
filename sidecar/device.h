// SPDX-License-Identifier: Apache-2.0
//
// One opened RDMA device: context, protection domain, what it can do. Owned by
// the App for the sidecar's life; used by every thread (verbs contexts are
// thread-safe).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "queue_memory/queue_memory.h"
#include "rdma/capabilities.h"
#include "rdma/handles.h"
#include "sidecar/admission.h"

namespace purser::sidecar {

// Where the system is read: the real one, or file trees like it.
struct SystemRoots {
  std::string sysfs = "/sys";
  std::string dev = "/dev";
  std::string proc = "/proc";
};

class Device {
 public:
  // Opens `name`, finds the provider by sysfs and allocates the protection
  // domain. `port_num`: the first active port, else 1. Errors say what the
  // process lacks: the device node, the memlock limit, the device itself.
  static absl::StatusOr<std::unique_ptr<Device>> Open(rdma::Verbs& verbs,
                                                      const std::string& name,
                                                      SystemRoots roots);

  const std::string& name() const { return name_; }
  queue_memory::Provider provider() const { return provider_; }
  const rdma::Capabilities& capabilities() const { return capabilities_; }
  DeviceTraits traits() const;
  uint8_t port_num() const { return port_num_; }
  rdma::Verbs& verbs() const { return verbs_; }
  const rdma::Context& context() const { return context_; }
  const rdma::ProtectionDomain& pd() const { return pd_; }
  // Looked up now: GID indices move.
  absl::StatusOr<rdma::Gid> PreferredGid() const;
  absl::StatusOr<ibv_port_attr> QueryPort() const;

 private:
  Device(rdma::Verbs& verbs, std::string name, SystemRoots roots);
  absl::Status ReadProvider();
  absl::Status OpenContext();
  absl::Status FindPort();
  absl::Status OpenFailure(const absl::Status& status) const;

  rdma::Verbs& verbs_;
  const std::string name_;
  const SystemRoots roots_;
  queue_memory::Provider provider_ = queue_memory::Provider::kUnknown;
  queue_memory::DeviceLimits profile_limits_;  // by the kernel driver
  std::string uverbs_;  // "uverbs0"; "" where sysfs does not tell
  rdma::Capabilities capabilities_;
  uint8_t port_num_ = 1;
  rdma::Context context_;
  rdma::ProtectionDomain pd_;
};

}  // namespace purser::sidecar
