// SPDX-License-Identifier: Apache-2.0
//
// The channel to the sidecar and the Attach stream, for the classes of this
// directory. Not part of the library's interface.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "purser/v1/sidecar.grpc.pb.h"

namespace purser::client {

// One attachment. Its thread reads the Attach stream until the sidecar ends it
// or the destructor cancels it. Any thread may call.
class Connection {
 public:
  static absl::StatusOr<std::unique_ptr<Connection>> Open(
      const std::string& socket_path, const std::string& name,
      std::chrono::milliseconds rpc_timeout);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::vector<v1::Device>& devices() const { return devices_; }
  // OK while attached, else why not.
  absl::Status status() const;
  absl::Status WaitUntilGone(std::chrono::milliseconds timeout) const;
  std::vector<std::string> lost_devices() const;

  // One RPC, with this client's id filled in where the request has one.
  // `server_wait`: how long the sidecar itself was asked to wait.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      const char* name,
      grpc::Status (v1::Sidecar::Stub::*method)(grpc::ClientContext*,
                                                const Request&, Response*),
      Request request,
      std::chrono::milliseconds server_wait = std::chrono::milliseconds(0)) {
    if (absl::Status gone = status(); !gone.ok()) return gone;
    if constexpr (requires { request.set_client_id(client_id_); })
      request.set_client_id(client_id_);
    grpc::ClientContext context;
    const std::chrono::milliseconds timeout = rpc_timeout_ + server_wait;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    Response response;
    grpc::Status result = ((*stub_).*method)(&context, request, &response);
    if (!result.ok()) return CallError(name, timeout, result);
    return response;
  }

 private:
  Connection(std::string socket_path, std::chrono::milliseconds rpc_timeout);
  // On the attach thread.
  void ReadEvents(const v1::AttachRequest& request);
  void Handle(const v1::AttachEvent& event);
  // Until the first event, which brings the client id.
  absl::Status WaitAttached();
  absl::Status CallError(const char* name, std::chrono::milliseconds timeout,
                         const grpc::Status& result) const;

  const std::string socket_path_;
  const std::chrono::milliseconds rpc_timeout_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Sidecar::Stub> stub_;

  // Written by the attach thread before `attached_`, read after it.
  std::string client_id_;
  std::vector<v1::Device> devices_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool attached_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status gone_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lost_devices_ ABSL_GUARDED_BY(mutex_);

  grpc::ClientContext attach_context_;
  std::jthread attach_thread_;
};

}  // namespace purser::client
