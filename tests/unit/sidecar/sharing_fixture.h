// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/sidecar/fake_sidecar.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {

using QueuePair = std::shared_ptr<BrokeredQueuePair>;

// Queue pairs of one fake sidecar that share queues. They are connected to
// themselves, and write nothing, which needs no receive.
class SharingTest : public ::testing::Test {
 protected:
  explicit SharingTest(FakeSidecarOptions options = {.mlx5 = true})
      : sidecar_(std::move(options)), client_(sidecar_.Attach("app")) {}

  QueuePairs::CreateRequest Request(uint32_t send_wr = 100,
                                    uint32_t recv_wr = 100) {
    return {.client_id = client_,
            .device = &sidecar_.device(),
            .cap = {.max_send_wr = send_wr,
                    .max_recv_wr = recv_wr,
                    .max_send_sge = 2,
                    .max_recv_sge = 1},
            .completions = CompletionOffer::Kind::kShared,
            .completion_queue = "all"};
  }
  QueuePair Create(const QueuePairs::CreateRequest& request) {
    QueuePairs::CreateResult result = sidecar_.queue_pairs().Create(request);
    if (const auto* refusal = std::get_if<Refusal>(&result))
      ADD_FAILURE() << refusal->message;
    if (const auto* status = std::get_if<absl::Status>(&result))
      ADD_FAILURE() << *status;
    return std::get<QueuePair>(result);
  }
  QueuePair Connected(const QueuePairs::CreateRequest& request) {
    QueuePair queue_pair = Create(request);
    Connect(*queue_pair);
    return queue_pair;
  }
  // To `peer`, or to itself.
  void Connect(BrokeredQueuePair& queue_pair, uint32_t peer = 0) {
    const auto gid = queue_pair.facts().device->PreferredGid();
    ASSERT_TRUE(gid.ok());
    ASSERT_TRUE(queue_pair
                    .Modify({.qp_state = IBV_QPS_INIT, .port_num = 1},
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                IBV_QP_ACCESS_FLAGS)
                    .ok());
    ibv_qp_attr rtr{
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer == 0 ? queue_pair.facts().qp_num : peer};
    rtr.ah_attr.is_global = 1;
    rtr.ah_attr.port_num = 1;
    rtr.ah_attr.grh.dgid = gid->gid;
    rtr.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid->index);
    ASSERT_TRUE(queue_pair
                    .Modify(rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                     IBV_QP_MAX_DEST_RD_ATOMIC |
                                     IBV_QP_MIN_RNR_TIMER)
                    .ok());
    ASSERT_TRUE(queue_pair
                    .Modify({.qp_state = IBV_QPS_RTS, .rnr_retry = 7},
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                IBV_QP_MAX_QP_RD_ATOMIC)
                    .ok());
  }
  // Posts writes until one is refused; how many were posted.
  static uint32_t PostAll(BrokeredQueuePair& queue_pair, uint32_t most = 100000,
                          ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE) {
    uint32_t posted = 0;
    while (posted < most) {
      ibv_send_wr write{.wr_id = posted, .opcode = opcode};
      if (queue_pair.work_queue().PostSend({&write, 1}).posted == 0) break;
      ++posted;
    }
    return posted;
  }
  static uint32_t PostReceives(BrokeredQueuePair& queue_pair,
                               uint32_t most = 100000) {
    uint32_t posted = 0;
    while (posted < most) {
      ibv_recv_wr receive{.wr_id = posted};
      if (queue_pair.work_queue().PostReceive({&receive, 1}).posted == 0) break;
      ++posted;
    }
    return posted;
  }
  bool Destroy(const QueuePair& queue_pair, uint64_t* returned = nullptr) {
    const auto ended =
        sidecar_.queue_pairs().Destroy(client_, queue_pair->facts().id);
    if (returned != nullptr && ended.ok()) *returned = ended->returned_bytes;
    return ended.ok();
  }

  std::vector<SharedCompletionQueueState> Shared() {
    std::vector<SharedCompletionQueueState> all;
    for (const auto& set : sidecar_.queue_pairs().completion_queues())
      for (const auto& state : set->State()) all.push_back(state);
    return all;
  }
  // What all queue pairs and shared queues are said to take.
  uint64_t Accounted() {
    uint64_t bytes = 0;
    for (const auto& queue_pair : sidecar_.queue_pairs().All())
      bytes += queue_pair->facts().shape->memory.total().total();
    for (const auto& state : Shared()) bytes += state.memory.total().total();
    for (const auto& queue : sidecar_.shared_receive_queues().All())
      bytes += queue->facts().memory.total().total();
    return bytes;
  }
  int live(const std::string& kind) {
    return sidecar_.verbs().LiveObjects()[kind];
  }

  FakeSidecar sidecar_;
  std::string client_;
};

}  // namespace purser::sidecar
