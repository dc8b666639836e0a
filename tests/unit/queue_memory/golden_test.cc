// SPDX-License-Identifier: Apache-2.0
//
// Every golden row, every figure in it: a test per file, and a message per row
// that differs. Prints how many rows agree.
#include "tests/unit/queue_memory/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "queue_memory/queue_memory.h"
#include "queue_memory/registry.h"

namespace purser::queue_memory {
namespace {

struct File {
  const char* name;  // of the file, and of the profile
  size_t rows, accepted;
  // What an object takes beside its queues and arrays: structs, doorbell
  // records.
  uint64_t queue_pair, completion_queue;
};

constexpr File kFiles[] = {
    {"mlx5", 1430, 1316, 992 + 64, 616 + 64},
    {"mlx4", 985, 949, 520, 384 + 8},  // and 4 where there is a receive ring
    {"irdma", 994, 907, 496, 576},
    {"bnxt_re", 994, 893, 32, 264 + 96 + 32},  // the rest is in the buffer
    {"bnxt_re_p7", 994, 935, 32, 264 + 96 + 32},
    {"bnxt_re_pow2", 790, 697, 32, 264 + 96 + 32},
    {"hns", 1091, 1086, 656 + 4, 384 + 4},  // and 4, likewise
    {"hns_noinl", 960, 955, 656 + 4, 384 + 4},
    {"efa", 991, 729, 704, 416},
    {"erdma", 795, 692, 304 + 16, 208 + 16},
    {"mana", 797, 797, 648, 272},
    {"qedr", 892, 804, 704, 248},
    {"rxe", 991, 976, 464, 344},
    {"siw", 797, 713, 264, 176},
};

const DeviceProfile& ProfileOf(const std::string& name) {
  const DeviceProfile* profile = FindProfile(name.c_str());
  EXPECT_NE(profile, nullptr) << name;
  return profile != nullptr ? *profile : KnownProfiles().front();
}

bool HasReceiveDoorbell(const DeviceProfile& profile,
                        const QueueMemory& memory) {
  return (profile.provider == Provider::kMlx4 ||
          profile.provider == Provider::kHns) &&
         memory.receive_ring.bytes > 0;
}

// The columns sq_bytes and rq_bytes have the ring by itself, or what of the
// buffer it takes where the provider keeps nothing else.
uint64_t RingColumn(const DeviceProfile& profile, const Ring& ring,
                    const Charge& charge, bool receive) {
  switch (profile.provider) {
    case Provider::kIrdma:
    case Provider::kBnxtRe:
    case Provider::kHns:
    case Provider::kQedr:
      return charge.total();
    case Provider::kEfa:
      return receive ? charge.total() : ring.bytes;
    default:
      return ring.bytes;
  }
}

// The kernel's array of a ring's pages is not in the rows.
uint64_t WithoutPageArrays(const QueueMemory& memory) {
  return memory.total().total() - memory.overhead.node;
}

void ExpectCapacities(const GoldenQueuePair& row, const QueueMemory& memory) {
  EXPECT_EQ(memory.cap_send_wr, row.cap_send_wr);
  EXPECT_EQ(memory.cap_send_sge, row.cap_send_sge);
  // The echo of a stub; a real kernel answers otherwise.
  if (row.file != "bnxt_re_p7.csv") {
    EXPECT_EQ(memory.cap_inline_data, row.cap_inline_data);
  }
  EXPECT_EQ(memory.cap_recv_wr, row.cap_recv_wr);
  EXPECT_EQ(memory.cap_recv_sge, row.cap_recv_sge);
}

// "user", "kernel" or "mixed": efa's send copy and arrays are the process's.
void ExpectPayer(const GoldenQueuePair& row, const QueueMemory& memory) {
  const Charge rings = memory.send + memory.receive + memory.arrays;
  if (row.charged == "user") {
    EXPECT_EQ(memory.total().node, 0u);
  } else if (row.charged == "kernel") {
    EXPECT_EQ(rings.container, 0u);
  } else {
    EXPECT_EQ(rings, (Charge{row.sq_bytes + row.heap_bytes, row.rq_bytes}));
  }
}

void ExpectQueuePair(const GoldenQueuePair& row, const DeviceProfile& profile,
                     const File& file) {
  const QueueMemory memory =
      QueuePairMemory(profile.provider, profile.limits, row.request);
  ASSERT_EQ(!memory.refusal, row.ok) << LimitName(memory.refusal.limit);
  EXPECT_EQ(memory.exactness, Exactness::kExact);
  if (!row.ok) {
    EXPECT_NE(memory.refusal.asked, memory.refusal.allowed);
    EXPECT_EQ(memory.total(), Charge());
    return;
  }
  EXPECT_EQ(RingColumn(profile, memory.send_ring, memory.send, false),
            row.sq_bytes);
  EXPECT_EQ(RingColumn(profile, memory.receive_ring, memory.receive, true),
            row.rq_bytes);
  EXPECT_EQ(memory.buffer_bytes, row.buffer_bytes);
  if (profile.provider != Provider::kBnxtRe) {  // there part of the buffer
    EXPECT_EQ(memory.arrays.total(), row.heap_bytes);
  }
  EXPECT_EQ(WithoutPageArrays(memory),
            row.buffer_bytes + row.heap_bytes + file.queue_pair +
                (HasReceiveDoorbell(profile, memory) ? 4 : 0));
  ExpectPayer(row, memory);
  ExpectCapacities(row, memory);
}

int FailuresSoFar() {
  return testing::UnitTest::GetInstance()
      ->current_test_info()
      ->result()
      ->total_part_count();
}

// The textbook sum beside what is really taken. Those who reckon by it know
// that an XRC_SEND queue pair receives nothing; mlx5 makes a receive ring for
// it.
double TextbookShare(const GoldenQueuePair& row) {
  QueuePairRequest request = row.request;
  if (request.type == QueuePairType::kXrcSend && row.file != "mlx5.csv")
    request.max_recv_wr = 0;
  return static_cast<double>(TextbookBytes(request)) /
         static_cast<double>(row.buffer_bytes + row.heap_bytes);
}

void PrintTo(const File& file, std::ostream* out) { *out << file.name; }

class GoldenFile : public testing::TestWithParam<File> {};

TEST_P(GoldenFile, QueuePairs) {
  const File& file = GetParam();
  const DeviceProfile& profile = ProfileOf(file.name);
  const auto rows = ReadQueuePairs(file.name);
  ASSERT_EQ(rows.size(), file.rows);
  size_t accepted = 0, equal = 0;
  std::vector<double> textbook;
  for (const GoldenQueuePair& row : rows) {
    SCOPED_TRACE(row);
    const int failures = FailuresSoFar();
    ExpectQueuePair(row, profile, file);
    accepted += row.ok;
    if (row.ok) textbook.push_back(TextbookShare(row));
    equal += FailuresSoFar() == failures;
  }
  EXPECT_EQ(accepted, file.accepted);
  ASSERT_FALSE(textbook.empty());
  std::sort(textbook.begin(), textbook.end());
  std::printf(
      "%s: %zu of %zu queue pairs, %zu of them refused; the textbook sum is "
      "%.3f to %.2f of the real total, %.2f in the median\n",
      file.name, equal, rows.size(), rows.size() - accepted, textbook.front(),
      textbook.back(), textbook[textbook.size() / 2]);
}

INSTANTIATE_TEST_SUITE_P(, GoldenFile, testing::ValuesIn(kFiles),
                         testing::PrintToStringParamName());

// In cq.csv; rxe's rows there are of kernels before 5.13.
std::string CompletionQueueProfile(const std::string& provider) {
  return provider == "rxe" ? "rxe_5.12" : provider;
}

uint64_t FixedCompletionQueueBytes(const DeviceProfile& profile) {
  for (const File& file : kFiles)
    if (FindProfile(file.name)->provider == profile.provider)
      return file.completion_queue;
  ADD_FAILURE() << profile.name;
  return 0;
}

TEST(Golden, CompletionQueues) {
  std::map<std::string, int> equal;
  for (const GoldenCompletionQueue& row : ReadCompletionQueues()) {
    SCOPED_TRACE(row);
    const DeviceProfile& profile =
        ProfileOf(CompletionQueueProfile(row.provider));
    const QueueMemory memory =
        CompletionQueueMemory(profile.provider, profile.limits, row.cqe);
    EXPECT_EQ(!memory.refusal, row.ok);
    const bool differs =
        !memory.refusal != row.ok ||
        (row.ok && (memory.buffer_bytes != row.buffer_bytes ||
                    memory.cap_cqe != row.cap_cqe ||
                    memory.completion_ring.stride != row.cqe_size ||
                    WithoutPageArrays(memory) !=
                        row.buffer_bytes + FixedCompletionQueueBytes(profile)));
    EXPECT_FALSE(differs) << memory.buffer_bytes << " bytes, cqe "
                          << memory.cap_cqe << ", total " << memory.total();
    if (!differs) ++equal[row.provider];
    const bool by_node = row.charged == "kernel";
    EXPECT_EQ(by_node ? memory.completion.container : memory.completion.node,
              0u);
  }
  EXPECT_EQ(equal.size(), 14u);
  for (const auto& [provider, rows] : equal) {
    EXPECT_EQ(rows, 62) << provider;
    std::printf("%s: %d of 62 completion queues\n", provider.c_str(), rows);
  }
}

// What ibv_create_cq returned and the kernel allocated on Linux 6.1: the
// mapping of the ring, and the array of its pages beside one of more than 512
// pages.
TEST(Golden, RxeCompletionQueuesAsMeasured) {
  struct Measured {
    uint32_t asked, cqe;
    uint64_t ring_bytes, page_array_bytes;
  };
  for (const Measured& measured : {Measured{1, 1, 4096, 0},
                                   {15, 15, 4096, 0},
                                   {16, 31, 8192, 0},
                                   {127, 127, 20480, 0},
                                   {128, 255, 36864, 0},
                                   {255, 255, 36864, 0},
                                   {256, 511, 69632, 0},
                                   {1022, 1023, 135168, 0},
                                   {16382, 16383, 2101248, 8192},
                                   {32767, 32767, 4198400, 12288}}) {
    SCOPED_TRACE(measured.asked);
    const QueueMemory memory =
        CompletionQueueMemory(Provider::kRxe, {}, measured.asked);
    EXPECT_EQ(memory.cap_cqe, measured.cqe);
    EXPECT_EQ(memory.completion, (Charge{0, measured.ring_bytes}));
    EXPECT_EQ(memory.overhead.node, measured.page_array_bytes);
  }
}

}  // namespace
}  // namespace purser::queue_memory
