// SPDX-License-Identifier: Apache-2.0
//
// The Attach streams: each stands for a client. However a stream ends (the
// client cancels, its process dies, the sidecar stops), the client is detached,
// once. Streams hold no thread. Any thread; outlives the server.
#pragma once

#include <mutex>
#include <set>

#include "absl/base/thread_annotations.h"
#include "grpcpp/support/server_callback.h"
#include "purser/v1/sidecar.pb.h"
#include "sidecar/broker.h"

namespace purser::sidecar {

class AttachStreams {
 public:
  explicit AttachStreams(Broker& broker) : broker_(broker) {}

  // A reactor that owns itself.
  grpc::ServerWriteReactor<v1::AttachEvent>* Open(
      const v1::AttachRequest& request);
  // Ends all with UNAVAILABLE, and every later one at once.
  void Stop();

 private:
  class Stream;
  // False after Stop().
  bool Add(Stream* stream);
  void Remove(Stream* stream);

  Broker& broker_;
  std::mutex mutex_;
  std::set<Stream*> streams_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace purser::sidecar
