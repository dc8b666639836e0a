// SPDX-License-Identifier: Apache-2.0
//
// The open ListAndWatch streams of one resource. Each stream owns its state:
// it gets the list on connect and again whenever the list changes; what changes
// while a message is under way is sent once, in its last form. No stream ever
// waits for another, and none has a thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "plugin/advertisement.h"

namespace purser::plugin {

// Thread-safe. Made by Create(), since the streams share its life with the
// ResourceServer: gRPC frees a stream when it is done with it, which may be
// later than the server's end.
class ListStreams : public std::enable_shared_from_this<ListStreams> {
 public:
  // `changed` is called, from gRPC's threads too, when a stream came or went.
  static std::shared_ptr<ListStreams> Create(std::function<void()> changed);
  ~ListStreams();

  // Sends the list to every stream if it differs from the one before.
  void Update(Advertisement advertisement);
  // nullopt before the first Update().
  std::optional<Advertisement> advertisement() const;

  // For one call of ListAndWatch; owned by gRPC.
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Open();
  // Ends every stream with `status`, each as soon as its message under way is
  // out, and at once those that are opened before Reopen().
  void Close(const grpc::Status& status);
  void Reopen();

  int count() const;
  // Whether a stream is open, and since when that is so: since one was opened
  // or the last one ended, or since construction.
  struct Presence {
    bool open = false;
    std::chrono::steady_clock::time_point since;
  };
  Presence presence() const;
  // Since construction: streams opened, and lists sent in all.
  uint64_t opened() const;
  uint64_t sent() const;

 private:
  class Stream;
  explicit ListStreams(std::function<void()> changed);
  // What keeps this alive while the stream goes.
  std::shared_ptr<ListStreams> Remove(Stream* stream);

  const std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::optional<Advertisement> advertisement_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Status> closed_ ABSL_GUARDED_BY(mutex_);
  std::list<Stream*> streams_ ABSL_GUARDED_BY(mutex_);
  uint64_t opened_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point present_since_
      ABSL_GUARDED_BY(mutex_);  // or absent since
};

}  // namespace purser::plugin
