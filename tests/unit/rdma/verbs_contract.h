// SPDX-License-Identifier: Apache-2.0
//
// What soft-RoCE does through the verbs seam and the fake must do as well:
// verbs_contract_*_test.cc are compiled into the unit tests, where the subject
// is the fake, and into tests/rxe, where it is the real device.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rdma/capabilities.h"
#include "rdma/handles.h"
#include "rdma/queue_pair_states.h"

namespace purser::rdma {

struct ContractSubject {
  virtual ~ContractSubject() = default;
  virtual Verbs& verbs() = 0;
  std::string device = "rxe0";
  std::string sysfs_root;
};

// nullptr: there is no such device here, the tests are skipped.
std::unique_ptr<ContractSubject> MakeContractSubject();

inline constexpr int kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
inline constexpr auto kPatience = std::chrono::seconds(10);

// How a pair is connected; what a test leaves alone works.
struct Path {
  uint32_t psn = 100;
  uint8_t rnr_retry = 7, min_rnr_timer = 1;
  uint8_t timeout = 8, retry_cnt = 2;  // 1 ms
  uint8_t max_rd_atomic = 1, max_dest_rd_atomic = 1;
  unsigned access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
};

// A queue pair with a buffer and a completion queue of its own.
struct End {
  QueuePair qp;
  std::vector<uint8_t> buffer = std::vector<uint8_t>(16384);
  MemoryRegion mr;
};

class VerbsContractTest : public ::testing::Test {
 protected:
  void SetUp() override {
    subject_ = MakeContractSubject();
    if (subject_ == nullptr) GTEST_SKIP() << "no RDMA device rxe0 here";
    verbs_ = &subject_->verbs();
    context_ = *OpenDevice(*verbs_, subject_->device);
    pd_ = *AllocPd(*verbs_, context_);
    channel_ = *CreateCompChannel(*verbs_, context_);
    cq_ = *CreateCq(*verbs_, context_, 255, nullptr, channel_);
    gid_ = *PreferredGid(*verbs_, context_, 1, subject_->sysfs_root);
  }

  ibv_qp_init_attr Attr(ibv_qp_type type = IBV_QPT_RC) {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_.get();
    attr.cap = {.max_send_wr = 16,
                .max_recv_wr = 16,
                .max_send_sge = 2,
                .max_recv_sge = 2};
    attr.qp_type = type;
    return attr;
  }
  int CreateErrno(const std::function<void(ibv_qp_init_attr&)>& change) {
    ibv_qp_init_attr attr = Attr();
    change(attr);
    return ErrnoOf(CreateQp(*verbs_, pd_, attr).status());
  }
  End MakeEnd(ibv_qp_type type = IBV_QPT_RC, int access = kAllAccess) {
    End end;
    ibv_qp_init_attr attr = Attr(type);
    end.qp = *CreateQp(*verbs_, pd_, attr);
    end.mr = *RegMr(*verbs_, pd_, end.buffer.data(), end.buffer.size(), access);
    return end;
  }

  // Every attribute that any edge takes, with good values.
  ibv_qp_attr GoodAttr(ibv_qp_state to, uint32_t dest_qp_num = 0,
                       const Path& path = {}) {
    ibv_qp_attr attr{};
    attr.qp_state = to;
    attr.port_num = 1;
    attr.qp_access_flags = path.access;
    attr.qkey = 0x1234;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = dest_qp_num;
    attr.rq_psn = attr.sq_psn = path.psn;
    attr.max_dest_rd_atomic = path.max_dest_rd_atomic;
    attr.max_rd_atomic = path.max_rd_atomic;
    attr.min_rnr_timer = path.min_rnr_timer;
    attr.timeout = path.timeout;
    attr.retry_cnt = path.retry_cnt;
    attr.rnr_retry = path.rnr_retry;
    attr.path_mig_state = IBV_MIG_MIGRATED;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = gid_.gid;
    attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_.index);
    attr.ah_attr.grh.hop_limit = 64;
    attr.alt_ah_attr = attr.ah_attr;
    attr.alt_port_num = 1;
    return attr;
  }
  static int RequiredMask(ibv_qp_type type, ibv_qp_state to) {
    const bool rc = type == IBV_QPT_RC, ud = type == IBV_QPT_UD;
    switch (to) {
      case IBV_QPS_INIT:
        return IBV_QP_PKEY_INDEX | IBV_QP_PORT |
               (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
      case IBV_QPS_RTR:
        return (ud ? 0
                   : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN) |
               (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
      case IBV_QPS_RTS:
        return IBV_QP_SQ_PSN |
               (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_MAX_QP_RD_ATOMIC
                   : 0);
      default:
        return 0;
    }
  }
  int Modify(const QueuePair& qp, ibv_qp_state to, int mask, ibv_qp_attr attr) {
    attr.qp_state = to;
    return ErrnoOf(verbs_->ModifyQp(qp.get(), &attr, mask | IBV_QP_STATE));
  }
  int Advance(const QueuePair& qp, ibv_qp_state to, uint32_t dest_qp_num = 0,
              const Path& path = {}) {
    return Modify(qp, to, RequiredMask(qp->qp_type, to),
                  GoodAttr(to, dest_qp_num, path));
  }
  // From RESET. SQE cannot be reached at will.
  void Bring(const QueuePair& qp, ibv_qp_state to) {
    if (to == IBV_QPS_RESET) return;
    ASSERT_EQ(Advance(qp, IBV_QPS_INIT), 0);
    if (to == IBV_QPS_ERR) {
      ASSERT_EQ(Advance(qp, IBV_QPS_ERR), 0);
      return;
    }
    for (const ibv_qp_state next : {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD}) {
      if (to < next) return;
      ASSERT_EQ(Advance(qp, next, qp->qp_num), 0) << StateName(next);
    }
    ASSERT_EQ(ModifyWhenDrained(qp, IBV_QPS_SQD), 0);
  }
  // From SQD, soft-RoCE refuses all but ERR until the send queue is drained.
  int ModifyWhenDrained(const QueuePair& qp, ibv_qp_state to) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    int error = Modify(qp, to, 0, {});
    for (; error != 0 && std::chrono::steady_clock::now() < deadline;
         error = Modify(qp, to, 0, {}))
      std::this_thread::yield();
    return error;
  }
  void Connect(End& a, End& b, const Path& path_a = {},
               const Path& path_b = {}) {
    ASSERT_EQ(Advance(a.qp, IBV_QPS_INIT, 0, path_a), 0);
    ASSERT_EQ(Advance(b.qp, IBV_QPS_INIT, 0, path_b), 0);
    ASSERT_EQ(Advance(a.qp, IBV_QPS_RTR, b.qp->qp_num, path_a), 0);
    ASSERT_EQ(Advance(b.qp, IBV_QPS_RTR, a.qp->qp_num, path_b), 0);
    ASSERT_EQ(Advance(a.qp, IBV_QPS_RTS, 0, path_a), 0);
    ASSERT_EQ(Advance(b.qp, IBV_QPS_RTS, 0, path_b), 0);
  }
  ibv_qp_state State(const End& end) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_TRUE(verbs_->QueryQp(end.qp.get(), &attr, IBV_QP_STATE, &init).ok());
    return attr.qp_state;
  }
  ibv_qp_state AwaitState(const End& end, ibv_qp_state state) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (State(end) != state && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    return State(end);
  }

  static ibv_sge Sge(const End& end, size_t offset, uint32_t length) {
    return {reinterpret_cast<uint64_t>(end.buffer.data() + offset), length,
            end.mr->lkey};
  }
  struct SendOptions {
    uint64_t wr_id = 1;
    uint32_t length = 8;
    size_t offset = 0;
    ibv_wr_opcode opcode = IBV_WR_SEND;
    unsigned flags = IBV_SEND_SIGNALED;
    const End* peer = nullptr;
    size_t remote_offset = 0;
  };
  int Send(const End& end, const SendOptions& options) {
    ibv_sge sge = Sge(end, options.offset, options.length);
    ibv_send_wr wr{};
    wr.wr_id = options.wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = options.opcode;
    wr.send_flags = options.flags;
    wr.imm_data = 0x04030201;
    if (options.peer != nullptr) {
      wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(
          options.peer->buffer.data() + options.remote_offset);
      wr.wr.rdma.rkey = options.peer->mr->rkey;
    }
    ibv_send_wr* bad = nullptr;
    return verbs_->PostSend(end.qp.get(), &wr, &bad);
  }
  int Receive(const End& end, uint64_t wr_id = 2, size_t offset = 8192,
              uint32_t length = 4096) {
    ibv_sge sge = Sge(end, offset, length);
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return verbs_->PostRecv(end.qp.get(), &wr, &bad);
  }

  // Polls until the wanted completion is there; others are kept for later
  // calls.
  ibv_wc Await(const End& end, uint64_t wr_id) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    do {
      for (auto it = polled_.begin(); it != polled_.end(); ++it) {
        if (it->qp_num != end.qp->qp_num || it->wr_id != wr_id) continue;
        const ibv_wc found = *it;
        polled_.erase(it);
        return found;
      }
      Poll();
    } while (std::chrono::steady_clock::now() < deadline);
    ADD_FAILURE() << "no completion of request " << wr_id;
    ibv_wc none{};
    none.status = IBV_WC_GENERAL_ERR;
    return none;
  }
  ibv_wc_status AwaitStatus(const End& end, uint64_t wr_id) {
    return Await(end, wr_id).status;
  }
  void Poll() {
    ibv_wc completions[16];
    const int count = verbs_->PollCq(cq_.get(), 16, completions);
    ASSERT_GE(count, 0);
    polled_.insert(polled_.end(), completions, completions + count);
    if (count == 0) std::this_thread::yield();
  }
  bool Readable(int fd, int timeout_ms) {
    pollfd poll_fd{.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, timeout_ms) == 1;
  }

  std::unique_ptr<ContractSubject> subject_;
  Verbs* verbs_ = nullptr;
  Context context_;
  ProtectionDomain pd_;
  CompletionChannel channel_;
  CompletionQueue cq_;
  Gid gid_;
  std::deque<ibv_wc> polled_;
};

}  // namespace purser::rdma
