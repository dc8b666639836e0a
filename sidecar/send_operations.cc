// SPDX-License-Identifier: Apache-2.0
#include "sidecar/send_operations.h"

namespace purser::sidecar {
namespace {

struct NamedOperation {
  ibv_wr_opcode opcode;
  uint64_t bit;
  const char* name;
};
constexpr NamedOperation kOperations[] = {
    {IBV_WR_SEND, IBV_QP_EX_WITH_SEND, "SEND"},
    {IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM, "SEND_WITH_IMM"},
    {IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE, "RDMA_WRITE"},
    {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
     "RDMA_WRITE_WITH_IMM"},
    {IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ, "RDMA_READ"},
};

}  // namespace

uint64_t SendOpOf(ibv_wr_opcode opcode) {
  for (const NamedOperation& operation : kOperations)
    if (operation.opcode == opcode) return operation.bit;
  return 0;
}

std::string SendOpNames(uint64_t declared) {
  std::string names;
  for (const NamedOperation& operation : kOperations)
    if ((declared & operation.bit) != 0)
      names += (names.empty() ? "" : ", ") + std::string(operation.name);
  return names;
}

queue_memory::QueuePairRequest WithSendOps(
    queue_memory::Provider provider, const queue_memory::DeviceLimits& limits,
    const queue_memory::QueuePairRequest& request, uint64_t declared) {
  if (declared == 0) return request;
  queue_memory::QueuePairRequest narrow = request;
  narrow.send_ops = queue_memory::kSendOpsPlain;
  const auto stride = [&](const queue_memory::QueuePairRequest& of) {
    return queue_memory::QueuePairMemory(provider, limits, of).send_ring.stride;
  };
  return stride(narrow) != stride(request) ? narrow : request;
}

}  // namespace purser::sidecar
