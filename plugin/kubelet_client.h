// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugin/file_id.h"

namespace purser::plugin {

// Of the device plugin API.
inline constexpr const char* kDevicePluginVersion = "v1beta1";

// Calls the kubelet's Registration service. Register() blocks, and the kubelet
// calls the plugin back before it answers: so never call it from a thread that
// the plugin's own servers need. Owned by Registrar.
class KubeletClient {
 public:
  explicit KubeletClient(std::string kubelet_socket);

  // `endpoint` is the socket's name in the device-plugins directory.
  // Unavailable: nobody answers at the kubelet's socket. DeadlineExceeded: it
  // answers too late. Cancelled: after Cancel(). Else: what the kubelet has
  // against it.
  absl::Status Register(const std::string& resource_name,
                        const std::string& endpoint,
                        std::chrono::milliseconds deadline);
  // Of the kubelet's socket as it is now; nullopt: there is none.
  absl::StatusOr<std::optional<FileId>> Incarnation() const {
    return IdentifyFile(kubelet_socket_);
  }
  // From any thread: ends the call under way and all later ones.
  void Cancel();

 private:
  const std::string kubelet_socket_;
  std::mutex mutex_;
  grpc::ClientContext* under_way_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace purser::plugin
