// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deviceplugin/v1beta1/api.grpc.pb.h"

namespace purser::fakes {

// The fake kubelet's end of one plugin: a connection, and one thread that reads
// ListAndWatch until it ends. Like the kubelet's client it never dials again
// and takes no message over 4 MiB.
class KubeletEndpoint {
 public:
  using OnList = std::function<void(const v1beta1::ListAndWatchResponse&)>;
  using OnEnd = std::function<void(const grpc::Status&)>;

  // Dials and asks for the options, as the kubelet does inside Register.
  static absl::StatusOr<std::unique_ptr<KubeletEndpoint>> Dial(
      const std::string& socket_path, std::chrono::milliseconds deadline);
  ~KubeletEndpoint();

  // Both are called on the reader's thread.
  void Watch(OnList on_list, OnEnd on_end);
  // Ends the stream and waits for the reader.
  void Stop();
  // Ends the stream and leaves the rest to OnEnd.
  void CancelStream() { context_.TryCancel(); }

  absl::StatusOr<v1beta1::AllocateResponse> Allocate(
      const v1beta1::AllocateRequest& request);
  const std::string& path() const { return path_; }
  // In the plugin's order; nothing where it has no preference.
  std::vector<std::string> Prefer(const std::vector<std::string>& available,
                                  int size);
  // For calls that the kubelet itself would not make.
  v1beta1::DevicePlugin::Stub& stub() { return *stub_; }
  const v1beta1::DevicePluginOptions& options() const { return options_; }

 private:
  KubeletEndpoint(std::string path,
                  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub);
  const std::string path_;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  v1beta1::DevicePluginOptions options_;
  grpc::ClientContext context_;
  std::thread reader_;
};

absl::Status FromGrpc(const grpc::Status& status);

}  // namespace purser::fakes
