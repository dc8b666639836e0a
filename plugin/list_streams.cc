// SPDX-License-Identifier: Apache-2.0
#include "plugin/list_streams.h"

#include <utility>

namespace purser::plugin {

// All state is guarded by the ListStreams' mutex, which outlives the stream: so
// OnDone() may free a stream while another thread is just leaving it.
class ListStreams::Stream : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  explicit Stream(std::shared_ptr<ListStreams> streams)
      : streams_(std::move(streams)) {}

  // With the mutex held.
  void Send() {
    if (finished_ || end_) return;
    if (writing_) {
      outdated_ = true;
      return;
    }
    outdated_ = false;
    writing_ = true;
    const grpc::Slice slice(SerializeListAndWatch(*streams_->advertisement_));
    message_ = grpc::ByteBuffer(&slice, 1);
    StartWrite(&message_);
    ++streams_->sent_;
  }

  // With the mutex held. A Finish() beside a write under way would cut it off.
  void End(const grpc::Status& status) {
    if (!end_) end_ = status;
    if (writing_ || finished_) return;
    finished_ = true;
    Finish(*end_);
  }

 private:
  void OnWriteDone(bool ok) override {
    std::lock_guard lock(streams_->mutex_);
    writing_ = false;
    message_.Clear();
    if (end_ || !ok) {
      End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the stream is broken"));
    } else if (outdated_) {
      Send();
    }
  }

  void OnCancel() override {
    std::lock_guard lock(streams_->mutex_);
    End(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    const std::shared_ptr<ListStreams> streams = streams_->Remove(this);
    delete this;
    streams->changed_();
  }

  const std::shared_ptr<ListStreams> streams_;
  grpc::ByteBuffer message_;  // the one under way
  bool writing_ = false;
  bool outdated_ = false;  // the list changed since `message_` was made
  std::optional<grpc::Status> end_;
  bool finished_ = false;
};

std::shared_ptr<ListStreams> ListStreams::Create(
    std::function<void()> changed) {
  return std::shared_ptr<ListStreams>(new ListStreams(std::move(changed)));
}

ListStreams::ListStreams(std::function<void()> changed)
    : changed_(std::move(changed)),
      present_since_(std::chrono::steady_clock::now()) {}

ListStreams::~ListStreams() = default;

void ListStreams::Update(Advertisement advertisement) {
  std::lock_guard lock(mutex_);
  if (advertisement_ == advertisement) return;
  advertisement_ = std::move(advertisement);
  for (Stream* stream : streams_) stream->Send();
}

std::optional<Advertisement> ListStreams::advertisement() const {
  std::lock_guard lock(mutex_);
  return advertisement_;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ListStreams::Open() {
  Stream* stream = nullptr;
  {
    std::lock_guard lock(mutex_);
    stream = new Stream(shared_from_this());
    if (streams_.empty()) present_since_ = std::chrono::steady_clock::now();
    streams_.push_back(stream);
    ++opened_;
    if (closed_) {
      stream->End(*closed_);
    } else if (advertisement_) {
      stream->Send();
    }
  }
  changed_();
  return stream;
}

void ListStreams::Close(const grpc::Status& status) {
  std::lock_guard lock(mutex_);
  closed_ = status;
  for (Stream* stream : streams_) stream->End(status);
}

void ListStreams::Reopen() {
  std::lock_guard lock(mutex_);
  closed_.reset();
}

int ListStreams::count() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(streams_.size());
}

ListStreams::Presence ListStreams::presence() const {
  std::lock_guard lock(mutex_);
  return {!streams_.empty(), present_since_};
}

uint64_t ListStreams::opened() const {
  std::lock_guard lock(mutex_);
  return opened_;
}

uint64_t ListStreams::sent() const {
  std::lock_guard lock(mutex_);
  return sent_;
}

std::shared_ptr<ListStreams> ListStreams::Remove(Stream* stream) {
  std::lock_guard lock(mutex_);
  streams_.remove(stream);
  if (streams_.empty()) present_since_ = std::chrono::steady_clock::now();
  return shared_from_this();
}

}  // namespace purser::plugin
