// SPDX-License-Identifier: Apache-2.0
//
// The operations that a queue pair's owner declared to post: a set of bits of
// ibv_qp_create_send_ops_flags; 0 is any. Where the provider then makes a
// smaller ring, to post another one would overwrite what lies beside it there,
// so a WorkQueue refuses it. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "queue_memory/queue_memory.h"
#include "rdma/verbs.h"

namespace purser::sidecar {

// SEND, RDMA WRITE and RDMA READ, with immediate data or without.
inline constexpr uint64_t kPlainSendOps =
    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
    IBV_QP_EX_WITH_RDMA_READ;

// The operation's bit; 0 for one that is not among kPlainSendOps.
uint64_t SendOpOf(ibv_wr_opcode opcode);

inline bool MayPost(uint64_t declared, ibv_wr_opcode opcode) {
  return declared == 0 || (declared & SendOpOf(opcode)) != 0;
}

// "SEND, RDMA_READ".
std::string SendOpNames(uint64_t declared);

// `request` with what was declared, if the provider makes another ring of it;
// else as it is.
queue_memory::QueuePairRequest WithSendOps(
    queue_memory::Provider provider, const queue_memory::DeviceLimits& limits,
    const queue_memory::QueuePairRequest& request, uint64_t declared);

// What to create a queue pair of that request with. The memory model knows one
// size for all plain operations, so that all of them are named, however few
// were declared.
constexpr uint64_t CreateFlags(const queue_memory::QueuePairRequest& request) {
  return request.send_ops == queue_memory::kDefaultSendOps ? 0 : kPlainSendOps;
}

}  // namespace purser::sidecar
