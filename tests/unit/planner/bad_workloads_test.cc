// SPDX-License-Identifier: Apache-2.0
//
// Workloads that are malformed, contradict themselves or are enormous: each is
// refused with its place.
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "planner/report.h"
#include "spdlog/fmt/fmt.h"
#include "tests/unit/planner/workloads.h"

namespace purser::planner {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string Faults(std::string_view text) {
  const auto workload = ReadWorkload("w.yaml", text);
  return workload.ok() ? "" : std::string(workload.status().message());
}

constexpr char kHead[] = "version: v1\ngroups: [{name: a}]\n";

struct Case {
  std::string text, fault;  // all of it, or with "..." at its end its beginning
};

void ExpectFaults(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const std::string faults = Faults(c.text);
    if (c.fault.ends_with("..."))
      EXPECT_THAT(faults, StartsWith(c.fault.substr(0, c.fault.size() - 3)))
          << c.text;
    else
      EXPECT_EQ(faults, c.fault) << c.text;
  }
}

TEST(BadWorkloadsTest, Malformed) {
  ExpectFaults({
      {"",
       "w.yaml:1:1: version: must be v1, the format of this file\n"
       "w.yaml:1:1: groups: is required: at least one group of queue pairs"},
      {"[]", "w.yaml:1:1: the document must be a map..."},
      {"version: v1\ngroups: [\n", "w.yaml:3:1: did not find expected..."},
      {"\x01", "w.yaml:1:1: byte 0x01 is not allowed: remove it"},
      {"\xff\xfev\0",
       "w.yaml:1:1: byte 0xff is not UTF-8: save the file as UTF-8"},
      {"\xef\xbb\xbf[]", "w.yaml:1:1: the document must be a map..."},
      {"version: v2\ngroups: [{name: a}]\n",
       "w.yaml:1:10: version: must be v1, the format of this file"},
      {"groups: [{name: a}]\n",
       "w.yaml:1:1: version: must be v1, the format of this file"},
      {"version: v1\ngroups: {name: a}\n",
       "w.yaml:2:9: groups: must be a list of maps, not a map..."},
      {"version: v1\ngroups: []\n",
       "w.yaml:2:9: groups: is required: at least one group of queue pairs"},
      {
          "version: v1\ngroups: [5]\n",
          "w.yaml:2:9: groups: is required...",
      },
      {Groups("- {}\n"), "w.yaml:3:3: groups[0].name: is required"},
      {Groups("- {name: [a]}\n"),
       "w.yaml:3:10: groups[0].name: must be a string, not a list"},
      {Groups("- {name: a, maxSndWr: 5}\n"),
       "w.yaml:3:13: groups[0].maxSndWr: unknown key (did you mean "
       "\"maxSendWr\"?)"},
      {Groups("- {name: a, max_send_wr: 5}\n"),
       "w.yaml:3:13: groups[0].max_send_wr: unknown key (did you mean "
       "\"maxSendWr\"?)"},
      {Groups("- {name: a, maxSendWr: many}\n"),
       "w.yaml:3:24: groups[0].maxSendWr: must be a whole number from 0 to "
       "16777216, not \"many\""},
      {Groups("- {name: a, maxSendWr: -1}\n"), "w.yaml:3:24: ..."},
      {Groups("- {name: a, maxSendWr: 1.5}\n"), "w.yaml:3:24: ..."},
      {Groups("- {name: a, maxSendWr: '5'}\n"), "w.yaml:3:24: ..."},
      {Groups("- {name: a, count: 0}\n"),
       "w.yaml:3:20: groups[0].count: must be a whole number from 1 to "
       "16777216, not \"0\""},
      {Groups("- {name: a, type: rd}\n"),
       "w.yaml:3:19: groups[0].type: there is no queue pair type \"rd\" (did "
       "you mean \"rc\"?); there are rc, uc, ud, xrc_send, raw_packet, dci, "
       "srd"},
      {Groups("- {name: a, sendOps: [sent]}\n"),
       "w.yaml:3:22: groups[0].sendOps: there is no send operation \"sent\" "
       "(did you mean \"send\"?)..."},
      {Groups("- {name: a, sendOps: send}\n"),
       "w.yaml:3:22: groups[0].sendOps: must be a list of strings..."},
      {Groups("- {name: -a}\n"),
       "w.yaml:3:10: groups[0].name: \"-a\" is no "
       "name: write up to 63 letters, digits, '-', "
       "'_' and '.', the first a letter or a digit"},
      {Groups("- {name: \"a<b\"}\n"), "w.yaml:3:10: groups[0].name: ..."},
      {Groups("- {name: " + std::string(64, 'a') + "}\n"),
       "w.yaml:3:10: groups[0].name: ..."},
      {Groups("- {name: a, class: 'b c'}\n"),
       "w.yaml:3:20: groups[0].class: \"b c\" is no name..."},
      {std::string(kHead) + "provider: mlx\n",
       "w.yaml:3:11: provider: there is no provider \"mlx\" (did you mean "
       "\"mlx5\"?); there are mlx5..."},
      {std::string(kHead) + "provider: mlx5\nlimits: {maxQpWrs: 1}\n",
       "w.yaml:4:10: limits.maxQpWrs: unknown key (did you mean "
       "\"maxQpWr\"?)"},
      {std::string(kHead) + "provider: mlx5\nlimits: {maxQpWr: 0}\n",
       "w.yaml:4:19: limits.maxQpWr: must be a whole number from 1 to..."},
      {std::string(kHead) + "provider: mlx5\nlimits: {maxQpWr: 2147483648}\n",
       "w.yaml:4:19: limits.maxQpWr: must be a whole number from 1 to "
       "2147483647, not \"2147483648\""},
      {std::string(kHead) + "provider: mlx5\nlimits: {pageSize: 5000}\n",
       "w.yaml:4:20: limits.pageSize: must be a power of two from 4096 to "
       "1073741824, not 5000"},
      {std::string(kHead) + "provider: rxe\nlimits: {maxSendWqebb: 5}\n",
       "w.yaml:4:24: limits.maxSendWqebb: is a limit of mlx5; rxe has none of "
       "that kind"},
      {std::string(kHead) + "provider: mlx6\nlimits: {maxSendWqebb: 5}\n",
       "w.yaml:3:11: provider: there is no provider..."},
      {std::string(kHead) + "podsPerNode: 1001\n",
       "w.yaml:3:14: podsPerNode: must be a whole number from 1 to 1000..."},
      {std::string(kHead) + "name: 'a/b'\n", "w.yaml:3:7: name: \"a/b\" is..."},
  });
}

TEST(BadWorkloadsTest, Contradictory) {
  const std::string shared =
      "version: v1\n"
      "sharedReceiveQueues: [{name: pool, maxWr: 100}]\n"
      "completionQueues: [{name: all}]\n"
      "groups:\n";
  const std::string use =
      "- {name: a, sharedReceiveQueue: pool, "
      "completionQueue: all}\n";
  EXPECT_EQ(Faults(shared + use), "");
  ExpectFaults({
      {shared + use + "- {name: a}\n",
       "w.yaml:6:10: groups[1].name: there is a group \"a\" already, on line "
       "5"},
      {shared + use + "- {name: b, sharedReceiveQueue: pool, maxRecvWr: 5}\n",
       "w.yaml:6:50: groups[1].maxRecvWr: contradicts `sharedReceiveQueue`, "
       "which has the receives: remove one"},
      {shared + use + "- {name: b, maxRecvSge: 5, sharedReceiveQueue: pool}\n",
       "w.yaml:6:25: groups[1].maxRecvSge: contradicts..."},
      {shared + use + "- {name: b, type: dci, sharedReceiveQueue: pool}\n",
       "w.yaml:6:44: groups[1].sharedReceiveQueue: dci queue pairs have no "
       "receives: remove it"},
      {shared + use + "- {name: b, sharedReceiveQueue: pol}\n",
       "w.yaml:6:33: groups[1].sharedReceiveQueue: there is no shared receive "
       "queue \"pol\" (did you mean \"pool\"?)"},
      {shared + use + "- {name: b, completionQueue: pool}\n",
       "w.yaml:6:30: groups[1].completionQueue: there is no completion queue "
       "\"pool\""},
      {shared + "- {name: a}\n",
       "w.yaml:2:30: sharedReceiveQueues[0].name: no group uses it: remove it, "
       "or name it in a group\n"
       "w.yaml:3:27: completionQueues[0].name: no group uses it: remove it, or "
       "name it in a group"},
      {Groups("- {name: a, type: dci, maxRecvWr: 5}\n"),
       "w.yaml:3:35: groups[0].maxRecvWr: dci queue pairs have no receives: "
       "remove it"},
      {Groups("- {name: a, maxSendWr: 0, maxRecvWr: 0}\n"),
       "w.yaml:3:24: groups[0].maxSendWr: is 0 and so is maxRecvWr: such a "
       "queue pair does nothing"},
      {Groups("- {name: a, type: ud, sendOps: [send, write]}\n"),
       "w.yaml:3:32: groups[0].sendOps: ud queue pairs cannot do write"},
      {Groups("- {name: a, type: uc, sendOps: [atomic]}\n"),
       "w.yaml:3:32: groups[0].sendOps: uc queue pairs cannot do atomic"},
      {"version: v1\nprovider: rxe\nkernelVersion: six\ngroups: [{name: "
       "a}]\n",
       "w.yaml:3:16: kernelVersion: \"six\" is no version of a kernel..."},
      {"version: v1\nkernelVersion: '6.1'\ngroups: [{name: a}]\n",
       "w.yaml:2:16: kernelVersion: is that of a provider's device..."},
      {"version: v1\nlimits: {maxQpWr: 5}\ngroups: [{name: a}]\n",
       "w.yaml:2:9: limits: are those of a provider: add `provider`"},
      {"version: v1\ncompletionQueues: [{name: q}, {name: q}]\ngroups: "
       "[{name: a, completionQueue: q}]\n",
       "w.yaml:2:38: completionQueues[1].name: there is a completion queue "
       "\"q\" already, on line 2"},
      {"version: v1\nsharedReceiveQueues: [{name: q}]\ngroups: [{name: a, "
       "sharedReceiveQueue: q}]\n",
       "w.yaml:2:23: sharedReceiveQueues[0].maxWr: is required"},
  });
}

// Nothing wraps: each figure has a bound of its own.
TEST(BadWorkloadsTest, EnormousFigures) {
  for (const char* key : {"count", "maxSendWr", "maxSendSge", "maxInlineData",
                          "maxRecvWr", "maxRecvSge"})
    for (const char* value :
         {"16777217", "4294967295", "4294967296", "18446744073709551615",
          "18446744073709551616", "99999999999999999999999999"}) {
      const std::string text =
          Groups(fmt::format("- {{name: a, {}: {}}}\n", key, value));
      EXPECT_THAT(Faults(text), testing::MatchesRegex(fmt::format(
                                    "w\\.yaml:3:[0-9]+: groups\\[0\\]\\.{}: "
                                    "must be a whole number.*",
                                    key)))
          << text;
    }
  for (const char* text :
       {"completionQueues: [{name: q, cqe: 4294967295}]\n",
        "completionQueues: [{name: q, count: 4294967295}]\n",
        "sharedReceiveQueues: [{name: q, maxWr: 4294967295}]\n",
        "sharedReceiveQueues: [{name: q, maxWr: 1, maxSge: 4294967295}]\n",
        "podsPerNode: 4294967295\n"})
    EXPECT_THAT(Faults(std::string(kHead) + text),
                HasSubstr("must be a whole number from"))
        << text;
}

TEST(BadWorkloadsTest, TooManyQueuePairs) {
  EXPECT_EQ(Faults(Groups("- {name: a, count: 16777215}\n"
                          "- {name: b, count: 1}\n"
                          "- {name: c, count: 1}\n"
                          "- {name: d, count: 16777216}\n")),
            "w.yaml:5:20: groups[2].count: with those before it makes 16777217 "
            "queue pairs; a device has at most 16777216, since a number has 24 "
            "bits");
}

TEST(BadWorkloadsTest, SumsDoNotWrap) {
  // mana's rule knows no limit: 16 MiB deep, entries of 1 MiB.
  const Workload workload = Read(
      Groups("- {name: a, maxSendWr: 16777216, maxSendSge: 65536}\n"
             "- {name: b, count: 1000000, maxSendWr: 16777216, maxSendSge: "
             "65536}\n"));
  const auto plan = MakePlan(workload, On("mana"));
  EXPECT_EQ(plan.status(),
            absl::InvalidArgumentError(
                "w.yaml:4:3: groups[1]: together with what is before it this "
                "takes more than 2^63-1 bytes: lower the count or the depths"));
  // Above 2^63 and below 2^64.
  EXPECT_FALSE(
      MakePlan(Read(Groups("- {name: a, count: 300000, maxSendWr: 16777216, "
                           "maxSendSge: 65536}\n")),
               On("mana"))
          .ok());
  Workload few =
      Read(Groups("- {name: a, count: 20000, maxSendWr: 16777216, maxSendSge: "
                  "65536}\n"));
  EXPECT_TRUE(MakePlan(few, On("mana")).ok());
  few.pods_per_node = 1000;
  EXPECT_THAT(std::string(MakePlan(few, On("mana")).status().message()),
              HasSubstr("1000 pods: together"));
}

TEST(BadWorkloadsTest, TooLong) {
  EXPECT_EQ(Faults(std::string(kLongestWorkload + 1, '#')),
            "w.yaml:1:1: 67108865 bytes long; at most 67108864 are read");
}

TEST(BadWorkloadsTest, ManyFaultsAtOnce) {
  std::string text = "version: v1\ngroups:\n";
  for (int i = 0; i < 5000; ++i)
    text += "- {name: a, completionQueue: x, maxSendWr: no, bad: 1}\n";
  const std::string faults = Faults(text);
  EXPECT_EQ(std::count(faults.begin(), faults.end(), '\n'), 100);
  EXPECT_THAT(faults, testing::EndsWith("more faults"));
}

// Whatever is read must be planned, drawn and told without a crash, a hang or a
// figure that wrapped.
void Use(const std::string& text) {
  auto read = ReadWorkload("w.yaml", text);
  if (!read.ok()) {
    EXPECT_THAT(std::string(read.status().message()), StartsWith("w.yaml:"));
    return;
  }
  const auto workload = std::make_shared<const Workload>(*std::move(read));
  for (const char* profile : {"mlx5", "rxe", "efa", "mana"}) {
    const Report report = MakeReport(workload, On(profile), std::nullopt);
    RenderRefusals(report);
    if (!report.status.ok()) continue;
    EXPECT_LE(report.plan.pod.queues.total(), uint64_t{INT64_MAX});
    EXPECT_GE(report.plan.node.queues.total(), report.plan.pod.queues.total());
    RenderTable(report);
    RenderJson({&report, 1});
  }
}

TEST(BadWorkloadsTest, MutatedWorkloadsNeitherCrashNorHang) {
  const std::string seed =
      "version: v1\nprovider: mlx5\nlimits: {maxQpWr: 4096}\npodsPerNode: 9\n"
      "completionQueues:\n- {name: q, count: 2, cqe: 100}\n"
      "sharedReceiveQueues:\n- {name: s, maxWr: 16, maxSge: 2}\n"
      "groups:\n- name: a\n  count: 77\n  type: rc\n  maxSendWr: 128\n"
      "  maxSendSge: 2\n  sendOps: [send, write]\n  completionQueue: q\n"
      "  sharedReceiveQueue: s\n- {name: b, class: c, maxRecvWr: 999}\n";
  constexpr std::string_view kSpecial = "\n -:,[]{}0123456789abqs#&*'\"";
  std::mt19937 random(7);
  const auto below = [&](size_t limit) { return random() % limit; };
  int good = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = seed;
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t place = below(text.size());
      switch (below(4)) {
        case 0:
          text.erase(place, 1 + below(6));
          break;
        case 1:
          text.insert(place, 1, kSpecial[below(kSpecial.size())]);
          break;
        case 2:
          text.insert(place, seed.substr(below(seed.size()), below(20)));
          break;
        default:  // a figure of another magnitude
          const size_t digit = text.find_first_of("0123456789", place);
          if (digit != std::string::npos)
            text.replace(digit, 1, std::to_string(random() >> below(32)));
      }
    }
    good += ReadWorkload("w.yaml", text).ok() ? 1 : 0;
    Use(text);
  }
  EXPECT_GT(good, 100);  // not only syntax is tried
}

}  // namespace
}  // namespace purser::planner
