// SPDX-License-Identifier: Apache-2.0
//
// What queue pairs of one kind have in common and never changes. A client makes
// most of its queue pairs alike, so they share it: several hundred bytes for
// each otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "queue_memory/queue_memory.h"
#include "rdma/verbs.h"

namespace purser::sidecar {

struct QueuePairShape {
  ibv_qp_type type = IBV_QPT_RC;
  uint64_t send_ops = 0;  // declared (send_operations.h); 0: any
  ibv_qp_cap cap{};       // as ibv_create_qp wrote back
  queue_memory::QueuePairRequest request;
  queue_memory::QueueMemory memory;  // with its own completion queue's

  // What the rings really take.
  uint32_t send_slots() const;
  uint32_t recv_slots() const;
  friend bool operator==(const QueuePairShape& a, const QueuePairShape& b);
};

// The shapes made last. Any thread.
class QueuePairShapes {
 public:
  // One that is equal: an earlier one that is in use, where it is among the
  // last few.
  std::shared_ptr<const QueuePairShape> Intern(const QueuePairShape& shape);

 private:
  std::mutex mutex_;
  std::array<std::weak_ptr<const QueuePairShape>, 16> last_
      ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace purser::sidecar
