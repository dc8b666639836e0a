// SPDX-License-Identifier: Apache-2.0
#include "cli/top_table.h"
#include "tests/unit/cli/cli_fixture.h"

namespace purser::cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

void SetTraffic(v1::Traffic& traffic, uint64_t posts, uint64_t failures) {
  traffic.set_posts(posts);
  traffic.set_post_failures(failures);
  traffic.set_completions(posts);
  traffic.set_completion_errors(failures / 2);
}

// Two clients, two classes; `posts` of the first client.
Look ALook(double seconds, uint64_t posts) {
  Look look;
  look.seconds = seconds;
  v1::GetBudgetResponse& budget = *look.status.mutable_budget();
  auto& bound = *budget.add_bounds();
  bound.set_source(v1::BUDGET_SOURCE_PLUGIN);
  bound.set_limit_bytes(64 << 20);
  bound.set_used_bytes(16 << 20);
  bound.set_binding(true);
  budget.mutable_used()->set_node_bytes(16 << 20);
  budget.set_headroom_bytes(48 << 20);
  budget.set_queue_pairs(3);
  budget.set_queue_pair_limit(128);
  budget.set_refusals(1);
  auto& core = *budget.add_classes();
  core.set_name("core");
  core.set_core(true);
  core.set_floor_bytes(8 << 20);
  core.set_max_bytes(32 << 20);
  auto& pressure = *budget.add_memory_pressure();
  pressure.set_scope(v1::PRESSURE_SCOPE_NODE);
  pressure.set_state(v1::PRESSURE_STATE_TIGHT);
  pressure.set_why("9 % available, below 10 %");

  v1::ClientStatus& small = *look.status.add_clients();
  small.set_name("control");
  small.set_queue_pairs(1);
  small.mutable_memory()->set_node_bytes(4 << 20);
  small.set_attached_seconds(61);
  SetTraffic(*small.mutable_traffic(), posts, 0);
  v1::ClientStatus& large = *look.status.add_clients();
  large.set_name("gateway");
  large.set_queue_pairs(2);
  large.mutable_memory()->set_node_bytes(12 << 20);
  large.set_attached_seconds(90061);
  large.set_completion_backlog(7);
  large.set_outstanding_sends(12);
  large.set_memory_regions(2);
  large.set_registered_bytes(1 << 20);
  SetTraffic(*large.mutable_traffic(), 5, 4);

  v1::ClassStatus& of = *look.status.add_classes();
  of.set_name("core");
  of.set_queue_pairs(3);
  of.mutable_memory()->set_node_bytes(16 << 20);
  SetTraffic(*of.mutable_traffic(), posts + 5, 4);
  return look;
}

TEST(TopTable, ShowsWhoHoldsAndDoesWhat) {
  const Look before = ALook(10, 1000), now = ALook(12, 5000);
  EXPECT_EQ(
      RenderTop(now, &before, TopOrder::kMemory),
      R"(budget  16 MiB of 64 MiB used (25.0 %), bound: plugin; 48 MiB left, 3 queue pairs of 128, 1 refusal
memory  node tight: 9 % available, below 10 %

CLIENT   QPS  MEMORY     %  POST/S  POSTS  FAILED  WC ERRORS  BACKLOG  SENDS  RECVS  MRS  REGISTERED            UP
gateway    2  12 MiB  75.0       0      5       4          2        7     12      0    2       1 MiB  1 d 01:01:01
control    1   4 MiB  25.0   2,000  5,000       0          0        0      0      0    0         0 B      00:01:01

CLASS        QPS  MEMORY  FLOOR    MOST  POST/S  POSTS  FAILED  BACKLOG
core (core)    3  16 MiB  8 MiB  32 MiB   2,000  5,005       4        0
)");
}

TEST(TopTable, TheFirstLookHasNoRates) {
  const std::string text = RenderTop(ALook(10, 1000), nullptr, TopOrder::kName);
  EXPECT_THAT(text,
              AllOf(HasSubstr("control    1   4 MiB  25.0       -  1,000"),
                    Not(HasSubstr("nan"))));
}

// A client of that name which attached since has posted less.
TEST(TopTable, ACounterThatBeganAnewHasNoRate) {
  const Look before = ALook(10, 1000), now = ALook(12, 10);
  EXPECT_THAT(RenderTop(now, &before, TopOrder::kName),
              HasSubstr("control    1   4 MiB  25.0       -     10"));
}

TEST(TopTable, IsSorted) {
  const Look before = ALook(10, 0), now = ALook(12, 5000);
  const auto first = [&](TopOrder order) {
    const std::string text = RenderTop(now, &before, order);
    const size_t line = text.find('\n', text.find("CLIENT")) + 1;
    return text.substr(line, 7);
  };
  EXPECT_EQ(first(TopOrder::kMemory), "gateway");
  EXPECT_EQ(first(TopOrder::kPosts), "control");
  EXPECT_EQ(first(TopOrder::kFailures), "gateway");
  EXPECT_EQ(first(TopOrder::kBacklog), "gateway");
  EXPECT_EQ(first(TopOrder::kQueuePairs), "gateway");
  EXPECT_EQ(first(TopOrder::kName), "control");
}

TEST(TopTable, SharedQueuesAndQueuePairs) {
  Look look = ALook(1, 1);
  v1::CompletionQueue& cq = *look.status.add_completion_queues();
  cq.set_id(4);
  cq.set_device("rxe0");
  cq.set_client_name("gateway");
  cq.set_cqe(1023);
  cq.set_slots(800);
  cq.set_queue_pairs(2);
  cq.mutable_memory()->set_total_bytes(64 << 10);
  v1::SharedReceiveQueue& srq = *look.status.add_shared_receive_queues();
  srq.set_id(5);
  srq.set_device("rxe0");
  srq.set_client_name("gateway");
  srq.set_max_wr(128);
  v1::QueuePair queue_pair;
  queue_pair.set_id(9);
  queue_pair.set_qp_num(17);
  queue_pair.set_device("rxe0");
  queue_pair.set_client_name("gateway");
  queue_pair.set_completion_backlog(3);
  look.queue_pairs.push_back(queue_pair);
  look.status.set_undestroyed_objects(2);
  EXPECT_THAT(RenderTop(look, nullptr, TopOrder::kMemory),
              AllOf(HasSubstr("SHARED CQ  DEVICE  CLIENT     CQE  SLOTS"),
                    HasSubstr("        4  rxe0    gateway  1,023    800"),
                    HasSubstr("SRQ  DEVICE  CLIENT   MAX_WR"),
                    HasSubstr("ID  QP_NUM  DEVICE"),
                    HasSubstr("2 objects that the device refused to destroy")));
}

TEST(TopTable, WithoutClients) {
  EXPECT_THAT(RenderTop(Look(), nullptr, TopOrder::kMemory),
              EndsWith("\nno client is attached\n"));
}

// Text that came from a client does not reach the terminal as it is.
TEST(TopTable, ControlCharactersAreEscaped) {
  Look look = ALook(1, 1);
  look.status.mutable_clients(0)->set_name("\033[2Jevil");
  EXPECT_THAT(RenderTop(look, nullptr, TopOrder::kName),
              AllOf(HasSubstr("\\u001b[2Jevil"), Not(HasSubstr("\033"))));
}

class TopTest : public CliTest {};

TEST_F(TopTest, OnceWhereNobodyWatches) {
  Purser top;
  EXPECT_EQ(top(Here({"top"})), kOk);
  EXPECT_THAT(top.out.text(),
              AllOf(StartsWith("budget  "), Not(HasSubstr("\033")),
                    Not(HasSubstr("purser-top"))));
  Purser json;
  EXPECT_EQ(json(Here({"top", "-n", "2", "--interval", "0.1", "-o", "json"})),
            kOk);
  EXPECT_THAT(json.out.text(), HasSubstr("\"completionQueues\""));
}

TEST_F(TopTest, OnATerminalUntilASignal) {
  Purser top;
  top.terminal = true;
  std::thread signal([&] {
    EXPECT_TRUE(top.out.WaitFor("budget  "));
    top.signalled = true;
  });
  EXPECT_EQ(top(Here({"top", "--queue-pairs"})), kOk);
  signal.join();
  EXPECT_THAT(top.out.text(), AllOf(StartsWith("\033[?1049h\033[?25l\033[H"),
                                    HasSubstr("Ctrl-C ends it\033[K\n"),
                                    EndsWith("\033[?25h\033[?1049l")));
}

TEST_F(TopTest, WithoutASidecar) {
  Purser top;
  EXPECT_EQ(top({"--socket", "/nowhere/sidecar.sock", "top"}), kNoSidecar);
  EXPECT_THAT(top.err.text(), HasSubstr("no sidecar answers"));
}

TEST_F(TopTest, WrongUsage) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"top", "--sort", "size"},
        {"top", "--interval", "0"},
        {"top", "-n", "0"},
        {"top", "-o", "yaml"}}) {
    Purser top;
    EXPECT_EQ(top(wrong), kUsage) << wrong.back();
  }
}

}  // namespace
}  // namespace purser::cli
