// SPDX-License-Identifier: Apache-2.0
//
// All that the node view reads of the kernel: the first byte of the input says
// what the rest is.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "node_view/container_names.h"
#include "node_view/kernel_rings.h"
#include "node_view/lines.h"
#include "node_view/mlx5_context.h"
#include "node_view/pod_cgroup.h"
#include "node_view/queue_sizes.h"
#include "node_view/ring_mapping.h"
#include "rdma/resource_messages.h"
#include "tests/fuzz/fuzz.h"

namespace purser::node_view {
namespace {

void FuzzText(uint8_t what, std::string_view text) {
  switch (what) {
    case 0:
      ForEachLine(text, [](std::string_view line) {
        if (const auto mapping = ParseRingMapping(line))
          fuzz::Require(mapping->end >= mapping->start &&
                        mapping->uverbs.starts_with("uverbs"));
      });
      break;
    case 1:
      if (const auto cgroup = ParsePodCgroup(text))
        fuzz::Require(!cgroup->pod_uid.empty() ||
                      !cgroup->container_id.empty());
      break;
    case 2:
      ForEachLine(text, [](std::string_view line) {
        (void)ParseVmallocArea(line, 4096);
      });
      break;
    default:
      if (const auto named = ParseLogName(text))
        fuzz::Require(!named->name.pod.empty() && !named->id.empty());
  }
}

void FuzzNetlink(rdma::Bytes datagram) {
  const Device bnxt_re{
      "a", "uverbs0", queue_memory::Provider::kBnxtRe, {.page_size = 4096}};
  const Device hns{
      "b", "uverbs1", queue_memory::Provider::kHns, {.page_size = 4096}};
  for (const auto kind :
       {rdma::ResourceKind::kContext, rdma::ResourceKind::kProtectionDomain,
        rdma::ResourceKind::kCompletionQueue,
        rdma::ResourceKind::kSharedReceiveQueue,
        rdma::ResourceKind::kQueuePair}) {
    (void)rdma::ParseResources(
        datagram, kind, [&](const rdma::ResourceRecord& record) {
          (void)SizeByDriver(bnxt_re, record);
          (void)SizeByDriver(hns, record);
          (void)SizeOfCompletionQueue(bnxt_re, record.cqe);
          (void)QueuePairTypeName(record.type);
          (void)QueuePairStateName(record.state);
        });
  }
  std::vector<rdma::NetlinkDevice> devices;
  (void)rdma::ParseDevices(datagram, &devices);
  std::vector<std::byte> raw;
  (void)rdma::ParseRawQueuePair(datagram, &raw);
}

void FuzzMlx5(rdma::Bytes raw) {
  rdma::ResourceRecord record;
  record.local_qpn = 0x4a;
  record.type = 2;
  const Device device{
      "c", "uverbs0", queue_memory::Provider::kMlx5, {.page_size = 4096}};
  if (const auto rings = ParseMlx5QueuePair(raw, record))
    (void)SizeOfMlx5(device, *rings);
}

}  // namespace
}  // namespace purser::node_view

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t what = data[0] % 6;
  // Of its own, so that it is aligned as a socket's buffer is and its end is
  // the end.
  const auto* bytes = reinterpret_cast<const std::byte*>(data + 1);
  const std::vector<std::byte> rest(bytes, bytes + size - 1);
  if (what == 4) {
    purser::node_view::FuzzNetlink(rest);
  } else if (what == 5) {
    purser::node_view::FuzzMlx5(rest);
  } else {
    purser::node_view::FuzzText(
        what, {reinterpret_cast<const char*>(rest.data()), rest.size()});
  }
  return 0;
}
