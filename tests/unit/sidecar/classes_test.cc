// SPDX-License-Identifier: Apache-2.0
//
// Classes as the admission of queue pairs sees them.
#include "sidecar/classes.h"

#include <cstdio>
#include <vector>

#include "base/quantity.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sidecar/admission.h"
#include "tests/unit/sidecar/fake_sidecar.h"

namespace purser::sidecar {
namespace {

using queue_memory::QueuePairRequest;
using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

std::string Fault(ClassesConfig config) {
  const absl::Status status = Complete(config);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(ClassesConfigTest, HasADefaultClassAlways) {
  ClassesConfig config{.classes = {{.name = "core"}}};
  ASSERT_TRUE(Complete(config).ok());
  EXPECT_EQ(config.Names(), "core, default");
  EXPECT_EQ(config.Find("")->name, "default");
  EXPECT_EQ(config.Find("core")->name, "core");
  EXPECT_EQ(config.Find("other"), nullptr);
  ClassesConfig own{.classes = {{.name = "default", .floor = 0.5}}};
  ASSERT_TRUE(Complete(own).ok());
  EXPECT_EQ(own.classes.size(), 1u);
}

TEST(ClassesConfigTest, WhatCannotBePromisedIsRefused) {
  EXPECT_THAT(Fault({.classes = {{.name = "a", .floor = 0.6},
                                 {.name = "b", .floor = 0.3}},
                     .guarantees = {{"c", 0.2}}}),
              AllOf(HasSubstr("promise 110 % of the budget"),
                    HasSubstr("class a 60 % + class b 30 % + client c 20 %")));
  EXPECT_THAT(
      Fault({.classes = {{.name = "a", .floor = 0.6, .max_share = 0.5}}}),
      HasSubstr("class a: floor 60 % is more than its maxShare 50 %"));
  EXPECT_THAT(Fault({.classes = {{.name = "a"}, {.name = "a"}}}),
              HasSubstr("defined twice"));
  EXPECT_THAT(Fault({.classes = {{}}}), HasSubstr("no name"));
  EXPECT_THAT(Fault({.guarantees = {{"a", 0.1}, {"a", 0.1}}}),
              HasSubstr("two guarantees"));
  EXPECT_THAT(Fault({.guarantees = {{"", 0.1}}}), HasSubstr("no client"));
  ClassesConfig whole{
      .classes = {{.name = "a", .floor = 0.7}, {.name = "b", .floor = 0.1}},
      .guarantees = {{"c", 0.1}, {"d", 0.1}}};
  EXPECT_TRUE(Complete(whole).ok());
}

DeviceTraits Rxe() {
  return {.name = "rxe0",
          .provider = queue_memory::Provider::kRxe,
          .limits = {.max_qp_wr = 16384, .max_sge = 32, .max_cqe = 32767},
          .max_qp = 65536};
}

QueuePairRequest Rc(uint32_t wr, uint32_t sge) {
  return {.max_send_wr = wr,
          .max_send_sge = sge,
          .max_recv_wr = wr,
          .max_recv_sge = 1};
}

class ClassesTest : public testing::Test {
 protected:
  ClassesTest() { ledger::Ledger::Format(state_); }
  void Start(uint64_t bytes, ClassesConfig classes) {
    ASSERT_TRUE(Complete(classes).ok());
    BudgetInputs inputs;
    inputs.plugin_bytes = std::to_string(bytes);
    admission_.emplace(ledger::Ledger(&state_), DetermineBudget(inputs).value(),
                       std::move(classes));
  }
  std::variant<Grant, Refusal> Admit(const char* of, QueuePairRequest request) {
    return admission_->Admit(Rxe(), request, 0, {.class_name = of});
  }
  // How many are granted, at most `most`; they are held.
  int Fill(const char* of, QueuePairRequest request, int most,
           Refusal* refusal = nullptr) {
    for (int count = 0; count < most; ++count) {
      auto result = Admit(of, request);
      if (auto* grant = std::get_if<Grant>(&result)) {
        grants_.push_back(std::move(*grant));
        continue;
      }
      if (refusal != nullptr) *refusal = std::get<Refusal>(result);
      return count;
    }
    return most;
  }
  uint64_t held() { return ledger::Ledger(&state_).balance().held.total(); }

  ledger::LedgerState state_;
  std::optional<Admission> admission_;
  std::vector<Grant> grants_;
};

// The incident of a storage gateway: one depth for all connections.
TEST_F(ClassesTest, AStorageGatewaysConnectionsFitInTwoClasses) {
  constexpr uint64_t kBudget = 2048 * kMiB;
  constexpr int kConnections = 800, kCore = 16;
  Start(kBudget, {});
  Refusal refusal;
  const int granted = Fill("", Rc(4096, 16), kConnections, &refusal);
  EXPECT_LT(granted, kConnections);
  EXPECT_EQ(refusal.reason, RefusalReason::kBudget);
  EXPECT_THAT(refusal.message,
              AllOf(HasSubstr("send ring"), HasSubstr("completion queue"),
                    HasSubstr("of 2,147,483,648 bytes are in use")));
  const uint64_t each = refusal.needed_bytes;
  grants_.clear();
  EXPECT_EQ(held(), 0u);

  Start(kBudget, {.classes = {{.name = "core", .core = true, .floor = 0.15},
                              {.name = "ordinary", .weight = 8}}});
  EXPECT_EQ(Fill("ordinary", Rc(256, 4), kConnections - kCore),
            kConnections - kCore);
  EXPECT_EQ(Fill("core", Rc(4096, 16), kCore), kCore);
  const double saving = 100 - 100.0 * static_cast<double>(held()) /
                                  static_cast<double>(each * kConnections);
  std::printf(
      "800 connections at 4096 x 16: %s, of which %d fit 2 GiB; %d so and %d "
      "at "
      "256 x 4: %s, %.1f %% less\n",
      base::FormatBytes(each * kConnections).c_str(), granted, kCore,
      kConnections - kCore, base::FormatBytes(held()).c_str(), saving);
  EXPECT_GE(saving, 85);
}

TEST_F(ClassesTest, ARefusalByAShareNamesIt) {
  Start(8 * kMiB, {.classes = {{.name = "core", .floor = 0.5}}});
  Refusal refusal;
  Fill("", Rc(256, 4), 1000, &refusal);
  EXPECT_EQ(refusal.reason, RefusalReason::kClassShare);
  EXPECT_STREQ(RefusalReasonName(refusal.reason), "class_share");
  EXPECT_EQ(refusal.limit, "class default");
  EXPECT_THAT(refusal.message,
              AllOf(HasSubstr("class default, which has "),
                    HasSubstr("may take "), HasSubstr("ask for max_send_wr")));
  // What it says fits, does.
  QueuePairRequest smaller = Rc(256, 4);
  smaller.max_send_wr = refusal.largest_max_send_wr;
  ASSERT_GT(smaller.max_send_wr, 0u);
  EXPECT_TRUE(std::holds_alternative<Grant>(Admit("", smaller)));
}

TEST_F(ClassesTest, AnUnknownClassIsInvalid) {
  Start(kMiB, {.classes = {{.name = "core"}}});
  const auto result = Admit("cor", Rc(16, 1));
  EXPECT_EQ(std::get<Refusal>(result).reason, RefusalReason::kInvalid);
  EXPECT_THAT(std::get<Refusal>(result).message,
              AllOf(HasSubstr("no class \"cor\""), HasSubstr("core, default")));
}

TEST_F(ClassesTest, TightMemoryIsForCoreClassesAndCriticalForNone) {
  Start(64 * kMiB, {.classes = {{.name = "core", .core = true}}});
  admission_->SetPressure(PressureScope::kNode, {PressureState::kTight, ""});
  EXPECT_TRUE(std::holds_alternative<Refusal>(Admit("", Rc(16, 1))));
  EXPECT_TRUE(std::holds_alternative<Grant>(Admit("core", Rc(16, 1))));
  admission_->SetPressure(PressureScope::kNode, {PressureState::kCritical, ""});
  EXPECT_TRUE(std::holds_alternative<Refusal>(Admit("core", Rc(16, 1))));
}

TEST_F(ClassesTest, LessIsGrantedWhereTheRequestTakesLess) {
  Start(4 * kMiB, {});
  const auto at_least = [&](QueuePairRequest least) {
    return admission_->AdmitAtLeast(Rxe(), Rc(4096, 8), least, 0, {});
  };
  auto shrunk = at_least(Rc(64, 8));
  Grant* grant = std::get_if<Grant>(&shrunk);
  ASSERT_NE(grant, nullptr);
  ASSERT_TRUE(grant->shrunk.has_value());
  EXPECT_EQ(grant->shrunk->reason, RefusalReason::kBudget);
  EXPECT_LT(grant->request.max_send_wr, 4096u);
  EXPECT_EQ(grant->request.max_recv_wr, 4096u);
  // No deeper one would have fitted.
  EXPECT_EQ(grant->request.max_send_wr, grant->shrunk->largest_max_send_wr);
  const uint64_t left = 4 * kMiB - held();

  // Nothing is left for even the least, with as many receives or with few.
  auto refused = at_least(Rc(4000, 8));
  EXPECT_EQ(std::get<Refusal>(refused).asked_value, 0u);
  EXPECT_THAT(std::get<Refusal>(refused).message, HasSubstr("4096/8 send"));
  // The receive queue goes to its least where that helps.
  if (left > 200'000) {
    auto both = at_least(Rc(16, 8));
    ASSERT_NE(std::get_if<Grant>(&both), nullptr);
    EXPECT_EQ(std::get<Grant>(both).request.max_recv_wr, 16u);
  }
}

TEST_F(ClassesTest, AQueuePairWithoutASendQueueShrinksItsReceives) {
  Start(kMiB, {});
  const QueuePairRequest wanted = {.max_recv_wr = 16384, .max_recv_sge = 8};
  auto result = admission_->AdmitAtLeast(
      Rxe(), wanted, {.max_recv_wr = 16, .max_recv_sge = 8}, 0, {});
  const Grant* grant = std::get_if<Grant>(&result);
  ASSERT_NE(grant, nullptr);
  EXPECT_TRUE(grant->shrunk.has_value());
  EXPECT_GT(grant->request.max_recv_wr, 1000u);
  // No deeper one would have fitted.
  QueuePairRequest deeper = grant->request;
  ++deeper.max_recv_wr;
  const uint64_t held_before = held();
  EXPECT_LE(held_before, kMiB);
  EXPECT_GT(queue_memory::QueuePairWithCompletionQueueMemory(
                queue_memory::Provider::kRxe, Rxe().limits, deeper)
                .memory.total()
                .total(),
            kMiB);
  auto refused = admission_->AdmitAtLeast(
      Rxe(), wanted, {.max_recv_wr = 16384, .max_recv_sge = 8}, 0, {});
  EXPECT_TRUE(std::holds_alternative<Refusal>(refused));
}

TEST(ClassesOfQueuePairsTest, AreShownAndEndWithThem) {
  FakeSidecar sidecar;
  const std::string client = sidecar.Attach();
  std::optional<Refusal> shrunk;
  const auto unknown = sidecar.queue_pairs().Create(
      {.client_id = client, .device = &sidecar.device(), .class_name = "none"});
  EXPECT_TRUE(std::holds_alternative<Refusal>(unknown));
  const auto created = sidecar.queue_pairs().Create(
      {.client_id = client,
       .device = &sidecar.device(),
       .cap = {.max_send_wr = 16384,
               .max_recv_wr = 16,
               .max_send_sge = 30,
               .max_recv_sge = 1},
       .least = ibv_qp_cap{.max_send_wr = 16, .max_recv_wr = 16}},
      &shrunk);
  const auto* queue_pair =
      std::get_if<std::shared_ptr<BrokeredQueuePair>>(&created);
  ASSERT_NE(queue_pair, nullptr);
  EXPECT_EQ((*queue_pair)->facts().owner->class_name, "default");
  ASSERT_FALSE(shrunk.has_value()) << "64 MiB are enough";
  EXPECT_EQ(sidecar.admission().accounts().Use()[0].used_bytes,
            sidecar.held_bytes());
}

}  // namespace
}  // namespace purser::sidecar
