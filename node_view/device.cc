// SPDX-License-Identifier: Apache-2.0
#include "node_view/device.h"

#include "queue_memory/registry.h"
#include "rdma/queue_pair_states.h"

namespace purser::node_view {

using queue_memory::Provider;

Device DeviceOf(const rdma::SysfsDevice& sysfs, uint32_t page_size) {
  Device device{
      .name = sysfs.name, .uverbs = sysfs.uverbs, .provider = sysfs.provider};
  if (const auto* profile = queue_memory::FindProfile(sysfs.driver.c_str());
      profile != nullptr && profile->provider == sysfs.provider)
    device.limits = profile->limits;
  device.limits.page_size = page_size;
  return device;
}

bool MapsItsRings(Provider provider) {
  return provider == Provider::kRxe || provider == Provider::kSiw;
}

bool OffsetsAreOfTheDevice(Provider provider) {
  return provider == Provider::kRxe;
}

const char* QueuePairTypeName(uint8_t ib_type) {
  // Those that no process can ask for: ib_qp_type.
  if (ib_type == 0) return "SMI";
  if (ib_type == 1) return "GSI";
  return rdma::QueuePairTypeName(static_cast<ibv_qp_type>(ib_type));
}

const char* QueuePairStateName(uint8_t ib_state) {
  // No other value may become an ibv_qp_state at all.
  return ib_state > IBV_QPS_ERR
             ? "UNKNOWN"
             : rdma::StateName(static_cast<ibv_qp_state>(ib_state));
}

}  // namespace purser::node_view
