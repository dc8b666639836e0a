// SPDX-License-Identifier: Apache-2.0
#include "queue_memory/registry.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace purser::queue_memory {
namespace {

TEST(Registry, EachProviderIsFoundByItsNames) {
  std::set<std::string> names;
  for (const Provider provider : KnownProviders()) {
    const ProviderTraits& traits = TraitsOf(provider);
    EXPECT_EQ(traits.provider, provider) << "in its place";
    EXPECT_STREQ(ProviderName(provider), traits.name);
    EXPECT_EQ(ProviderFromName(traits.name), provider);
    EXPECT_NE(traits.kernel_names[0], nullptr) << traits.name;
    for (const char* kernel_name : traits.kernel_names) {
      if (kernel_name == nullptr) continue;
      EXPECT_EQ(ProviderFromName(kernel_name), provider) << kernel_name;
      EXPECT_EQ(FindProfile(kernel_name)->provider, provider) << kernel_name;
    }
    EXPECT_TRUE(names.insert(traits.name).second);
  }
  EXPECT_EQ(names.size(), 14u);
  EXPECT_EQ(ProviderFromName("rdma_rxe"), Provider::kRxe);
  EXPECT_EQ(ProviderFromName("mlx5_core"), Provider::kMlx5);
  EXPECT_EQ(ProviderFromName("mlx5_ib"), Provider::kMlx5);
  EXPECT_EQ(ProviderFromName("iw_cxgb4"), Provider::kCxgb4);
  EXPECT_EQ(ProviderFromName("ice"), Provider::kIrdma);
}

TEST(Registry, OtherNamesAreUnknown) {
  for (const char* name : {"", "mlx", "mlx5_", "mlx55", "RXE", "hfi1"}) {
    EXPECT_EQ(ProviderFromName(name), Provider::kUnknown) << name;
    EXPECT_EQ(FindProfile(name), nullptr) << name;
  }
  EXPECT_EQ(ProviderFromName(nullptr), Provider::kUnknown);
  EXPECT_EQ(FindProfile(nullptr), nullptr);
  EXPECT_STREQ(ProviderName(Provider::kUnknown), "unknown");
  EXPECT_STREQ(ProviderName(static_cast<Provider>(250)), "unknown");
}

TEST(Registry, TypesHaveNames) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(QueuePairType::kSrd); ++i)
    names.insert(QueuePairTypeName(static_cast<QueuePairType>(i)));
  EXPECT_EQ(names.size(), 7u);
  EXPECT_EQ(names.count("XRC_SEND"), 1u);
  EXPECT_STREQ(QueuePairTypeName(static_cast<QueuePairType>(250)), "unknown");
}

// What the traits say is what the rules do.
TEST(Registry, TraitsAgreeWithTheRules) {
  for (const Provider provider : KnownProviders()) {
    const ProviderTraits& traits = TraitsOf(provider);
    SCOPED_TRACE(traits.name);
    ASSERT_NE(traits.queue_pair_types, 0u);
    for (int i = 0; i <= static_cast<int>(QueuePairType::kSrd); ++i) {
      const auto type = static_cast<QueuePairType>(i);
      QueuePairRequest request = {.type = type,
                                  .max_send_wr = 16,
                                  .max_send_sge = 1,
                                  .max_recv_wr = 16,
                                  .max_recv_sge = 1};
      const QueueMemory memory = QueuePairMemory(provider, {}, request);
      EXPECT_EQ(!memory.refusal, traits.Has(type)) << QueuePairTypeName(type);
      EXPECT_GE(memory.exactness, traits.queue_pairs);
      if (memory.refusal) {
        EXPECT_EQ(memory.refusal.limit, Limit::kQueuePairType);
        continue;
      }
      const Charge rings = memory.send + memory.receive;
      EXPECT_EQ(rings.container > 0, traits.charges_container);
      EXPECT_EQ(rings.node > 0, traits.charges_node);
      EXPECT_GT(memory.context.node, 0u);
      EXPECT_EQ(memory.context.container, 0u);

      request.uses_srq = true;
      const QueueMemory sharing = QueuePairMemory(provider, {}, request);
      EXPECT_EQ(!sharing.refusal, traits.has_shared_receive_queues);
      if (sharing.refusal) {
        EXPECT_EQ(sharing.refusal.limit, Limit::kSharedReceiveQueue);
      } else {
        EXPECT_LE(sharing.receive.total(), memory.receive.total());
      }
    }
    const QueueMemory srq = SharedReceiveQueueMemory(provider, {}, {100, 1});
    EXPECT_EQ(!srq.refusal, traits.has_shared_receive_queues);
    if (srq.refusal) continue;
    EXPECT_EQ(srq.exactness, traits.shared_receive_queues);
    EXPECT_GT(srq.shared_receive.total(), 0u);
    EXPECT_GE(srq.cap_srq_wr, 100u);
    EXPECT_GE(srq.cap_srq_sge, 1u);
  }
}

TEST(Registry, ProfilesAreFoundByNameAndDriver) {
  std::set<std::string> names;
  std::set<Provider> with_default;
  for (const DeviceProfile& profile : KnownProfiles()) {
    EXPECT_EQ(FindProfile(profile.name), &profile);
    EXPECT_TRUE(names.insert(profile.name).second) << profile.name;
    EXPECT_STRNE(profile.what, "");
    if (std::string(profile.name) == ProviderName(profile.provider))
      with_default.insert(profile.provider);
  }
  EXPECT_EQ(with_default.size(), KnownProviders().size());
  EXPECT_STREQ(FindProfile("i40e")->name, "irdma_gen1");
  EXPECT_STREQ(FindProfile("ice")->name, "irdma");
  EXPECT_STREQ(FindProfile("mlx5_core")->name, "mlx5");
  EXPECT_FALSE(FindProfile("rxe_6.1")->limits.writes_back_real_slots);
}

TEST(Registry, EffectiveLimitsAreToldElseDefaultElseUnbounded) {
  const DeviceLimits defaults = EffectiveLimits(Provider::kErdma, {});
  EXPECT_EQ(defaults.max_qp_wr, 8192u);
  EXPECT_EQ(defaults.max_recv_wr, 8192u) << "follows max_qp_wr";
  EXPECT_EQ(defaults.max_sge, 6u);
  EXPECT_EQ(defaults.max_recv_sge, 1u);
  EXPECT_EQ(defaults.page_size, 4096u);
  const DeviceLimits told = EffectiveLimits(
      Provider::kErdma, {.max_qp_wr = 100, .max_sge = 4, .max_srq_wr = 7});
  EXPECT_EQ(told.max_qp_wr, 100u);
  EXPECT_EQ(told.max_recv_wr, 100u);
  EXPECT_EQ(told.max_sge, 4u);
  EXPECT_EQ(told.max_recv_sge, 1u);
  EXPECT_EQ(told.max_srq_wr, 7u);
  const DeviceLimits efa = EffectiveLimits(Provider::kEfa, {.max_qp_wr = 256});
  EXPECT_EQ(efa.max_recv_wr, 32768u) << "its receive side has its own";
  EXPECT_EQ(EffectiveLimits(Provider::kMana, {}).max_qp_wr, UINT32_MAX);
  EXPECT_EQ(EffectiveLimits(Provider::kRxe, {}).cqe_size, 72u);
}

// Of each provider that has constants of its own in the kernel.
TEST(Registry, CountsOfObjects) {
  EXPECT_EQ(TraitsOf(Provider::kRxe).counts.max_qp, 1048560u);
  EXPECT_EQ(TraitsOf(Provider::kSiw).counts.max_srq, 102400u);
  EXPECT_EQ(TraitsOf(Provider::kMlx5).counts.max_qp, 131072u);
  EXPECT_EQ(TraitsOf(Provider::kMana).counts.max_qp, 0u) << "not known";
  for (const Provider provider : KnownProviders()) {
    const ObjectCounts& counts = TraitsOf(provider).counts;
    EXPECT_LE(counts.max_qp, 1u << 24) << "a number has 24 bits";
    EXPECT_LE(counts.max_mr, INT32_MAX);
  }
  const ObjectCounts counts =
      Overlay(ObjectCounts{.max_qp = 1, .max_cq = 2, .max_mr = 3, .max_srq = 4},
              ObjectCounts{.max_cq = 7});
  EXPECT_EQ(counts.max_qp, 1u);
  EXPECT_EQ(counts.max_cq, 7u);
  EXPECT_EQ(counts.max_mr, 3u);
  EXPECT_EQ(counts.max_srq, 4u);
}

TEST(Registry, SoftRoceByKernel) {
  const auto name = [](KernelVersion version) {
    return std::string(ProfileOfKernel(Provider::kRxe, version)->name);
  };
  EXPECT_EQ(name({4, 19, 0}), "rxe_5.5");
  EXPECT_EQ(name({5, 5, 99}), "rxe_5.5");
  EXPECT_EQ(name({5, 6, 0}), "rxe_5.12");
  EXPECT_EQ(name({5, 12, 99}), "rxe_5.12");
  EXPECT_EQ(name({5, 13, 0}), "rxe_5.15");
  EXPECT_EQ(name({5, 15, 99}), "rxe_5.15");
  EXPECT_EQ(name({5, 16, 0}), "rxe_6.1");
  EXPECT_EQ(name({6, 6, 0}), "rxe");
  EXPECT_EQ(ProfileOfKernel(Provider::kSiw, {5, 0, 0}), nullptr);
}

TEST(Registry, WhatADeviceTellsLiesOverItsProfile) {
  const DeviceLimits limits =
      Overlay(FindProfile("i40e")->limits,
              {.max_qp_wr = 100, .max_sge = 2, .irdma = {.max_quanta = 64}});
  EXPECT_EQ(limits.irdma.generation, 1u);
  EXPECT_EQ(limits.irdma.max_quanta, 64u);
  EXPECT_EQ(limits.max_inline_data, 48u);
  EXPECT_EQ(limits.max_sge, 2u);
  EXPECT_EQ(limits.max_qp_wr, 100u);
  EXPECT_TRUE(
      Overlay(FindProfile("bnxt_re_p7")->limits, {}).bnxt_re.variable_wqe);
  EXPECT_FALSE(
      Overlay(FindProfile("rxe_6.1")->limits, {}).writes_back_real_slots);
}

}  // namespace
}  // namespace purser::queue_memory
