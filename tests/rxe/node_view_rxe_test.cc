// SPDX-License-Identifier: Apache-2.0
//
// The node view against the truth on a real soft-RoCE device: netlink, /proc
// and vmallocinfo are the kernel's, two processes are in cgroups as a kubelet
// makes them, and the kubelet itself is a fake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

#include "node_view/node_view.h"
#include "rdma/discovery.h"
#include "spdlog/fmt/fmt.h"
#include "tests/fakes/fake_pod_resources.h"
#include "tests/fakes/file_tree.h"
#include "tests/rxe/kernel_oracle.h"

namespace purser::node_view {
namespace {

using queue_memory::Provider;
using queue_memory::QueuePairRequest;
using queue_memory::QueuePairType;
using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::Pair;

// One has rings of more than 2 MiB, whose pages' array is an area of its own.
constexpr QueuePairRequest kShapes[] = {
    {.max_send_wr = 256,
     .max_send_sge = 4,
     .max_recv_wr = 256,
     .max_recv_sge = 1},
    {.max_send_wr = 128,
     .max_send_sge = 2,
     .max_recv_wr = 128,
     .max_recv_sge = 1},
    {.max_send_wr = 1024,
     .max_send_sge = 16,
     .max_recv_wr = 16,
     .max_recv_sge = 1},
    {.max_send_wr = 4096,
     .max_send_sge = 8,
     .max_recv_wr = 1,
     .max_recv_sge = 1},
    {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1}};
constexpr uint32_t kCqe = 255;
constexpr uint64_t kMib = 1 << 20;

struct Asked {
  int count = 0;  // queue pairs, of each shape in turn
  int first_shape = 0;
  bool by_ended_threads = false;
  bool forks = false;  // a child repeats the mappings
  std::string cgroup;  // below /sys/fs/cgroup; "": stays
};

// What it costs by the memory model, which other tests hold against the kernel.
queue_memory::Charge Cost(const Asked& asked) {
  queue_memory::Charge sum =
      CompletionQueueMemory(Provider::kRxe, {}, kCqe).total();
  for (int i = 0; i < asked.count; ++i)
    sum += QueuePairMemory(Provider::kRxe, {},
                           kShapes[(asked.first_shape + i) % 5])
               .total();
  return sum;
}

int AwaitEnd(int end) {
  char byte = 0;
  while (read(end, &byte, 1) > 0)
    ;
  return 0;
}

// Runs in the child.
int Hold(const Asked& asked, int ready, int end) {
  if (!asked.cgroup.empty()) {
    const std::string cgroup = "/sys/fs/cgroup/" + asked.cgroup;
    std::filesystem::create_directories(cgroup);
    std::ofstream(cgroup + "/cgroup.procs") << getpid();
  }
  ibv_device** devices = ibv_get_device_list(nullptr);
  if (devices == nullptr || devices[0] == nullptr) return 1;
  ibv_context* context = ibv_open_device(devices[0]);
  if (context == nullptr) return 2;
  ibv_pd* pd = ibv_alloc_pd(context);
  ibv_cq* cq = ibv_create_cq(context, kCqe, nullptr, nullptr, 0);
  if (pd == nullptr || cq == nullptr) return 3;
  bool all = true;
  const auto create = [&](int i) {
    const QueuePairRequest& shape = kShapes[(asked.first_shape + i) % 5];
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.qp_type = i % 5 == 4 ? IBV_QPT_UD : IBV_QPT_RC;
    attr.cap = {.max_send_wr = shape.max_send_wr,
                .max_recv_wr = shape.max_recv_wr,
                .max_send_sge = shape.max_send_sge,
                .max_recv_sge = shape.max_recv_sge,
                .max_inline_data = 0};
    all &= ibv_create_qp(pd, &attr) != nullptr;
  };
  for (int i = 0; i < asked.count; ++i) {
    if (asked.by_ended_threads) {
      std::thread(create, i).join();
    } else {
      create(i);
    }
  }
  if (asked.forks && fork() == 0) _exit(AwaitEnd(end));
  const char byte = all ? 'y' : 'n';
  if (write(ready, &byte, 1) != 1) return 4;
  (void)AwaitEnd(end);
  while (wait(nullptr) > 0)
    ;
  return 0;
}

// Holders end in reverse order, for each keeps open what those before it wait
// for.
class Holder {
 public:
  explicit Holder(const Asked& asked) {
    int ready[2] = {}, end[2] = {};
    EXPECT_EQ(pipe(ready), 0);
    EXPECT_EQ(pipe(end), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(end[1]);
      _exit(Hold(asked, ready[1], end[0]));
    }
    close(ready[1]);
    close(end[0]);
    end_ = end[1];
    char answer = 0;
    EXPECT_EQ(read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y') << "not all queue pairs could be made";
    close(ready[0]);
  }
  ~Holder() {
    close(end_);
    waitpid(pid_, nullptr, 0);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int end_ = -1;
};

// In a child with these capabilities and no other, as uid 0; its result.
int WithCapabilities(uint32_t capabilities, const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    data[0].effective = data[0].permitted = capabilities;
    if (syscall(SYS_capset, &header, data) != 0) _exit(100);
    _exit(body());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

const std::string kIdA(64, 'a'), kIdB(64, 'b');

class NodeViewOnRxe : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0"))
      GTEST_SKIP() << "SKIPPED: there is no rxe0; run it by tests/rxe/run";
    baseline_ = rxe::ReadQueueAreas();
    tree_.Link("containers/pod-a_ns_app-" + kIdA + ".log", "/none");
    tree_.Link("containers/pod-b_ns_app-" + kIdB + ".log", "/none");
  }

  NodeView Make() {
    return NodeView(
        {.container_log_dir = tree_.path("containers"),
         .pod_resources_socket = tree_.path("kubelet.sock")},
        {.devices = []() -> absl::StatusOr<std::vector<Device>> {
           auto found = rdma::Discovery().Devices();
           if (!found.ok()) return found.status();
           std::vector<Device> devices;
           for (const rdma::SysfsDevice& device : *found)
             devices.push_back(DeviceOf(device, 4096));
           return devices;
         },
         .open_netlink =
             [] { return rdma::OpenRdmaNetlink(std::chrono::seconds(5)); },
         .is_ours =
             [](const std::string& resource) {
               return resource.starts_with("rdma/");
             },
         .unit_bytes = QueueMemoryUnitBytes,
         .advertised_node_charged_bytes = [] { return uint64_t{0}; }});
  }
  static const Holding* Find(const View& view, const std::string& pod,
                             const std::string& container) {
    for (const Holding& holding : view.holdings)
      if (holding.owner.pod == pod && holding.owner.container == container)
        return &holding;
    ADD_FAILURE() << "no holding of " << pod << " " << container;
    return nullptr;
  }
  static std::string Reason(const View& view, const std::string& source) {
    for (const SourceState& state : view.sources)
      if (state.name == source) return state.reason;
    return "no such source";
  }
  static void ExpectHolds(const Holding* holding, const Asked& asked,
                          pid_t pid) {
    ASSERT_NE(holding, nullptr);
    const queue_memory::Charge cost = Cost(asked);
    EXPECT_EQ(holding->bytes.node.exact, cost.node);
    EXPECT_EQ(holding->bytes.container.exact, cost.container);
    EXPECT_EQ(holding->bytes.node.estimated, 0u);
    EXPECT_EQ(holding->bytes.container.estimated, 0u);
    EXPECT_EQ(holding->queue_pair_count(), static_cast<uint64_t>(asked.count));
    EXPECT_EQ(holding->completion_queues, 1u);
    EXPECT_GE(cost.node, rxe::ReadUverbsMappings(pid));
    EXPECT_LT(cost.node - rxe::ReadUverbsMappings(pid), cost.node / 100)
        << "the arrays of pages alone";
  }

  fakes::FileTree tree_;
  rxe::QueueAreas baseline_;
};

// Each source with exactly what it needs: uid 0 without a capability, and with
// the one for mappings. First, before gRPC has threads that a fork loses.
TEST_F(NodeViewOnRxe, DoesWithWhatItIsGranted) {
  const Asked asked = {.count = 5};
  const Holder holder(asked);
  const auto read = [&] {
    NodeView node_view = Make();
    const View view = node_view.Read();
    const Holding* host = Find(view, "", "host");
    const bool seen = host != nullptr && host->queue_pair_count() == 5 &&
                      Reason(view, "netlink").empty() &&
                      Reason(view, "vmallocinfo").empty() &&
                      view.kernel_rings.at(Provider::kRxe).bytes ==
                          baseline_.bytes + Cost(asked).node;
    if (!seen) return 1;
    if (Reason(view, "mappings") == "not_permitted" &&
        host->bytes.node.exact == 0 && host->bytes.node.estimated > 0)
      return 2;
    return host->bytes.node.exact == Cost(asked).node ? 3 : 4;
  };
  EXPECT_EQ(WithCapabilities(0, read), 2);
  EXPECT_EQ(WithCapabilities(1u << CAP_SYS_PTRACE, read), 3);
}

// 200 queue pairs of five shapes, by two pods and an undeclared process.
TEST_F(NodeViewOnRxe, EqualsTheTruthToTheByte) {
  const Asked a = {.count = 100,
                   .cgroup =
                       "kubepods/burstable/pod1b4e28ba-2fa1-11d2-883f-"
                       "0016d3cca427/" +
                       kIdA};
  const Asked b = {.count = 60,
                   .first_shape = 1,
                   .by_ended_threads = true,
                   .forks = true,
                   .cgroup =
                       "kubepods.slice/kubepods-pod2b4e28ba_2fa1_11d2_"
                       "883f_0016d3cca427.slice/cri-containerd-" +
                       kIdB + ".scope"};
  const Asked undeclared = {.count = 40, .first_shape = 3};
  const Holder holder_a(a), holder_b(b), hog(undeclared);
  fakes::FakePodResources kubelet(tree_.path("kubelet.sock"));
  const auto mib = [](const Asked& asked) {
    return static_cast<int>((Cost(asked).total() + kMib - 1) / kMib);
  };
  kubelet.Give("ns", "pod-a", "app", "rdma/wqe-mib", mib(a));
  kubelet.Give("ns", "pod-b", "app", "rdma/wqe-mib", mib(b) - 3);

  NodeView node_view = Make();
  const View view = node_view.Read();
  std::cout << fmt::format("read in {} us\n", view.took.count());
  for (const SourceState& source : view.sources)
    std::cout << fmt::format("{} {} {}\n", source.name, source.reason,
                             source.detail);
  ExpectHolds(Find(view, "pod-a", "app"), a, holder_a.pid());
  ExpectHolds(Find(view, "pod-b", "app"), b, holder_b.pid());
  ExpectHolds(Find(view, "", "host"), undeclared, hog.pid());
  const Holding* of_a = Find(view, "pod-a", "app");
  ASSERT_NE(of_a, nullptr);
  EXPECT_THAT(of_a->queue_pairs, ElementsAre(Pair(Pair("RC", "RESET"), 80),
                                             Pair(Pair("UD", "RESET"), 20)));
  EXPECT_EQ(of_a->owner.namespace_name, "ns");

  const uint64_t held = Cost(a).node + Cost(b).node + Cost(undeclared).node;
  EXPECT_EQ(rxe::ReadQueueAreas().bytes, baseline_.bytes + held);
  const KernelRingTotal& rings = view.kernel_rings.at(Provider::kRxe);
  EXPECT_EQ(rings.bytes, baseline_.bytes + held);
  EXPECT_EQ(rings.unattributed(), baseline_.bytes);

  const uint64_t excess_b =
      Cost(b).total() - static_cast<uint64_t>(mib(b) - 3) * kMib;
  EXPECT_THAT(
      view.undeclared_bytes,
      Optional(ElementsAre(Pair("rxe0", excess_b + Cost(undeclared).total()))));
  for (const char* used : {"netlink", "processes", "mappings", "vmallocinfo",
                           "container_names", "pod_resources"})
    EXPECT_EQ(Reason(view, used), "") << used;
}

TEST_F(NodeViewOnRxe, NothingIsLeftWhenHoldersEnd) {
  { const Holder holder({.count = 5}); }
  NodeView node_view = Make();
  const View view = node_view.Read();
  for (const Holding& holding : view.holdings)
    EXPECT_EQ(holding.kind, OwnerKind::kKernel) << holding.owner.container;
  EXPECT_EQ(view.kernel_rings.at(Provider::kRxe).unattributed(),
            baseline_.bytes);
}

}  // namespace
}  // namespace purser::node_view
