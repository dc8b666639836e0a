// SPDX-License-Identifier: Apache-2.0
//
// The interface of a provider's rules; each in the file of its name. They get
// limits of which none that they ask for is 0 (EffectiveLimits), and requests
// of a type that the provider has. Internal to queue_memory/.
#pragma once

#include "queue_memory/queue_memory.h"
#include "queue_memory/registry.h"

namespace purser::queue_memory {

struct ProviderRules {
  ProviderTraits traits;
  // Completion queue entries that the provider's own code takes at most.
  uint32_t most_cqe = UINT32_MAX;
  QueueMemory (*queue_pair)(const DeviceLimits&, const QueuePairRequest&);
  // From 1 to what the device and the provider take.
  QueueMemory (*completion_queue)(const DeviceLimits&, uint32_t cqe);
  // Within what the device takes, 1 at least. Null where
  // !traits.has_shared_receive_queues.
  QueueMemory (*shared_receive_queue)(const DeviceLimits&,
                                      const SharedReceiveQueueRequest&);
};

extern const ProviderRules kMlx5Rules, kMlx4Rules, kIrdmaRules, kBnxtReRules,
    kEfaRules, kErdmaRules, kHnsRules, kManaRules, kQedrRules, kRxeRules,
    kSiwRules, kOcrdmaRules, kCxgb4Rules, kIonicRules;
// For providers without rules of their own.
extern const ProviderRules kTextbookRules;

const ProviderRules& RulesOf(Provider provider);

// What was told, else `defaults`, else no limit; bounded so that no product of
// the rules leaves 64 bits (arithmetic.h).
DeviceLimits WithDefaults(const DeviceLimits& told,
                          const DeviceLimits& defaults);

}  // namespace purser::queue_memory
