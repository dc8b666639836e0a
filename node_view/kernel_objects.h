// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "node_view/device.h"
#include "node_view/process_table.h"
#include "node_view/queue_sizes.h"
#include "node_view/sources.h"
#include "node_view/view.h"
#include "rdma/resource_netlink.h"

namespace purser::node_view {

// A process's objects on one device.
struct Tally {
  std::map<std::pair<uint8_t, uint8_t>, uint64_t>
      queue_pairs;  // by ib_qp_type and ib_qp_state
  uint64_t completion_queues = 0, shared_receive_queues = 0;
  // What they take by what is told of each; of the kernel's own nothing.
  QueueBytes bytes;

  uint64_t queue_pair_count() const;
};

// Sizes of queue pairs that were asked for one by one, kept while the queue
// pairs last: they do not change.
class RawSizes {
 public:
  struct Known {
    std::optional<Size> size;  // nullopt: the answer was of no use
    uint64_t reading = 0;      // the last that saw the queue pair
  };
  void BeginReading() { ++reading_; }
  // Forgets what was not asked for since BeginReading().
  void EndReading();
  uint64_t reading() const { return reading_; }
  // By queue pair number.
  using OfDevice = std::unordered_map<uint32_t, Known>;
  OfDevice& Of(const std::string& device) { return devices_[device]; }

 private:
  std::map<std::string, OfDevice> devices_;
  uint64_t reading_ = 0;
};

// Reads what the kernel lists of one device after the other. An object is its
// process's by the thread that made it; where that thread has ended, by that
// which made its protection domain or its context. Lives as long as a reading.
class KernelObjects {
 public:
  KernelObjects(rdma::ResourceNetlink& netlink, ProcessTable& processes,
                RawSizes& raw_sizes, SourceReport& report)
      : netlink_(netlink),
        processes_(processes),
        raw_sizes_(raw_sizes),
        report_(report) {}

  // By process, as ProcessTable has them. An error: the device could not be
  // listed (it may be gone).
  absl::StatusOr<std::map<size_t, Tally>> Read(const Device& device,
                                               uint32_t device_index);

 private:
  struct Owners {
    std::unordered_map<uint32_t, uint32_t> pid_of_context;
    struct Domain {
      std::optional<uint32_t> pid, context;
    };
    std::unordered_map<uint32_t, Domain> domains;
  };
  struct UnsizedQueuePair {
    size_t process;
    rdma::ResourceRecord record;  // without its views
  };

  absl::Status ReadOwners(uint32_t device_index, Owners& owners);
  size_t ProcessOf(const rdma::ResourceRecord& record, const Owners& owners);
  void AddRawSizes(const Device& device, uint32_t device_index,
                   const std::vector<UnsizedQueuePair>& queue_pairs,
                   std::map<size_t, Tally>& tallies);
  std::optional<Size> AskForSize(const Device& device, uint32_t device_index,
                                 const rdma::ResourceRecord& record);
  std::optional<Size> SizeByRawContext(const Device& device,
                                       uint32_t device_index,
                                       const rdma::ResourceRecord& record,
                                       RawSizes::OfDevice& known);

  rdma::ResourceNetlink& netlink_;
  ProcessTable& processes_;
  RawSizes& raw_sizes_;
  SourceReport& report_;
  int asked_ = 0;
  bool may_ask_ = true;
};

}  // namespace purser::node_view
