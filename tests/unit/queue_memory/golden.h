// SPDX-License-Identifier: Apache-2.0
//
// The rows of tests/testdata/golden: what providers' own code allocates.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "queue_memory/queue_memory.h"

namespace purser::queue_memory {

struct GoldenQueuePair {
  std::string file;
  int line = 0;
  QueuePairRequest request;  // type and send_ops only where the model has them
  std::string type, send_ops, charged;
  bool ok = false;
  uint64_t sq_bytes = 0, rq_bytes = 0, buffer_bytes = 0, heap_bytes = 0;
  uint32_t cap_send_wr = 0, cap_send_sge = 0, cap_inline_data = 0,
           cap_recv_wr = 0, cap_recv_sge = 0;
};

struct GoldenCompletionQueue {
  int line = 0;
  std::string provider, charged;
  uint32_t cqe = 0;
  bool ok = false;
  uint32_t cap_cqe = 0, cqe_size = 0;
  uint64_t buffer_bytes = 0;
};

// Fails the running test and returns nothing when the file cannot be read.
std::vector<GoldenQueuePair> ReadQueuePairs(const std::string& provider);
std::vector<GoldenCompletionQueue> ReadCompletionQueues();
// Every provider with a file of queue pairs.
std::vector<std::string> QueuePairProviders();

std::ostream& operator<<(std::ostream& out, const GoldenQueuePair& row);
std::ostream& operator<<(std::ostream& out, const GoldenCompletionQueue& row);
std::ostream& operator<<(std::ostream& out, const Charge& charge);

}  // namespace purser::queue_memory
