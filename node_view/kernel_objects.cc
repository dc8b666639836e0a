// SPDX-License-Identifier: Apache-2.0
#include "node_view/kernel_objects.h"

#include <array>

#include "base/status_macros.h"

namespace purser::node_view {
namespace {

using queue_memory::Provider;
using rdma::ResourceKind;
using rdma::ResourceRecord;

// Each is a command to the device's firmware: the rest is asked for at the next
// readings.
constexpr int kMostAskedInAReading = 1000;

// Kernels before 5.13 do not list contexts and shared receive queues.
absl::Status Tolerate(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsUnimplemented(status)
             ? absl::OkStatus()
             : status;
}

// Of each type of queue pair on one device, reckoned once.
class AssumedSizes {
 public:
  explicit AssumedSizes(const Device& device) : device_(device) {}
  Size OfQueuePair(uint8_t type) {
    std::optional<Size>& size = sizes_[type];
    if (!size) size = AssumedQueuePair(device_, type);
    return *size;
  }

 private:
  const Device& device_;
  std::array<std::optional<Size>, 256> sizes_;
};

}  // namespace

uint64_t Tally::queue_pair_count() const {
  uint64_t count = 0;
  for (const auto& [type_and_state, of_those] : queue_pairs) count += of_those;
  return count;
}

void RawSizes::EndReading() {
  for (auto& [name, sizes] : devices_)
    std::erase_if(sizes, [this](const auto& entry) {
      return entry.second.reading != reading_;
    });
}

absl::Status KernelObjects::ReadOwners(uint32_t device_index, Owners& owners) {
  const auto learn = [&owners](const ResourceRecord& record) {
    const std::optional<uint32_t> context =
        record.kind == ResourceKind::kContext ? record.id : record.context;
    if (record.pid && context)
      owners.pid_of_context.try_emplace(*context, *record.pid);
    if (record.kind == ResourceKind::kProtectionDomain && record.id)
      owners.domains[*record.id] = {record.pid, record.context};
  };
  PURSER_RETURN_IF_ERROR(
      Tolerate(netlink_.Dump(ResourceKind::kContext, device_index, learn)));
  return netlink_.Dump(ResourceKind::kProtectionDomain, device_index, learn);
}

size_t KernelObjects::ProcessOf(const ResourceRecord& record,
                                const Owners& owners) {
  if (record.of_kernel()) return ProcessTable::kKernel;
  std::optional<uint32_t> pid = record.pid, context = record.context;
  if (!pid && record.protection_domain) {
    const auto domain = owners.domains.find(*record.protection_domain);
    if (domain != owners.domains.end()) {
      pid = domain->second.pid;
      if (!context) context = domain->second.context;
    }
  }
  if (!pid && context) {
    const auto found = owners.pid_of_context.find(*context);
    if (found != owners.pid_of_context.end()) pid = found->second;
  }
  if (!pid || *pid > INT32_MAX) return ProcessTable::kUnknown;
  return processes_.Find(static_cast<pid_t>(*pid));
}

std::optional<Size> KernelObjects::AskForSize(const Device& device,
                                              uint32_t device_index,
                                              const ResourceRecord& record) {
  ++asked_;
  const absl::StatusOr<std::vector<std::byte>> raw =
      netlink_.RawQueuePair(device_index, record.local_qpn);
  // Gone since it was listed.
  if (absl::IsInvalidArgument(raw.status())) return std::nullopt;
  if (!raw.ok()) {
    may_ask_ = false;
    report_.Without(kRawContext, raw.status());
    return std::nullopt;
  }
  std::optional<Size> size;
  if (const auto rings = ParseMlx5QueuePair(*raw, record))
    size = SizeOfMlx5(device, *rings);
  if (size) {
    report_.Used(kRawContext);
  } else {
    report_.Without(kRawContext, "failed",
                    "the device's record of a queue pair is not understood");
  }
  return size;
}

std::optional<Size> KernelObjects::SizeByRawContext(
    const Device& device, uint32_t device_index, const ResourceRecord& record,
    RawSizes::OfDevice& known) {
  const auto found = known.find(record.local_qpn);
  if (found != known.end()) {
    found->second.reading = raw_sizes_.reading();
    return found->second.size;
  }
  if (!may_ask_ || asked_ >= kMostAskedInAReading) return std::nullopt;
  const std::optional<Size> size = AskForSize(device, device_index, record);
  if (may_ask_) known[record.local_qpn] = {size, raw_sizes_.reading()};
  return size;
}

void KernelObjects::AddRawSizes(
    const Device& device, uint32_t device_index,
    const std::vector<UnsizedQueuePair>& queue_pairs,
    std::map<size_t, Tally>& tallies) {
  RawSizes::OfDevice& known = raw_sizes_.Of(device.name);
  AssumedSizes assumed(device);
  for (const UnsizedQueuePair& unsized_one : queue_pairs) {
    const ResourceRecord& record = unsized_one.record;
    const std::optional<Size> size =
        SizeByRawContext(device, device_index, record, known);
    const Size taken = size ? *size : assumed.OfQueuePair(record.type);
    tallies[unsized_one.process].bytes.Add(taken.charge, taken.exact);
  }
}

absl::StatusOr<std::map<size_t, Tally>> KernelObjects::Read(
    const Device& device, uint32_t device_index) {
  Owners owners;
  PURSER_RETURN_IF_ERROR(ReadOwners(device_index, owners));
  std::map<size_t, Tally> tallies;
  std::vector<UnsizedQueuePair> unsized_queue_pairs;
  AssumedSizes assumed(device);
  const Size assumed_srq = AssumedSharedReceiveQueue(device);
  const auto count = [&](const ResourceRecord& record) {
    const size_t process = ProcessOf(record, owners);
    Tally& tally = tallies[process];
    Size size;
    if (record.kind == ResourceKind::kCompletionQueue) {
      ++tally.completion_queues;
      size = SizeOfCompletionQueue(device, record.cqe);
    } else if (record.kind == ResourceKind::kSharedReceiveQueue) {
      ++tally.shared_receive_queues;
      size = assumed_srq;
    } else {
      ++tally.queue_pairs[{record.type, record.state}];
      if (device.provider == Provider::kMlx5 && !record.of_kernel()) {
        ResourceRecord kept = record;
        kept.kernel_owner = {};
        kept.driver = {};
        unsized_queue_pairs.push_back({process, kept});
        return;
      }
      const std::optional<Size> told = SizeByDriver(device, record);
      size = told ? *told : assumed.OfQueuePair(record.type);
    }
    if (!record.of_kernel()) tally.bytes.Add(size.charge, size.exact);
  };
  PURSER_RETURN_IF_ERROR(
      netlink_.Dump(ResourceKind::kCompletionQueue, device_index, count));
  PURSER_RETURN_IF_ERROR(Tolerate(
      netlink_.Dump(ResourceKind::kSharedReceiveQueue, device_index, count)));
  PURSER_RETURN_IF_ERROR(
      netlink_.Dump(ResourceKind::kQueuePair, device_index, count));
  AddRawSizes(device, device_index, unsized_queue_pairs, tallies);
  return tallies;
}

}  // namespace purser::node_view
