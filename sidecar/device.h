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

namespace purser::sidecar {

class Device {
 public:
  // Opens `name`, finds the provider by sysfs (or, for tests, takes it from
  // there too) and allocates the protection domain. `port_num`: the first
  // active port, else 1. Errors say what the process lacks: the device node,
  // the memlock limit, the device itself.
  static absl::StatusOr<std::unique_ptr<Device>> Open(
      rdma::Verbs& verbs, const std::string& name,
      const std::string& sysfs_root);

  const std::string& name() const { return name_; }
  queue_memory::Provider provider() const { return provider_; }
  const rdma::Capabilities& capabilities() const { return capabilities_; }
  uint8_t port_num() const { return port_num_; }
  rdma::Verbs& verbs() const { return verbs_; }
  const rdma::Context& context() const { return context_; }
  const rdma::ProtectionDomain& pd() const { return pd_; }
  // Looked up now: GID indices move.
  absl::StatusOr<rdma::Gid> PreferredGid() const;
  absl::StatusOr<ibv_port_attr> QueryPort() const;

 private:
  Device(rdma::Verbs& verbs, std::string name, std::string sysfs_root);
  rdma::Verbs& verbs_;
  std::string name_, sysfs_root_;
  queue_memory::Provider provider_ = queue_memory::Provider::kUnknown;
  rdma::Capabilities capabilities_;
  uint8_t port_num_ = 1;
  rdma::Context context_;
  rdma::ProtectionDomain pd_;
};

}  // namespace purser::sidecar
