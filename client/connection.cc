// SPDX-License-Identifier: Apache-2.0
#include "client/connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <sys/un.h>

#include "base/status_macros.h"
#include "client/grpc_status.h"
#include "spdlog/fmt/fmt.h"

namespace purser::client {
namespace {

constexpr char kRemedy[] =
    "check that the pod's purser-sidecar container runs and that its shared "
    "volume is mounted in this container";

// How long after a failed call the end of the Attach stream is awaited.
constexpr std::chrono::milliseconds kNewsOfTheEnd{200};

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  // A fresh connection for each client, not one that is backing off since the
  // sidecar was down for a client before.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(
      "unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

Connection::Connection(std::string socket_path,
                       std::chrono::milliseconds rpc_timeout)
    : socket_path_(std::move(socket_path)), rpc_timeout_(rpc_timeout) {}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(
    const std::string& socket_path, const std::string& name,
    std::chrono::milliseconds rpc_timeout) {
  constexpr size_t max_path = sizeof(sockaddr_un::sun_path) - 1;
  if (socket_path.empty() || socket_path.size() > max_path)
    return absl::InvalidArgumentError(fmt::format(
        "the path of the sidecar's socket has {} bytes, a unix socket takes 1 "
        "to {}: '{}'",
        socket_path.size(), max_path, socket_path));
  std::unique_ptr<Connection> connection(
      new Connection(socket_path, rpc_timeout));
  connection->channel_ = OpenChannel(socket_path);
  connection->stub_ = v1::Sidecar::NewStub(connection->channel_);
  v1::AttachRequest request;
  request.set_name(name);
  connection->attach_thread_ =
      std::jthread([self = connection.get(), request = std::move(request)] {
        self->ReadEvents(request);
      });
  PURSER_RETURN_IF_ERROR(connection->WaitAttached());
  return connection;
}

Connection::~Connection() { attach_context_.TryCancel(); }

void Connection::ReadEvents(const v1::AttachRequest& request) {
  std::unique_ptr<grpc::ClientReader<v1::AttachEvent>> reader =
      stub_->Attach(&attach_context_, request);
  v1::AttachEvent event;
  while (reader->Read(&event)) Handle(event);
  absl::Status end = FromGrpc(reader->Finish());

  std::lock_guard lock(mutex_);
  if (attached_) {
    gone_ = absl::UnavailableError(fmt::format(
        "the sidecar at {} is gone ({}): the queue pairs and memory regions of "
        "this client no longer exist; connect again when it is back",
        socket_path_,
        end.ok() ? "it ended the connection" : std::string(end.message())));
  } else if (end.ok() || absl::IsUnavailable(end)) {
    gone_ = absl::UnavailableError(fmt::format(
        "no sidecar answers at {} ({}): {}", socket_path_,
        end.ok() ? "it ended the connection" : std::string(end.message()),
        kRemedy));
  } else {
    gone_ = end;
  }
  changed_.notify_all();
}

void Connection::Handle(const v1::AttachEvent& event) {
  std::lock_guard lock(mutex_);
  if (event.has_attached() && !attached_) {
    client_id_ = event.attached().client_id();
    devices_.assign(event.attached().devices().begin(),
                    event.attached().devices().end());
    attached_ = true;
  } else if (event.has_device_lost()) {
    lost_devices_.push_back(event.device_lost().device());
  }
  changed_.notify_all();
}

absl::Status Connection::WaitAttached() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, rpc_timeout_,
                         [this] { return attached_ || !gone_.ok(); }))
    return absl::DeadlineExceededError(fmt::format(
        "the sidecar at {} did not answer Attach within {} ms: it hangs, or "
        "another program listens there",
        socket_path_, rpc_timeout_.count()));
  return gone_;
}

absl::Status Connection::status() const {
  std::lock_guard lock(mutex_);
  return gone_;
}

absl::Status Connection::WaitUntilGone(
    std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [this] { return !gone_.ok(); });
  return gone_;
}

std::vector<std::string> Connection::lost_devices() const {
  std::lock_guard lock(mutex_);
  return lost_devices_;
}

absl::Status Connection::CallError(const char* name,
                                   std::chrono::milliseconds timeout,
                                   const grpc::Status& result) const {
  switch (result.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::DeadlineExceededError(
          fmt::format("the sidecar at {} did not answer {} within {} ms",
                      socket_path_, name, timeout.count()));
    case grpc::StatusCode::UNAUTHENTICATED:
      // It restarted, or ended the Attach stream, and this call was faster than
      // the news of it.
      return absl::UnavailableError(fmt::format(
          "the sidecar at {} no longer knows this client: {}; connect again",
          socket_path_, result.error_message()));
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
      // The connection broke or the sidecar is stopping, which ends the Attach
      // stream too; or the sidecar itself says so of a lost device.
      if (absl::Status gone = WaitUntilGone(kNewsOfTheEnd); !gone.ok())
        return gone;
      break;
    default:
      break;
  }
  return FromGrpc(result);
}

}  // namespace purser::client
