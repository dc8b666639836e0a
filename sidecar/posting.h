// SPDX-License-Identifier: Apache-2.0
//
// Work requests of messages to work requests of verbs. As ibv_post_send: those
// before the first wrong one are posted, the answer tells which that was.
#pragma once

#include <string>

#include "purser/v1/sidecar.pb.h"
#include "sidecar/brokered_queue_pair.h"
#include "sidecar/brokered_shared_receive_queue.h"
#include "sidecar/regions.h"

namespace purser::sidecar {

PostResult PostSends(const v1::PostSendRequest& request, const Regions& regions,
                     BrokeredQueuePair& queue_pair);
PostResult PostReceives(const v1::PostReceiveRequest& request,
                        const Regions& regions, BrokeredQueuePair& queue_pair);
PostResult PostReceives(const v1::PostReceiveRequest& request,
                        const Regions& regions,
                        BrokeredSharedReceiveQueue& queue);

}  // namespace purser::sidecar
