// SPDX-License-Identifier: Apache-2.0
//
// One opening of an RDMA device: the context and what is made once on it.
// Shared by all that use it; the device is closed when the last of them lets
// go, and its removal from the node waits for that. So whatever holds it for
// longer than a call must let go once it is lost. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "queue_memory/queue_memory.h"
#include "rdma/capabilities.h"
#include "rdma/handles.h"
#include "rdma/uverbs_entry.h"
#include "sidecar/admission.h"

namespace purser::sidecar {

// Where the system is read: the real one, or file trees like it.
struct SystemRoots {
  std::string sysfs = "/sys";
  std::string dev = "/dev";
  std::string proc = "/proc";
};

class OpenedDevice {
 public:
  enum class Occasion { kStart, kReturn };
  // Opens `name`, finds the provider by sysfs, allocates the protection domain
  // and the one completion channel. Errors say what the process lacks (the
  // device node, the memlock limit, the device itself) and, by the occasion,
  // what to do.
  static absl::StatusOr<std::shared_ptr<OpenedDevice>> Open(
      rdma::Verbs& verbs, const std::string& name, const SystemRoots& roots,
      Occasion occasion);

  const std::string& name() const { return name_; }
  queue_memory::Provider provider() const { return provider_; }
  const rdma::Capabilities& capabilities() const { return capabilities_; }
  DeviceTraits traits() const;
  // The first active port, else 1.
  uint8_t port_num() const { return port_num_; }
  rdma::Verbs& verbs() const { return verbs_; }
  const rdma::Context& context() const { return context_; }
  const rdma::ProtectionDomain& pd() const { return pd_; }
  const rdma::CompletionChannel& channel() const { return channel_; }
  // nullopt where sysfs does not show it.
  const std::optional<rdma::UverbsEntry>& uverbs() const { return uverbs_; }

  // Against the device's max_qp.
  std::atomic<uint64_t>& live_queue_pairs() { return live_queue_pairs_; }

  // Set before what is on the device is destroyed. Who puts something into a
  // table looks under the table's lock: nothing is added to a lost device.
  void SetLost() { lost_ = true; }
  bool lost() const { return lost_; }

 private:
  OpenedDevice(rdma::Verbs& verbs, std::string name);
  absl::Status ReadSysfs(const SystemRoots& roots);
  absl::Status OpenContext();
  absl::Status OpenFailure(const absl::Status& status, const SystemRoots& roots,
                           Occasion occasion) const;
  absl::Status FindPort();

  rdma::Verbs& verbs_;
  const std::string name_;
  queue_memory::Provider provider_ = queue_memory::Provider::kUnknown;
  std::optional<rdma::UverbsEntry> uverbs_;
  rdma::Capabilities capabilities_;
  uint8_t port_num_ = 1;
  std::atomic<uint64_t> live_queue_pairs_ = 0;
  std::atomic<bool> lost_ = false;
  rdma::Context context_;
  rdma::ProtectionDomain pd_;
  rdma::CompletionChannel channel_;
};

}  // namespace purser::sidecar
