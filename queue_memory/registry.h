// SPDX-License-Identifier: Apache-2.0
//
// Which providers the model knows: by name, by kernel driver, one after the
// other, with what each has and how well it is known. Pure and freestanding,
// as the model.
#pragma once

#include <compare>
#include <cstdint>
#include <span>

#include "queue_memory/queue_memory.h"

namespace purser::queue_memory {

constexpr uint32_t Bit(QueuePairType type) {
  const auto bit = static_cast<uint32_t>(type);
  return bit < 32 ? 1u << bit : 0;
}

// How many objects a device has, named as in ibv_device_attr. 0: not known. No
// input of the model.
struct ObjectCounts {
  uint64_t max_qp = 0;
  uint64_t max_cq = 0;
  uint64_t max_mr = 0;
  uint64_t max_srq = 0;
};

struct ProviderTraits {
  Provider provider = Provider::kUnknown;
  const char* name = "";  // rdma-core's
  // Of the device's driver in sysfs, of its RDMA module: whatever a device may
  // be found by. The rest is null.
  const char* kernel_names[4] = {};
  const char* devices = "";  // for people

  Exactness queue_pairs = Exactness::kExact;
  Exactness completion_queues = Exactness::kExact;
  Exactness shared_receive_queues = Exactness::kEstimated;

  uint32_t queue_pair_types = 0;  // Bit() of each
  bool has_shared_receive_queues = true;
  bool has_adapter = true;  // false: a software transport
  // Who pays for rings. Both for efa: its send ring's copy is the process's,
  // the rest the kernel's.
  bool charges_container = true;
  bool charges_node = false;
  // Rings lie in the process's memory and are pinned for the device, so that
  // they count against RLIMIT_MEMLOCK.
  bool pins_rings = true;
  // Listing fewer send operations makes the send ring smaller.
  bool send_ops_change_sizes = false;

  // What is taken where the device does not tell.
  DeviceLimits defaults;
  ObjectCounts counts;

  constexpr bool Has(QueuePairType type) const {
    return (queue_pair_types & Bit(type)) != 0;
  }
};

// Every provider with a rule, most common first; not kUnknown.
std::span<const Provider> KnownProviders();
// Those of the fallback for kUnknown and for values that are none.
const ProviderTraits& TraitsOf(Provider provider);

// What the model works with: what was told, else the provider's default.
// UINT32_MAX (or another figure beyond any device) where neither says anything.
DeviceLimits EffectiveLimits(Provider provider, const DeviceLimits& told);

// What `told` says, else `base`; yes and no are those of `base`. For what a
// device tells over what its profile has.
DeviceLimits Overlay(const DeviceLimits& base, const DeviceLimits& told);

ObjectCounts Overlay(const ObjectCounts& base, const ObjectCounts& told);

// One provider on one kind of device or kernel where its rule differs from the
// default one.
struct DeviceProfile {
  const char* name = "";  // "irdma_gen1"; of the default, the provider's
  Provider provider = Provider::kUnknown;
  const char* what = "";  // for people: "X722"
  DeviceLimits limits;
  ObjectCounts counts;  // where they differ from the provider's
};

// The default profile of each known provider and all others.
std::span<const DeviceProfile> KnownProfiles();
// By a profile's name, a provider's or a kernel driver's; null where there is
// none.
const DeviceProfile* FindProfile(const char* name);

struct KernelVersion {
  uint32_t release = 0, series = 0, patch = 0;  // 6.1.99
  friend constexpr auto operator<=>(const KernelVersion&,
                                    const KernelVersion&) = default;
};
// Where the provider's rule depends on the kernel: the profile that it has
// there. Null where it does not.
const DeviceProfile* ProfileOfKernel(Provider provider,
                                     const KernelVersion& version);

}  // namespace purser::queue_memory
