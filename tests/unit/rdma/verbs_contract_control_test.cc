// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <map>

#include "rdma/queue_pair_states.h"
#include "tests/unit/rdma/verbs_contract.h"

namespace purser::rdma {
namespace {

// ---- Devices ----

TEST_F(VerbsContractTest, DevicesAreFoundByName) {
  EXPECT_THAT(*verbs_->DeviceNames(), ::testing::Contains(subject_->device));
  const auto missing = verbs_->OpenDevice("nosuch0");
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()),
              ::testing::HasSubstr(subject_->device));
}

TEST_F(VerbsContractTest, DeviceTellsItsLimits) {
  const auto attr = verbs_->QueryDevice(context_.get());
  ASSERT_TRUE(attr.ok());
  EXPECT_EQ(attr->max_qp, 1048560);
  EXPECT_EQ(attr->max_qp_wr, 1048576);
  EXPECT_EQ(attr->max_sge, 32);
  EXPECT_EQ(attr->max_cq, 1048576);
  EXPECT_EQ(attr->max_cqe, 32767);
  EXPECT_EQ(attr->max_mr, 524287);
  EXPECT_EQ(attr->max_mr_size, UINT64_MAX);
  EXPECT_EQ(attr->max_pd, 1048576);
  EXPECT_EQ(attr->max_qp_rd_atom, 128);
  EXPECT_EQ(attr->max_qp_init_rd_atom, 128);
  EXPECT_EQ(attr->max_srq, 917503);
  EXPECT_EQ(attr->phys_port_cnt, 1);
}

TEST_F(VerbsContractTest, PortTellsItsState) {
  const auto port = verbs_->QueryPort(context_.get(), 1);
  ASSERT_TRUE(port.ok());
  EXPECT_EQ(port->state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port->phys_state, 5);
  EXPECT_EQ(port->max_mtu, IBV_MTU_4096);
  EXPECT_EQ(port->active_mtu, IBV_MTU_1024);
  EXPECT_EQ(port->link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_EQ(port->gid_tbl_len, 1024);
  EXPECT_EQ(port->pkey_tbl_len, 1);
  EXPECT_EQ(port->max_msg_sz, 0x800000u);
  EXPECT_EQ(ErrnoOf(verbs_->QueryPort(context_.get(), 2).status()), EINVAL);
}

TEST_F(VerbsContractTest, EmptyGidIsZeroAndOneBeyondTheTableAnError) {
  const auto empty = verbs_->QueryGid(context_.get(), 1, 1000);
  ASSERT_TRUE(empty.ok());
  EXPECT_THAT(empty->raw, ::testing::Each(0));
  EXPECT_FALSE(verbs_->QueryGid(context_.get(), 1, 1024).ok());
  EXPECT_FALSE(verbs_->QueryGid(context_.get(), 2, 0).ok());
}

TEST_F(VerbsContractTest, PreferredGidIsTheIpv4MappedRoceV2One) {
  EXPECT_EQ(gid_.type, GidType::kRoceV2);
  EXPECT_TRUE(gid_.ipv4_mapped);
  EXPECT_EQ(gid_.index, 1);
}

TEST_F(VerbsContractTest, NoEventIsNoError) {
  ibv_async_event event{};
  const auto got = verbs_->GetAsyncEvent(context_.get(), &event);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_FALSE(*got);
  const auto cq = verbs_->GetCqEvent(channel_.get());
  ASSERT_TRUE(cq.ok()) << cq.status();
  EXPECT_EQ(*cq, nullptr);
}

// ---- Objects ----

TEST_F(VerbsContractTest, ParentsOfLivingChildrenAreBusy) {
  const End end = MakeEnd();
  EXPECT_EQ(ErrnoOf(verbs_->DeallocPd(pd_.get())), EBUSY);
  EXPECT_EQ(ErrnoOf(verbs_->DestroyCq(cq_.get())), EBUSY);
  EXPECT_EQ(ErrnoOf(verbs_->DestroyCompChannel(channel_.get())), EBUSY);
}

TEST_F(VerbsContractTest, MemoryRegionRules) {
  char buffer[64];
  const auto reg_errno = [&](int access) {
    return ErrnoOf(
        RegMr(*verbs_, pd_, buffer, sizeof(buffer), access).status());
  };
  EXPECT_EQ(reg_errno(0), 0);
  EXPECT_EQ(reg_errno(IBV_ACCESS_REMOTE_READ), 0);
  EXPECT_EQ(reg_errno(IBV_ACCESS_REMOTE_WRITE), EINVAL);
  EXPECT_EQ(reg_errno(IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
}

TEST_F(VerbsContractTest, CompletionQueueSizes) {
  const std::map<int, int> granted = {{1, 1},        {2, 3},     {16, 31},
                                      {64, 127},     {255, 255}, {256, 511},
                                      {32767, 32767}};
  for (const auto& [asked, got] : granted) {
    auto cq = CreateCq(*verbs_, context_, asked, nullptr, channel_);
    ASSERT_TRUE(cq.ok()) << asked;
    EXPECT_EQ((*cq)->cqe, got);
  }
  for (const int asked : {0, -1, 32768}) {
    EXPECT_EQ(
        ErrnoOf(CreateCq(*verbs_, context_, asked, nullptr, channel_).status()),
        EINVAL)
        << asked;
  }
}

TEST_F(VerbsContractTest, CapacitiesAreWrittenBackAndQueried) {
  struct Row {
    uint32_t wr, sge, inline_data;  // asked
    uint32_t slots, got_sge, got_inline;
  };
  for (const Row& row :
       {Row{1, 1, 0, 1, 1, 16}, Row{16, 1, 0, 31, 1, 16},
        Row{100, 4, 0, 127, 4, 64}, Row{128, 2, 64, 255, 4, 64},
        Row{127, 1, 100, 127, 6, 100}, Row{4096, 16, 0, 8191, 16, 256},
        Row{0, 0, 0, 0, 0, 0}}) {
    ibv_qp_init_attr attr = Attr();
    attr.cap = {.max_send_wr = row.wr,
                .max_recv_wr = row.wr,
                .max_send_sge = row.sge,
                .max_recv_sge = row.sge,
                .max_inline_data = row.inline_data};
    auto qp = CreateQp(*verbs_, pd_, attr);
    ASSERT_TRUE(qp.ok()) << row.wr << qp.status();
    EXPECT_EQ(attr.cap.max_send_wr, row.wr);
    EXPECT_EQ(attr.cap.max_recv_wr, row.wr);
    EXPECT_EQ(attr.cap.max_send_sge, row.got_sge) << row.wr;
    EXPECT_EQ(attr.cap.max_recv_sge, row.sge);
    EXPECT_EQ(attr.cap.max_inline_data, row.got_inline) << row.wr;
    ibv_qp_attr queried{};
    ibv_qp_init_attr init{};
    ASSERT_TRUE(verbs_->QueryQp(qp->get(), &queried, IBV_QP_CAP, &init).ok());
    EXPECT_EQ(queried.cap.max_send_wr, row.slots);
    EXPECT_EQ(queried.cap.max_recv_wr, row.slots);
    EXPECT_EQ(queried.cap.max_send_sge, row.got_sge);
    EXPECT_EQ(queried.cap.max_recv_sge, row.sge);
    EXPECT_EQ(queried.cap.max_inline_data, row.got_inline);
    EXPECT_EQ(init.cap.max_send_wr, row.slots);
    EXPECT_EQ(init.qp_type, IBV_QPT_RC);
    EXPECT_EQ(init.send_cq, cq_.get());
  }
}

TEST_F(VerbsContractTest, CreationIsRefused) {
  EXPECT_EQ(CreateErrno([](auto&) {}), 0);
  EXPECT_EQ(CreateErrno([](auto& a) { a.cap.max_send_wr = 1048577; }), EINVAL);
  EXPECT_EQ(CreateErrno([](auto& a) { a.cap.max_recv_wr = 1048577; }), EINVAL);
  EXPECT_EQ(CreateErrno([](auto& a) { a.cap.max_send_wr = UINT32_MAX; }),
            EINVAL);
  EXPECT_EQ(CreateErrno([](auto& a) { a.cap.max_send_sge = 33; }), EINVAL);
  EXPECT_EQ(CreateErrno([](auto& a) { a.cap.max_recv_sge = 33; }), EINVAL);
  EXPECT_EQ(CreateErrno([](auto& a) { a.cap.max_inline_data = 513; }), EINVAL);
  for (const ibv_qp_type type : {IBV_QPT_XRC_SEND, IBV_QPT_RAW_PACKET})
    EXPECT_EQ(CreateErrno([&](auto& a) { a.qp_type = type; }), EOPNOTSUPP)
        << QueuePairTypeName(type);
}

// ---- States ----

// Every edge from every state that can be reached, with every single attribute
// missing or surplus: the answer is CheckModify's.
class EdgesTest : public VerbsContractTest,
                  public ::testing::WithParamInterface<ibv_qp_type> {};

TEST_P(EdgesTest, ModifyAnswersAsTheTableSays) {
  const ibv_qp_type type = GetParam();
  End end = MakeEnd(type);
  int checked = 0, refused = 0;
  for (const ibv_qp_state from : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                  IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR}) {
    for (int target = IBV_QPS_RESET; target <= IBV_QPS_ERR; ++target) {
      const auto to = static_cast<ibv_qp_state>(target);
      const int required =
          from == to || from == IBV_QPS_SQD ? 0 : RequiredMask(type, to);
      std::vector<int> masks = {required};
      for (int bit = 1; bit <= 20; ++bit)
        masks.push_back(required ^ (1 << bit));
      for (const int mask : masks) {
        // Legal, but the kernel has alternate paths for InfiniBand alone, and
        // adds PORT to AV in SQD, which is surplus on UC.
        if ((mask & IBV_QP_ALT_PATH) != 0) continue;
        if ((mask & IBV_QP_AV) != 0 && from == IBV_QPS_SQD) continue;
        ASSERT_EQ(ModifyWhenDrained(end.qp, IBV_QPS_RESET), 0);
        Bring(end.qp, from);
        ibv_qp_attr attr = GoodAttr(to, end.qp->qp_num);
        attr.cur_qp_state = from;
        const int got = Modify(end.qp, to, mask, attr);
        const bool legal = CheckModify(type, from, to, mask).ok();
        EXPECT_EQ(got, legal ? 0 : EINVAL)
            << StateName(from) << " -> " << StateName(to) << " "
            << AttrMaskNames(mask);
        ++checked;
        refused += legal ? 0 : 1;
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(checked - refused, 20);
}

INSTANTIATE_TEST_SUITE_P(Types, EdgesTest,
                         ::testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) {
                           return QueuePairTypeName(type.param);
                         });

TEST_F(VerbsContractTest, AttributeValuesAreChecked) {
  const auto refusal = [&](ibv_qp_state to,
                           const std::function<void(ibv_qp_attr&)>& change) {
    End end = MakeEnd();
    Bring(end.qp, static_cast<ibv_qp_state>(to - 1));
    ibv_qp_attr attr = GoodAttr(to, end.qp->qp_num);
    change(attr);
    return Modify(end.qp, to, RequiredMask(IBV_QPT_RC, to), attr);
  };
  EXPECT_EQ(refusal(IBV_QPS_INIT, [](auto& a) { a.port_num = 0; }), EINVAL);
  EXPECT_EQ(refusal(IBV_QPS_INIT, [](auto& a) { a.port_num = 2; }), EINVAL);
  EXPECT_EQ(refusal(IBV_QPS_RTR, [](auto&) {}), 0);
  EXPECT_EQ(refusal(IBV_QPS_RTR, [](auto& a) { a.ah_attr.is_global = 0; }),
            EINVAL);
  EXPECT_EQ(refusal(IBV_QPS_RTR, [](auto& a) { a.ah_attr.port_num = 2; }),
            EINVAL);
  EXPECT_EQ(
      refusal(IBV_QPS_RTR, [](auto& a) { a.ah_attr.grh.sgid_index = 200; }),
      ENODATA);
  EXPECT_EQ(refusal(IBV_QPS_RTR, [](auto& a) { a.path_mtu = IBV_MTU_4096; }),
            0);
  EXPECT_EQ(refusal(IBV_QPS_RTR,
                    [](auto& a) { a.path_mtu = static_cast<ibv_mtu>(6); }),
            EINVAL);
  EXPECT_EQ(refusal(IBV_QPS_RTS, [](auto& a) { a.timeout = 32; }), EINVAL);
  EXPECT_EQ(refusal(IBV_QPS_RTS, [](auto& a) { a.max_rd_atomic = 129; }),
            EINVAL);
  EXPECT_EQ(refusal(IBV_QPS_RTS, [](auto& a) { a.max_rd_atomic = 128; }), 0);
}

TEST_F(VerbsContractTest, QueryTellsWhatWasSet) {
  End a = MakeEnd(), b = MakeEnd();
  Connect(a, b);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_TRUE(verbs_->QueryQp(a.qp.get(), &attr, IBV_QP_STATE, &init).ok());
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.cur_qp_state, IBV_QPS_RESET);
  EXPECT_EQ(attr.dest_qp_num, b.qp->qp_num);
  EXPECT_EQ(attr.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(attr.sq_psn, 100u);
  EXPECT_EQ(attr.rq_psn, 100u);
  EXPECT_EQ(attr.port_num, 1);
  EXPECT_EQ(attr.timeout, 8);
  EXPECT_EQ(attr.retry_cnt, 2);
  EXPECT_EQ(attr.rnr_retry, 7);
  EXPECT_EQ(attr.ah_attr.is_global, 1);
  EXPECT_EQ(attr.ah_attr.grh.sgid_index, gid_.index);
}

}  // namespace
}  // namespace purser::rdma
