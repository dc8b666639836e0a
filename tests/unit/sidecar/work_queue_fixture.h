// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sidecar/device_watch.h"
#include "sidecar/work_queue.h"
#include "tests/fakes/fake_verbs.h"
#include "tests/unit/sidecar/watching.h"

namespace purser::sidecar {

// Two connected RC queue pairs of one device: `local` posts through a
// WorkQueue, `remote` is plain.
class WorkQueueTest : public ::testing::Test {
 protected:
  struct End {
    std::shared_ptr<QueuePairEvents> events;
    std::shared_ptr<BrokeredCompletionQueue> cq;
    std::unique_ptr<QueuePairShape> shape;
    std::unique_ptr<WorkQueue> work_queue;
    rdma::QueuePair qp;
  };

  void SetUp() override {
    verbs_.AddDevice(std::string(device_name()) == "rxe0"
                         ? fakes::RxeDevice()
                         : fakes::Mlx5Device());
    device_ =
        Device::Open(verbs_, device_name(), {.sysfs = "/nonexistent"}).value();
    opened_ = device_->Opened().value();
    watch_ =
        DeviceWatch::Start(*device_, [](const std::string&) {}, {}).value();
    mr_ = rdma::RegMr(verbs_, opened_->pd(), buffer_.data(), buffer_.size(),
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_READ)
              .value();
    local_ = MakeEnd(100, 100, MakeCq(255));
    remote_ = MakeEnd(100, 100, MakeCq(255));
  }
  void TearDown() override {
    Finish(local_);
    Finish(remote_);
  }

  virtual const char* device_name() const { return "rxe0"; }

  std::shared_ptr<BrokeredCompletionQueue> MakeCq(uint32_t cqe) {
    return BrokeredCompletionQueue::Create(opened_, cqe).value();
  }

  // `room`: in the completion queue; 0: all of it.
  End MakeEnd(uint32_t send_wr, uint32_t recv_wr,
              std::shared_ptr<BrokeredCompletionQueue> cq, uint32_t room = 0) {
    End end;
    end.events = std::make_shared<QueuePairEvents>();
    end.cq = std::move(cq);
    ibv_qp_init_attr init{.qp_context = end.events.get(),
                          .send_cq = end.cq->cq(),
                          .recv_cq = end.cq->cq(),
                          .cap = {.max_send_wr = send_wr,
                                  .max_recv_wr = recv_wr,
                                  .max_send_sge = 2,
                                  .max_recv_sge = 2},
                          .qp_type = IBV_QPT_RC};
    end.qp = rdma::CreateQp(verbs_, opened_->pd(), init).value();
    // Soft-RoCE writes back 100 and takes 127.
    end.shape = std::make_unique<QueuePairShape>();
    end.shape->memory.send_ring.slots = 127;
    end.shape->memory.receive_ring.slots = 127;
    end.work_queue = std::make_unique<WorkQueue>(
        verbs_, end.qp.get(),
        WorkQueue::Queues{.completions = end.cq, .events = end.events},
        *end.shape, room == 0 ? end.cq->cqe() : room, counters_);
    return end;
  }

  // Its completion queue ends with the last of its queue pairs.
  void Finish(End& end) {
    if (end.work_queue == nullptr) return;
    end.work_queue->Close(absl::CancelledError("the test is over"));
    {
      Wakeups wakeups;
      EXPECT_TRUE(end.cq->DestroyQueuePair(end.qp, wakeups).ok());
    }
    end.work_queue.reset();
    (void)end.cq->Close();
  }

  // As a waiting poll does.
  static absl::StatusOr<std::vector<Completion>> ArmAndFetch(
      End& end, uint32_t max_entries) {
    if (absl::Status status = end.work_queue->Arm(); !status.ok())
      return status;
    return end.work_queue->Fetch(max_entries);
  }

  void Modify(End& end, ibv_qp_attr attr, int mask) {
    ASSERT_TRUE(verbs_.ModifyQp(end.qp.get(), &attr, mask | IBV_QP_STATE).ok());
    const Wakeups wakeups = end.work_queue->StateChanged(attr.qp_state);
  }

  void Connect(End& end, const End& peer) {
    Modify(end,
           {.qp_state = IBV_QPS_INIT,
            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
            .port_num = 1},
           IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    ibv_qp_attr rtr{.qp_state = IBV_QPS_RTR,
                    .path_mtu = IBV_MTU_1024,
                    .dest_qp_num = peer.qp->qp_num,
                    .max_dest_rd_atomic = 1,
                    .min_rnr_timer = 12};
    rtr.ah_attr.is_global = 1;
    rtr.ah_attr.port_num = 1;
    rtr.ah_attr.grh.sgid_index = gid_index_;
    rtr.ah_attr.grh.dgid = fakes::Ipv4Gid("192.0.2.1");
    Modify(end, rtr,
           IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    Modify(end,
           {.qp_state = IBV_QPS_RTS,
            .max_rd_atomic = 1,
            .timeout = 14,
            .retry_cnt = 7,
            .rnr_retry = 7},
           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }

  void ConnectBoth() {
    Connect(local_, remote_);
    Connect(remote_, local_);
  }

  ibv_sge Sge(size_t offset, uint32_t length) {
    return {reinterpret_cast<uint64_t>(buffer_.data()) + offset, length,
            mr_->lkey};
  }

  // RDMA writes of nothing: they need no receive.
  std::vector<ibv_send_wr> Writes(size_t count, uint64_t first_id = 0) {
    std::vector<ibv_send_wr> requests(count);
    for (size_t i = 0; i < count; ++i) {
      requests[i].wr_id = first_id + i;
      requests[i].opcode = IBV_WR_RDMA_WRITE;
    }
    return requests;
  }
  std::vector<ibv_recv_wr> Receives(size_t count, uint64_t first_id = 0) {
    std::vector<ibv_recv_wr> requests(count);
    for (size_t i = 0; i < count; ++i) requests[i].wr_id = first_id + i;
    return requests;
  }

  uint64_t PostFailures(const std::string& operation,
                        const std::string& error) {
    return CountOf(counters_.post_failures, operation, error);
  }

  fakes::FakeVerbs verbs_;
  Counters counters_;
  int gid_index_ = 1;
  std::array<uint8_t, 4096> buffer_{};
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceWatch> watch_;
  std::shared_ptr<OpenedDevice> opened_;
  rdma::MemoryRegion mr_;
  End local_, remote_;
};

}  // namespace purser::sidecar
