// SPDX-License-Identifier: Apache-2.0
#include "rdma/resource_netlink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netlink/msg.h>
#include <rdma/rdma_netlink.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "tests/fakes/fake_rdma_netlink.h"
#include "tests/fakes/paths.h"

namespace purser::rdma {
namespace {

using fakes::FakeRdmaKernel;
using fakes::KernelObject;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class ResourceNetlinkTest : public ::testing::Test {
 protected:
  std::vector<ResourceRecord> Dump(ResourceKind kind, uint32_t index) {
    std::vector<ResourceRecord> records;
    status_ = netlink_.Dump(kind, index, [&](const ResourceRecord& record) {
      names_.emplace_back(record.kernel_owner);
      ForEachDriverAttribute(record.driver,
                             [&](std::string_view name, uint64_t value) {
                               driver_.emplace_back(name, value);
                             });
      records.push_back(record);
    });
    return records;
  }

  FakeRdmaKernel kernel_;
  std::unique_ptr<NetlinkTransport> transport_ = kernel_.Open();
  ResourceNetlink netlink_{*transport_};
  absl::Status status_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, uint64_t>> driver_;
};

TEST_F(ResourceNetlinkTest, ListsTheDevices) {
  EXPECT_THAT(*netlink_.Devices(), IsEmpty());
  kernel_.AddDevice("mlx5_0");
  const uint32_t index = kernel_.AddDevice("rxe0");
  const auto devices = netlink_.Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_THAT(*devices, SizeIs(2));
  EXPECT_EQ((*devices)[1].name, "rxe0");
  EXPECT_EQ((*devices)[1].index, index);
}

TEST_F(ResourceNetlinkTest, TellsTheModeOfNetworkNamespaces) {
  EXPECT_EQ(netlink_.Mode().value(), NamespaceMode::kShared);
  kernel_.SetMode(NamespaceMode::kExclusive);
  EXPECT_EQ(netlink_.Mode().value(), NamespaceMode::kExclusive);
  kernel_.SetMode(std::nullopt);
  EXPECT_TRUE(absl::IsInvalidArgument(netlink_.Mode().status()));
  kernel_.AnswerNext(RawQueuePairRequest(0, 0));
  EXPECT_FALSE(netlink_.Mode().ok());
}

TEST_F(ResourceNetlinkTest, TellsAllOfAQueuePair) {
  kernel_.AddDevice("other");
  const uint32_t index = kernel_.AddDevice("bnxt_re0");
  kernel_.Add("other", {.id = 99});
  kernel_.Add("bnxt_re0", {.id = 17,
                           .pid = 4711,
                           .protection_domain = 3,
                           .type = 4,
                           .state = 1,
                           .remote_qpn = 18,
                           .driver = {{"sq_max_wqe", 385}, {"sq_max_sge", 6}}});
  kernel_.Add("bnxt_re0",
              {.id = 1, .kernel_owner = "ib_core", .type = 1, .state = 3});
  const auto records = Dump(ResourceKind::kQueuePair, index);
  ASSERT_TRUE(status_.ok()) << status_;
  ASSERT_THAT(records, SizeIs(2));
  EXPECT_EQ(records[0].local_qpn, 17u);
  EXPECT_EQ(records[0].pid, 4711u);
  EXPECT_EQ(records[0].protection_domain, 3u);
  EXPECT_EQ(records[0].type, 4);
  EXPECT_EQ(records[0].state, 1);
  EXPECT_EQ(records[0].remote_qpn, 18u);
  EXPECT_FALSE(records[0].context.has_value());
  EXPECT_THAT(driver_,
              ElementsAre(Pair("sq_max_wqe", 385), Pair("sq_max_sge", 6)));
  EXPECT_FALSE(records[1].pid.has_value());
  EXPECT_THAT(names_, ElementsAre("", "ib_core"));
}

TEST_F(ResourceNetlinkTest, TellsAllOfOtherObjects) {
  const uint32_t index = kernel_.AddDevice("rxe0");
  kernel_.Add("rxe0", {.kind = ResourceKind::kContext, .id = 5, .pid = 1});
  kernel_.Add("rxe0", {.kind = ResourceKind::kProtectionDomain,
                       .id = 6,
                       .pid = 2,
                       .context = 5});
  kernel_.Add("rxe0", {.kind = ResourceKind::kCompletionQueue,
                       .id = 7,
                       .context = 5,
                       .cqe = 255});
  kernel_.Add("rxe0", {.kind = ResourceKind::kSharedReceiveQueue,
                       .id = 8,
                       .pid = 3,
                       .protection_domain = 6});
  EXPECT_EQ(Dump(ResourceKind::kContext, index)[0].id, 5u);
  const auto domain = Dump(ResourceKind::kProtectionDomain, index);
  EXPECT_EQ(domain[0].id, 6u);
  EXPECT_EQ(domain[0].context, 5u);
  const auto queue = Dump(ResourceKind::kCompletionQueue, index);
  EXPECT_EQ(queue[0].id, 7u);
  EXPECT_EQ(queue[0].cqe, 255u);
  EXPECT_FALSE(queue[0].pid.has_value());
  const auto shared = Dump(ResourceKind::kSharedReceiveQueue, index);
  EXPECT_EQ(shared[0].id, 8u);
  EXPECT_EQ(shared[0].protection_domain, 6u);
}

TEST_F(ResourceNetlinkTest, ManyObjectsComeInManyDatagrams) {
  const uint32_t index = kernel_.AddDevice("rxe0");
  for (uint32_t i = 0; i < 1234; ++i) kernel_.Add("rxe0", {.id = i});
  const auto records = Dump(ResourceKind::kQueuePair, index);
  ASSERT_THAT(records, SizeIs(1234));
  EXPECT_EQ(records.back().local_qpn, 1233u);
}

TEST_F(ResourceNetlinkTest, GivesTheDevicesOwnRecordOfAQueuePair) {
  const uint32_t index = kernel_.AddDevice("mlx5_0");
  const std::vector<std::byte> raw = {std::byte{1}, std::byte{2}, std::byte{3}};
  kernel_.Add("mlx5_0", {.id = 40, .raw = raw});
  const auto read = netlink_.RawQueuePair(index, 40);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, raw);
  EXPECT_TRUE(
      absl::IsInvalidArgument(netlink_.RawQueuePair(index, 41).status()));
  kernel_.SetNetAdmin(false);
  const auto refused = netlink_.RawQueuePair(index, 40);
  EXPECT_TRUE(absl::IsPermissionDenied(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("queue pair 40"));
}

TEST_F(ResourceNetlinkTest, ErrorsNameWhatWasAsked) {
  const uint32_t index = kernel_.AddDevice("rxe0");
  kernel_.FailNext(ResourceKind::kQueuePair, EBUSY);
  Dump(ResourceKind::kQueuePair, index);
  EXPECT_FALSE(status_.ok());
  EXPECT_THAT(std::string(status_.message()),
              HasSubstr("list the queue pairs of RDMA device 0"));
  Dump(ResourceKind::kQueuePair, index);
  EXPECT_TRUE(status_.ok()) << "asked again: " << status_;
  Dump(ResourceKind::kQueuePair, 77);
  EXPECT_TRUE(absl::IsInvalidArgument(status_)) << status_;
}

TEST_F(ResourceNetlinkTest, WhatIsNoAnswerIsAnError) {
  const uint32_t index = kernel_.AddDevice("rxe0");
  kernel_.AnswerNext({});
  Dump(ResourceKind::kQueuePair, index);
  EXPECT_TRUE(absl::IsDataLoss(status_)) << status_;
  kernel_.AnswerNext(std::vector<std::byte>(7, std::byte{0xff}));
  Dump(ResourceKind::kQueuePair, index);
  EXPECT_TRUE(absl::IsDataLoss(status_)) << status_;
}

// A whole answer, cut and with bytes changed: it may be read or refused, but
// reads nothing beyond it (AddressSanitizer) and ends.
TEST_F(ResourceNetlinkTest, SurvivesGarbage) {
  const uint32_t index = kernel_.AddDevice("hns_0");
  kernel_.Add("hns_0", {.id = 17,
                        .pid = 4711,
                        .protection_domain = 3,
                        .driver = {{"sq_wqe_cnt", 128}}});
  std::vector<std::byte> whole;
  ASSERT_TRUE(transport_
                  ->Exchange(ResourcesRequest(ResourceKind::kQueuePair, index),
                             [&](Bytes datagram) -> absl::StatusOr<Answer> {
                               whole.assign(datagram.begin(), datagram.end());
                               return Answer::kDone;
                             })
                  .ok());
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(whole.begin(),
                                 whole.begin() + random() % whole.size());
    for (int change = 0; change < 3 && !bytes.empty(); ++change)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.shrink_to_fit();
    uint64_t sum = 0;
    const auto visit = [&sum](const ResourceRecord& record) {
      sum += record.kernel_owner.size();
      ForEachDriverAttribute(record.driver,
                             [&sum](std::string_view name, uint64_t value) {
                               sum += name.size() + value;
                             });
    };
    (void)ParseResources(bytes, ResourceKind::kQueuePair, visit);
    std::vector<NetlinkDevice> devices;
    (void)ParseDevices(bytes, &devices);
    std::vector<std::byte> raw;
    (void)ParseRawQueuePair(bytes, &raw);
  }
}

TEST(DriverAttributesTest, TextAndWhatIsBelowZeroIsLeftOut) {
  std::vector<std::byte> bytes;
  const auto put = [&bytes](uint16_t type, const void* data, uint16_t size) {
    const uint16_t header[] = {static_cast<uint16_t>(size + 4), type};
    const auto* head = reinterpret_cast<const std::byte*>(header);
    bytes.insert(bytes.end(), head, head + sizeof(header));
    const auto* body = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), body, body + size);
    bytes.resize((bytes.size() + 3) / 4 * 4);
  };
  const auto name = [&](const char* text) {
    put(RDMA_NLDEV_ATTR_DRIVER_STRING, text,
        static_cast<uint16_t>(std::strlen(text) + 1));
  };
  const int32_t below = -1, above = 8;
  const uint64_t wide = 1ull << 40;
  name("owner"), name("user");
  name("below"), put(RDMA_NLDEV_ATTR_DRIVER_S32, &below, 4);
  name("above"), put(RDMA_NLDEV_ATTR_DRIVER_S32, &above, 4);
  name("wide"), put(RDMA_NLDEV_ATTR_DRIVER_U64, &wide, 8);
  name("cut"), put(RDMA_NLDEV_ATTR_DRIVER_U32, &above, 2);
  put(RDMA_NLDEV_ATTR_DRIVER_U32, &above, 4);  // without a name
  std::vector<std::pair<std::string, uint64_t>> found;
  ForEachDriverAttribute(bytes, [&](std::string_view n, uint64_t value) {
    found.emplace_back(n, value);
  });
  EXPECT_THAT(found, ElementsAre(Pair("above", 8), Pair("wide", wide)));
}

std::vector<std::byte> Recorded(const std::string& name) {
  std::ifstream file(fakes::SourcePath("tests/fuzz/corpus/node_view/" + name),
                     std::ios::binary);
  std::vector<std::byte> bytes;
  for (char c; file.get(c);) bytes.push_back(static_cast<std::byte>(c));
  // The first says to the fuzzer what the rest is.
  if (!bytes.empty()) bytes.erase(bytes.begin());
  return bytes;
}

// What Linux 6.1 said of soft-RoCE: a process with a context, a protection
// domain, a completion queue of 255, a shared receive queue, and a UD and two
// RC queue pairs; the kernel's own beside them.
TEST(RecordedTest, IsRead) {
  std::vector<NetlinkDevice> devices;
  ASSERT_TRUE(ParseDevices(Recorded("recorded-devices"), &devices).ok());
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0].name, "rxe0");
  EXPECT_EQ(*ParseDevices(Recorded("recorded-devices-end"), &devices),
            Answer::kDone);
  const auto read = [](const char* name, ResourceKind kind) {
    std::vector<ResourceRecord> records;
    const std::vector<std::byte> bytes = Recorded(name);
    const auto answer =
        ParseResources(bytes, kind, [&](const ResourceRecord& record) {
          records.push_back(record);
          records.back().kernel_owner = record.of_kernel() ? "kernel" : "";
          records.back().driver = {};
        });
    EXPECT_TRUE(answer.ok()) << answer.status();
    return records;
  };
  const auto contexts = read("recorded-contexts", ResourceKind::kContext);
  ASSERT_THAT(contexts, SizeIs(1));
  EXPECT_EQ(contexts[0].id, 0u);
  const uint32_t pid = *contexts[0].pid;
  const auto domains =
      read("recorded-domains", ResourceKind::kProtectionDomain);
  ASSERT_THAT(domains, SizeIs(2));
  EXPECT_TRUE(domains[0].of_kernel());
  EXPECT_EQ(domains[1].id, 1u);
  EXPECT_EQ(domains[1].context, 0u);
  const auto cqs = read("recorded-cqs", ResourceKind::kCompletionQueue);
  ASSERT_THAT(cqs, SizeIs(2));
  EXPECT_EQ(cqs[1].cqe, 255u);
  EXPECT_EQ(cqs[1].context, 0u);
  const auto srqs = read("recorded-srqs", ResourceKind::kSharedReceiveQueue);
  ASSERT_THAT(srqs, SizeIs(1));
  EXPECT_EQ(srqs[0].protection_domain, 1u);
  const auto queue_pairs = read("recorded-qps", ResourceKind::kQueuePair);
  ASSERT_THAT(queue_pairs, SizeIs(4));
  EXPECT_EQ(queue_pairs[0].local_qpn, 17u);
  EXPECT_EQ(queue_pairs[0].type, 4);
  EXPECT_EQ(queue_pairs[2].pid, pid);
  EXPECT_EQ(queue_pairs[2].protection_domain, 1u);
  EXPECT_EQ(queue_pairs[3].type, 1);
  EXPECT_EQ(queue_pairs[3].state, 3);
  EXPECT_TRUE(queue_pairs[3].of_kernel());
  std::vector<std::byte> raw;
  EXPECT_TRUE(absl::IsInvalidArgument(
      ParseRawQueuePair(Recorded("recorded-raw"), &raw).status()))
      << "soft-RoCE has no record of its own";
}

// Whatever kernel this is, the socket says what there is or why not.
TEST(OpenRdmaNetlinkTest, OpensOrSaysWhyNot) {
  const auto transport = OpenRdmaNetlink(std::chrono::milliseconds(500));
  if (!transport.ok()) {
    EXPECT_TRUE(absl::IsUnimplemented(transport.status()))
        << transport.status();
    return;
  }
  ResourceNetlink netlink(**transport);
  EXPECT_TRUE(netlink.Devices().ok()) << netlink.Devices().status();
}

}  // namespace
}  // namespace purser::rdma
