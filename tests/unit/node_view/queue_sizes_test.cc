// SPDX-License-Identifier: Apache-2.0
//
// The inverse of the memory model: from what drivers tell of a queue pair to
// what it took, against the model's own answer for the request that made it.
#include "node_view/queue_sizes.h"

#include <gtest/gtest.h>

#include <functional>

#include "queue_memory/registry.h"
#include "tests/fakes/fake_rdma_netlink.h"

namespace purser::node_view {
namespace {

using queue_memory::Provider;
using queue_memory::QueueMemory;
using queue_memory::QueuePairRequest;
using queue_memory::QueuePairType;

Device Make(Provider provider, queue_memory::DeviceLimits limits = {}) {
  limits.page_size = 4096;
  return {"dev0", "uverbs0", provider, limits};
}

constexpr QueuePairRequest kRequests[] = {
    {.max_send_wr = 256,
     .max_send_sge = 4,
     .max_recv_wr = 256,
     .max_recv_sge = 1},
    {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
    {.max_send_wr = 128,
     .max_send_sge = 2,
     .max_recv_wr = 100,
     .max_recv_sge = 2},
    {.max_send_wr = 1000,
     .max_send_sge = 6,
     .max_recv_wr = 4096,
     .max_recv_sge = 6},
    {.max_send_wr = 16,
     .max_send_sge = 1,
     .max_inline_data = 64,
     .max_recv_wr = 16,
     .max_recv_sge = 1},
};

// Calls `check` with the record as it comes from netlink.
void WithDriver(std::vector<std::pair<std::string, uint32_t>> attributes,
                uint8_t type,
                const std::function<void(const rdma::ResourceRecord&)>& check) {
  fakes::FakeRdmaKernel kernel;
  const uint32_t index = kernel.AddDevice("dev0");
  kernel.Add("dev0", {.id = 2, .type = type, .driver = std::move(attributes)});
  const auto transport = kernel.Open();
  int records = 0;
  ASSERT_TRUE(rdma::ResourceNetlink(*transport)
                  .Dump(rdma::ResourceKind::kQueuePair, index,
                        [&](const rdma::ResourceRecord& record) {
                          ++records;
                          check(record);
                        })
                  .ok());
  EXPECT_EQ(records, 1);
}

void ExpectSameAsModel(const Device& device, const QueueMemory& model,
                       std::vector<std::pair<std::string, uint32_t>> told) {
  WithDriver(std::move(told), 2, [&](const rdma::ResourceRecord& record) {
    const auto size = SizeByDriver(device, record);
    ASSERT_TRUE(size.has_value());
    EXPECT_EQ(size->charge.container, model.total().container);
    EXPECT_EQ(size->charge.node, model.total().node);
    EXPECT_TRUE(size->exact);
  });
}

uint32_t U32(uint64_t value) { return static_cast<uint32_t>(value); }

TEST(QueueSizesTest, BnxtReWithEntriesOfOneSize) {
  for (const QueuePairRequest& request : kRequests) {
    const Device device = Make(Provider::kBnxtRe);
    const QueueMemory model =
        QueuePairMemory(device.provider, device.limits, request);
    ASSERT_FALSE(model.refusal);
    ExpectSameAsModel(device, model,
                      {{"sq_max_wqe", U32(model.send_ring.bytes / 128)},
                       {"sq_max_sge", request.max_send_sge},
                       {"sq_wqe_size", 128},
                       {"rq_max_wqe", U32(model.receive_ring.bytes / 128)},
                       {"rq_max_sge", request.max_recv_sge},
                       {"rq_wqe_size", 128}});
  }
}

TEST(QueueSizesTest, BnxtReWithEntriesAsLargeAsAsked) {
  const Device device =
      Make(Provider::kBnxtRe, queue_memory::FindProfile("bnxt_re_p7")->limits);
  for (const QueuePairRequest& request : kRequests) {
    const QueueMemory model =
        QueuePairMemory(device.provider, device.limits, request);
    ASSERT_FALSE(model.refusal);
    ExpectSameAsModel(device, model,
                      {{"sq_max_wqe", U32(model.send_ring.bytes / 16)},
                       {"sq_wqe_size", 16},
                       {"rq_max_wqe", U32(model.receive_ring.bytes /
                                          model.receive_ring.stride)},
                       {"rq_wqe_size", model.receive_ring.stride}});
  }
}

TEST(QueueSizesTest, HnsWithAndWithoutExtendedSges) {
  const Device device = Make(Provider::kHns);
  for (const QueuePairRequest& request : kRequests) {
    const QueueMemory model =
        QueuePairMemory(device.provider, device.limits, request);
    ASSERT_FALSE(model.refusal);
    const uint64_t extended_bytes =
        model.send.container - (model.send_ring.bytes + 4095) / 4096 * 4096;
    ExpectSameAsModel(device, model,
                      {{"sq_wqe_cnt", model.send_ring.slots},
                       {"sq_max_gs", request.max_send_sge},
                       {"rq_wqe_cnt", model.receive_ring.slots},
                       {"rq_max_gs", model.cap_recv_sge},
                       {"ext_sge_sge_cnt", U32(extended_bytes / 16)}});
  }
}

TEST(QueueSizesTest, WhatTheModelCannotProduceIsNotBelieved) {
  const std::vector<std::pair<std::string, uint32_t>> nonsense[] = {
      {},
      {{"sq_max_wqe", 3}, {"sq_wqe_size", 128}},
      {{"sq_max_wqe", 400}, {"sq_wqe_size", 100}},
      {{"sq_max_wqe", UINT32_MAX}, {"sq_wqe_size", UINT32_MAX}},
      {{"sq_max_wqe", 400},
       {"sq_wqe_size", 128},
       {"rq_max_wqe", 9},
       {"rq_wqe_size", 7}},
      {{"sq_wqe_cnt", 65}},
      {{"sq_wqe_cnt", UINT32_MAX}, {"rq_wqe_cnt", UINT32_MAX}},
      {{"sq_wqe_cnt", 64}, {"rq_wqe_cnt", 64}},
      {{"sq_wqe_cnt", 64}, {"ext_sge_sge_cnt", UINT32_MAX}}};
  for (const auto& told : nonsense) {
    WithDriver(told, 2, [](const rdma::ResourceRecord& record) {
      EXPECT_FALSE(SizeByDriver(Make(Provider::kBnxtRe), record).has_value());
      EXPECT_FALSE(SizeByDriver(Make(Provider::kHns), record).has_value());
      EXPECT_FALSE(SizeByDriver(Make(Provider::kRxe), record).has_value());
    });
  }
}

TEST(QueueSizesTest, Mlx5FromItsRings) {
  const Device device = Make(Provider::kMlx5);
  for (const QueuePairRequest& request : kRequests) {
    const QueueMemory model =
        QueuePairMemory(device.provider, device.limits, request);
    ASSERT_FALSE(model.refusal);
    const auto size =
        SizeOfMlx5(device, {.send_bytes = model.send_ring.bytes,
                            .receive_bytes = model.receive_ring.bytes,
                            .receive_stride = model.receive_ring.stride});
    ASSERT_TRUE(size.has_value());
    EXPECT_EQ(size->charge, model.total());
    EXPECT_TRUE(size->exact);
  }
  EXPECT_FALSE(SizeOfMlx5(device, {.send_bytes = 64ull << 20}).has_value());
  EXPECT_FALSE(SizeOfMlx5(device, {.receive_bytes = 96, .receive_stride = 48})
                   .has_value());
}

TEST(QueueSizesTest, AssumedSizesAreMarked) {
  for (const Provider provider : queue_memory::KnownProviders()) {
    const Device device = Make(provider);
    for (const uint8_t type : {2, 3, 4, 8, 9, 255}) {
      const Size size = AssumedQueuePair(device, type);
      EXPECT_GT(size.charge.total(), 0u)
          << ProviderName(provider) << " " << int{type};
      EXPECT_FALSE(size.exact);
    }
    EXPECT_EQ(AssumedQueuePair(device, 10).charge.total(), 0u);
  }
  EXPECT_GT(AssumedQueuePair(Make(Provider::kUnknown), 2).charge.total(), 0u);
  EXPECT_FALSE(AssumedSharedReceiveQueue(Make(Provider::kMlx5)).exact);
}

TEST(QueueSizesTest, ACompletionQueueByItsEntries) {
  for (const Provider provider : {Provider::kMlx5, Provider::kBnxtRe}) {
    const Device device = Make(provider);
    for (const uint32_t asked : {1u, 16u, 255u, 256u, 4000u}) {
      const QueueMemory model =
          CompletionQueueMemory(provider, device.limits, asked);
      const Size size = SizeOfCompletionQueue(device, model.cap_cqe);
      EXPECT_EQ(size.charge, model.total())
          << ProviderName(provider) << " " << asked;
      EXPECT_TRUE(size.exact);
    }
  }
  EXPECT_FALSE(SizeOfCompletionQueue(Make(Provider::kIrdma), 256).exact);
  EXPECT_EQ(SizeOfCompletionQueue(Make(Provider::kMlx5), 0).charge.total(), 0u);
  EXPECT_FALSE(SizeOfCompletionQueue(Make(Provider::kMlx5), UINT32_MAX).exact);
}

TEST(QueueSizesTest, KernelRingsAndTheStructsBesideThem) {
  const Device device = Make(Provider::kRxe);
  const QueuePairRequest request = {.max_send_wr = 4096,
                                    .max_send_sge = 16,
                                    .max_recv_wr = 1,
                                    .max_recv_sge = 1};
  const QueueMemory model =
      QueuePairMemory(device.provider, device.limits, request);
  EXPECT_EQ(KernelBytesOfRing(device, model.send.node) +
                KernelBytesOfRing(device, model.receive.node),
            model.total().node);
  EXPECT_EQ(StructsOf(device).queue_pair, model.total().container);
  EXPECT_EQ(StructsOf(device).completion_queue,
            CompletionQueueMemory(device.provider, device.limits, 255)
                .total()
                .container);
}

}  // namespace
}  // namespace purser::node_view
