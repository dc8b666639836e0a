// SPDX-License-Identifier: Apache-2.0
#include "sidecar/attach_streams.h"

#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "sidecar/grpc_status.h"
#include "sidecar/messages.h"

namespace purser::sidecar {

// Lives until gRPC calls OnDone(), which follows Finish(): nothing touches the
// stream after that call. One write at a time, and the end only after it.
class AttachStreams::Stream final
    : public grpc::ServerWriteReactor<v1::AttachEvent> {
 public:
  explicit Stream(AttachStreams& streams) : streams_(streams) {}

  void Begin(const v1::AttachRequest& request) {
    if (!streams_.Add(this)) {
      End(Stopping());
      return;
    }
    absl::StatusOr<std::string> client_id = streams_.broker_.Attach(
        request.name(), [this](const ClientEvent& event) { Tell(event); });
    if (!client_id.ok()) {
      End(ToGrpcStatus(client_id.status()));
      return;
    }
    client_id_ = *client_id;
    v1::AttachEvent event;
    event.mutable_attached()->set_client_id(*std::move(client_id));
    for (const Device* device : streams_.broker_.devices())
      *event.mutable_attached()->add_devices() = DeviceMessage(*device);
    std::unique_lock lock(mutex_);
    waiting_.push_front(std::move(event));
    attached_ = true;
    WriteNext(std::move(lock));
  }

  void End(const grpc::Status& status) {
    std::unique_lock lock(mutex_);
    if (end_.has_value()) return;
    end_ = status;
    WriteNext(std::move(lock));
  }

  static grpc::Status Stopping() {
    return {grpc::StatusCode::UNAVAILABLE, "the sidecar is stopping"};
  }

 private:
  void OnWriteDone(bool) override {
    std::unique_lock lock(mutex_);
    writing_ = false;
    waiting_.pop_front();
    WriteNext(std::move(lock));
  }

  void OnCancel() override {
    End({grpc::StatusCode::CANCELLED, "the client is gone"});
  }

  void OnDone() override {
    if (!client_id_.empty()) streams_.broker_.Detach(client_id_);
    streams_.Remove(this);
    delete this;
  }

  void Tell(const ClientEvent& event) {
    v1::AttachEvent message;
    if (const auto* lost = std::get_if<DeviceLostEvent>(&event))
      message.mutable_device_lost()->set_device(lost->device);
    if (const auto* felt = std::get_if<PressureEvent>(&event))
      *message.mutable_memory_pressure() =
          PressureMessage(felt->scope, felt->pressure);
    std::unique_lock lock(mutex_);
    Replace(message);
    waiting_.push_back(std::move(message));
    WriteNext(std::move(lock));
  }

  // A client that does not read is told of the last pressure only.
  void Replace(const v1::AttachEvent& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!event.has_memory_pressure()) return;
    const auto outdated = [&](const v1::AttachEvent& other) {
      return other.has_memory_pressure() &&
             other.memory_pressure().scope() == event.memory_pressure().scope();
    };
    // Not the one that gRPC is writing.
    auto next = waiting_.begin();
    if (writing_) ++next;
    while (next != waiting_.end())
      next = outdated(*next) ? waiting_.erase(next) : std::next(next);
  }

  // Starts what comes next, if it may start now.
  void WriteNext(std::unique_lock<std::mutex> lock) {
    if (writing_ || finished_) return;
    if (end_.has_value()) {
      finished_ = true;
      const grpc::Status end = *end_;
      lock.unlock();
      Finish(end);
    } else if (attached_ && !waiting_.empty()) {
      writing_ = true;
      const v1::AttachEvent* next = &waiting_.front();
      lock.unlock();
      StartWrite(next);
    }
  }

  AttachStreams& streams_;
  std::string client_id_;  // set once, before gRPC knows the reactor
  std::mutex mutex_;
  std::list<v1::AttachEvent> waiting_ ABSL_GUARDED_BY(mutex_);
  bool attached_ ABSL_GUARDED_BY(mutex_) = false;  // waiting_ has its first
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;   // the first of waiting_
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);
};

grpc::ServerWriteReactor<v1::AttachEvent>* AttachStreams::Open(
    const v1::AttachRequest& request) {
  Stream* stream = new Stream(*this);
  stream->Begin(request);
  return stream;
}

void AttachStreams::Stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  for (Stream* stream : streams_) stream->End(Stream::Stopping());
}

bool AttachStreams::Add(Stream* stream) {
  std::lock_guard lock(mutex_);
  if (stopped_) return false;
  streams_.insert(stream);
  return true;
}

void AttachStreams::Remove(Stream* stream) {
  std::lock_guard lock(mutex_);
  streams_.erase(stream);
}

}  // namespace purser::sidecar
