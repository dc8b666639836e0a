// SPDX-License-Identifier: Apache-2.0
//
// The memory model against the kernel on a grid of shapes, made by libibverbs
// alone: bytes, capacities written back and refusals are all as predicted.
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "planner/device.h"
#include "queue_memory/cliffs.h"
#include "queue_memory/registry.h"
#include "rdma/capabilities.h"
#include "rdma/handles.h"
#include "spdlog/fmt/fmt.h"
#include "tests/rxe/kernel_oracle.h"

namespace purser::rxe {
namespace {

using queue_memory::Provider;
using queue_memory::QueueMemory;
using queue_memory::QueuePairRequest;
using queue_memory::QueuePairType;

// Powers of two, one below and one above, in each argument.
constexpr uint32_t kSendWr[] = {0,    1,    2,    3,    15,   16,
                                17,   127,  255,  256,  257,  1023,
                                1024, 1025, 2047, 4095, 4096, 4097};
constexpr uint32_t kSendSge[] = {0, 1, 3, 4, 5, 15, 16, 17, 31, 32};
constexpr uint32_t kInline[] = {0, 47, 48, 49, 63, 64, 65, 304, 305, 511, 512};
struct Receives {
  uint32_t wr, sge;
};
constexpr Receives kReceives[] = {{0, 0},   {1, 1},      {127, 1}, {128, 2},
                                  {255, 6}, {256, 5},    {257, 7}, {4096, 1},
                                  {63, 32}, {16383, 13}, {17, 31}};

// Two arguments at a time take all their values, the others some.
std::vector<QueuePairRequest> Grid() {
  std::vector<QueuePairRequest> grid;
  size_t i = 0;
  for (const uint32_t wr : kSendWr)
    for (const uint32_t sge : kSendSge) {
      const Receives& receives = kReceives[i % std::size(kReceives)];
      grid.push_back({.max_send_wr = wr,
                      .max_send_sge = sge,
                      .max_inline_data = kInline[(i / 3) % std::size(kInline)],
                      .max_recv_wr = receives.wr,
                      .max_recv_sge = receives.sge});
      ++i;
    }
  for (const uint32_t bytes : kInline)
    for (const Receives& receives : kReceives) {
      grid.push_back({.max_send_wr = kSendWr[i % std::size(kSendWr)],
                      .max_send_sge = kSendSge[(i / 5) % std::size(kSendSge)],
                      .max_inline_data = bytes,
                      .max_recv_wr = receives.wr,
                      .max_recv_sge = receives.sge});
      ++i;
    }
  return grid;
}

// Around each limit of the device, one at a time and together.
std::vector<QueuePairRequest> Refusable(const ibv_device_attr& attr) {
  const auto most_wr = static_cast<uint32_t>(attr.max_qp_wr);
  const auto most_sge = static_cast<uint32_t>(attr.max_sge);
  const QueuePairRequest plain = {.max_send_wr = 16,
                                  .max_send_sge = 1,
                                  .max_recv_wr = 16,
                                  .max_recv_sge = 1};
  std::vector<QueuePairRequest> requests;
  for (const auto argument : queue_memory::kArguments) {
    const bool depth = argument == queue_memory::Argument::kMaxSendWr ||
                       argument == queue_memory::Argument::kMaxRecvWr;
    const bool bytes = argument == queue_memory::Argument::kMaxInlineData;
    const uint32_t most = depth ? most_wr : bytes ? 512 : most_sge;
    for (const uint32_t value : {most + 1, most + 2, 2 * most, UINT32_MAX})
      requests.push_back(With(plain, argument, value));
    if (!depth) requests.push_back(With(plain, argument, most));
  }
  requests.push_back({.max_send_wr = most_wr + 1,
                      .max_send_sge = most_sge + 1,
                      .max_inline_data = 513,
                      .max_recv_wr = most_wr + 1,
                      .max_recv_sge = most_sge + 1});
  return requests;
}

// Every third shape, of each other type and with receives that are shared.
std::vector<QueuePairRequest> OtherTypes() {
  std::vector<QueuePairRequest> requests;
  const std::vector<QueuePairRequest> grid = Grid();
  for (const QueuePairType type :
       {QueuePairType::kRc, QueuePairType::kUc, QueuePairType::kUd})
    for (const bool uses_srq : {false, true}) {
      if (type == QueuePairType::kRc && !uses_srq) continue;
      for (size_t i = requests.size() % 3; i < grid.size(); i += 3) {
        requests.push_back(grid[i]);
        requests.back().type = type;
        requests.back().uses_srq = uses_srq;
      }
    }
  return requests;
}

ibv_qp_type VerbsType(QueuePairType type) {
  return type == QueuePairType::kUc   ? IBV_QPT_UC
         : type == QueuePairType::kUd ? IBV_QPT_UD
                                      : IBV_QPT_RC;
}

struct SrqDeleter {
  void operator()(ibv_srq* srq) const { ibv_destroy_srq(srq); }
};
using SharedReceiveQueue = std::unique_ptr<ibv_srq, SrqDeleter>;

class QueueGridOnRxe : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0"))
      GTEST_SKIP() << "there is no rxe0; run it by tests/rxe/run";
    auto context = rdma::OpenDevice(verbs_, "rxe0");
    ASSERT_TRUE(context.ok()) << context.status();
    context_ = *std::move(context);
    auto pd = rdma::AllocPd(verbs_, context_);
    ASSERT_TRUE(pd.ok()) << pd.status();
    pd_ = *std::move(pd);
    auto cq = rdma::CreateCq(verbs_, context_, 1, nullptr, {});
    ASSERT_TRUE(cq.ok()) << cq.status();
    cq_ = *std::move(cq);
    const auto capabilities = rdma::QueryCapabilities(verbs_, context_);
    ASSERT_TRUE(capabilities.ok()) << capabilities.status();
    attr_ = capabilities->attr;
    utsname kernel{};
    ASSERT_EQ(uname(&kernel), 0);
    planner::Device device{.provider = Provider::kRxe};
    const auto status = planner::SetKernelVersion(kernel.release, &device);
    ASSERT_TRUE(status.ok()) << status;
    limits_ = queue_memory::Overlay(device.limits, capabilities->limits);
    ibv_srq_init_attr srq{};
    srq.attr = {.max_wr = 100, .max_sge = 2, .srq_limit = 0};
    srq_.reset(ibv_create_srq(pd_.get(), &srq));
    ASSERT_NE(srq_, nullptr);
    areas_ = ReadQueueAreas();
    mappings_ = ReadUverbsMappings(getpid());
  }

  QueueMemory Predict(const QueuePairRequest& request) const {
    return queue_memory::QueuePairMemory(Provider::kRxe, limits_, request);
  }

  // Destroyed rings go a moment later.
  void ExpectBaseline() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (ReadQueueAreas() != areas_ && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    ASSERT_EQ(ReadQueueAreas(), areas_);
  }

  void ExpectTaken(uint64_t node_bytes, uint64_t mapped_bytes) {
    EXPECT_EQ(ReadQueueAreas().bytes - areas_.bytes, node_bytes);
    EXPECT_EQ(ReadUverbsMappings(getpid()) - mappings_, mapped_bytes);
  }

  ibv_qp_init_attr AttrOf(const QueuePairRequest& request) const {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_.get();
    attr.qp_type = VerbsType(request.type);
    if (request.uses_srq) attr.srq = srq_.get();
    attr.cap = {.max_send_wr = request.max_send_wr,
                .max_recv_wr = request.max_recv_wr,
                .max_send_sge = request.max_send_sge,
                .max_recv_sge = request.max_recv_sge,
                .max_inline_data = request.max_inline_data};
    return attr;
  }

  // What the kernel says of `request` is what the model says. True where a
  // queue pair was made.
  bool Compare(const QueuePairRequest& request) {
    SCOPED_TRACE(fmt::format("{}{}: send {} x {}, inline {}, receive {} x {}",
                             queue_memory::QueuePairTypeName(request.type),
                             request.uses_srq ? " with an SRQ" : "",
                             request.max_send_wr, request.max_send_sge,
                             request.max_inline_data, request.max_recv_wr,
                             request.max_recv_sge));
    const QueueMemory memory = Predict(request);
    ibv_qp_init_attr attr = AttrOf(request);
    const auto queue_pair = rdma::CreateQp(verbs_, pd_, attr);
    EXPECT_EQ(queue_pair.ok(), !memory.refusal)
        << queue_pair.status() << ", predicted "
        << queue_memory::LimitName(memory.refusal.limit);
    if (!queue_pair.ok()) {
      EXPECT_EQ(rdma::ErrnoOf(queue_pair.status()), EINVAL);
      ExpectTaken(0, 0);
      return false;
    }
    ExpectTaken(memory.total().node, memory.buffer_bytes);
    EXPECT_EQ(attr.cap.max_send_wr, memory.cap_send_wr);
    EXPECT_EQ(attr.cap.max_send_sge, memory.cap_send_sge);
    EXPECT_EQ(attr.cap.max_inline_data, memory.cap_inline_data);
    EXPECT_EQ(attr.cap.max_recv_wr, memory.cap_recv_wr);
    EXPECT_EQ(attr.cap.max_recv_sge, memory.cap_recv_sge);
    return true;
  }

  bool CompareShared(const queue_memory::SharedReceiveQueueRequest& request) {
    SCOPED_TRACE(
        fmt::format("SRQ of {} x {}", request.max_wr, request.max_sge));
    const QueueMemory memory = queue_memory::SharedReceiveQueueMemory(
        Provider::kRxe, limits_, request);
    ibv_srq_init_attr attr{};
    attr.attr = {
        .max_wr = request.max_wr, .max_sge = request.max_sge, .srq_limit = 0};
    const SharedReceiveQueue queue(ibv_create_srq(pd_.get(), &attr));
    const int error = errno;
    EXPECT_EQ(queue != nullptr, !memory.refusal)
        << error << ", predicted "
        << queue_memory::LimitName(memory.refusal.limit);
    if (queue == nullptr) {
      EXPECT_EQ(error, EINVAL);
      ExpectTaken(0, 0);
      return false;
    }
    ExpectTaken(memory.total().node, memory.buffer_bytes);
    EXPECT_EQ(attr.attr.max_wr, memory.cap_srq_wr);
    EXPECT_EQ(attr.attr.max_sge, memory.cap_srq_sge);
    return true;
  }

  rdma::Verbs& verbs_ = rdma::LibibverbsVerbs();
  rdma::Context context_;
  rdma::ProtectionDomain pd_;
  rdma::CompletionQueue cq_;
  SharedReceiveQueue srq_;
  ibv_device_attr attr_{};
  queue_memory::DeviceLimits limits_;
  QueueAreas areas_;
  uint64_t mappings_ = 0;
};

// How far the field's sum is from the kernel's figures, beside the model's 0.
void PrintTextbookErrors(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  const auto at = [&](double part) {
    return ratios[static_cast<size_t>(part *
                                      static_cast<double>(ratios.size() - 1))];
  };
  const auto close = std::count_if(ratios.begin(), ratios.end(), [](double x) {
    return x >= 0.9 && x <= 1.1;
  });
  fmt::print(
      "kernel's bytes / textbook sum of {} queue pairs: least {:.2f}, 10 % "
      "{:.2f}, median {:.2f}, 90 % {:.2f}, most {:.2f}; within 10 %: {}\n",
      ratios.size(), at(0), at(0.1), at(0.5), at(0.9), at(1), close);
}

TEST_F(QueueGridOnRxe, QueuePairsAreAsPredicted) {
  std::vector<double> ratios;
  std::vector<QueuePairRequest> grid = Grid();
  const size_t shapes = grid.size();
  const auto refusable = Refusable(attr_);
  grid.insert(grid.end(), refusable.begin(), refusable.end());
  int made = 0;
  for (const QueuePairRequest& request : grid) {
    if (Compare(request)) {
      ++made;
      const auto textbook =
          static_cast<double>(queue_memory::TextbookBytes(request));
      const auto bytes = static_cast<double>(Predict(request).total().node);
      if (textbook > 0) ratios.push_back(bytes / textbook);
    }
    ExpectBaseline();
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(made, 60);
  EXPECT_GE(static_cast<int>(grid.size()) - made, 20);
  fmt::print("{} queue pairs made, {} refused, of a grid of {} and {} shapes\n",
             made, static_cast<int>(grid.size()) - made, shapes,
             refusable.size());
  PrintTextbookErrors(ratios);
}

TEST_F(QueueGridOnRxe, OtherTypesAndSharedReceivesAreAsPredicted) {
  const std::vector<QueuePairRequest> requests = OtherTypes();
  int made = 0;
  for (const QueuePairRequest& request : requests) {
    if (Compare(request)) ++made;
    ExpectBaseline();
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(made, 300);
  fmt::print("{} queue pairs made of {} shapes of UC, UD and with an SRQ\n",
             made, requests.size());
}

TEST_F(QueueGridOnRxe, SharedReceiveQueuesAreAsPredicted) {
  const auto most_wr = static_cast<uint32_t>(attr_.max_srq_wr);
  const auto most_sge = static_cast<uint32_t>(attr_.max_srq_sge);
  int shapes = 0, made = 0;
  for (const uint32_t wr :
       {0u,    1u,    2u,    3u,    15u,         16u,       17u,
        127u,  128u,  129u,  255u,  256u,        257u,      1023u,
        1024u, 4095u, 4096u, 4097u, most_wr + 1, UINT32_MAX})
    for (const uint32_t sge :
         {0u, 1u, 2u, 5u, 6u, 7u, 13u, 14u, most_sge, most_sge + 1}) {
      ++shapes;
      if (CompareShared({.max_wr = wr, .max_sge = sge})) ++made;
      ExpectBaseline();
      if (HasFatalFailure()) return;
    }
  EXPECT_GE(made, 60);
  fmt::print("{} shared receive queues made of {} shapes\n", made, shapes);
}

TEST_F(QueueGridOnRxe, CompletionQueuesAreAsPredicted) {
  for (const int cqe :
       {0,     1,     2,     3,     4,     15,    16,    17,     255,
        256,   257,   1023,  1024,  1025,  4096,  8191,  8192,   16381,
        16382, 16383, 16384, 32766, 32767, 32768, 65536, 1 << 30}) {
    SCOPED_TRACE(cqe);
    {
      const QueueMemory memory = queue_memory::CompletionQueueMemory(
          Provider::kRxe, limits_, static_cast<uint32_t>(cqe));
      const auto queue = rdma::CreateCq(verbs_, context_, cqe, nullptr, {});
      ASSERT_EQ(queue.ok(), !memory.refusal) << queue.status();
      ExpectTaken(memory.total().node, memory.buffer_bytes);
      if (queue.ok()) {
        EXPECT_EQ(static_cast<uint32_t>((*queue)->cqe), memory.cap_cqe);
      }
    }
    ExpectBaseline();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace purser::rxe
