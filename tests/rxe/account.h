// SPDX-License-Identifier: Apache-2.0
//
// What a sidecar says that it holds, summed over its objects.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "client/client.h"

namespace purser::rxe {

struct Account {
  uint64_t rings = 0;     // mapped
  uint64_t overhead = 0;  // the node's beside them
  uint64_t charged = 0;   // all

  void Add(const v1::QueueMemory& memory) {
    rings += memory.send().node_bytes() + memory.receive().node_bytes() +
             memory.completion().node_bytes() +
             memory.shared_receive().node_bytes();
    overhead += memory.overhead().node_bytes();
    charged += memory.total_bytes();
  }
};

inline Account ReadAccount(client::Client& client) {
  Account account;
  const auto listed = client.List();
  EXPECT_TRUE(listed.ok()) << listed.status();
  for (const v1::QueuePair& queue_pair : *listed)
    account.Add(queue_pair.memory());
  const auto status = client.SidecarStatus();
  EXPECT_TRUE(status.ok()) << status.status();
  for (const v1::CompletionQueue& queue : status->completion_queues())
    account.Add(queue.memory());
  for (const v1::SharedReceiveQueue& queue : status->shared_receive_queues())
    account.Add(queue.memory());
  return account;
}

}  // namespace purser::rxe
