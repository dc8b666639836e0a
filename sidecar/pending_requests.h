// SPDX-License-Identifier: Apache-2.0
//
// Which work requests a queue pair has outstanding. The device is given a key
// of this table as wr_id, because ibv_wc.opcode is undefined on errors: the key
// tells the direction and leads back to the caller's wr_id. Not thread-safe;
// owned by a WorkQueue.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace purser::sidecar {

class PendingRequests {
 public:
  struct Request {
    uint64_t wr_id = 0;  // the caller's
    bool receive = false;
  };

  // The wr_id to give to the device. The table grows to the most that were ever
  // outstanding at once, 8 bytes each, and allocates nothing after that.
  uint64_t Add(Request request);
  // What was added under `key`, which ends; nothing for a key that Clear()
  // ended. Once for each key.
  std::optional<Request> Take(uint64_t key);
  // Whether a key, of any table, is a receive's.
  static bool IsReceive(uint64_t key) { return key >> 63 != 0; }
  // Ends all; their keys are never valid again.
  void Clear();

  uint32_t sends() const { return sends_; }
  uint32_t receives() const { return receives_; }
  uint32_t total() const { return sends_ + receives_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Of a key, from the top: direction (1 bit), generation (31), slot (32).
  uint32_t generation_ = 0;
  uint32_t first_free_ = kNone;
  uint32_t sends_ = 0, receives_ = 0;
  std::vector<uint64_t> slots_;  // a wr_id, or of a free slot the next free one
};

}  // namespace purser::sidecar
