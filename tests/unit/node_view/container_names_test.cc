// SPDX-License-Identifier: Apache-2.0
#include "node_view/container_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/fakes/file_tree.h"

namespace purser::node_view {
namespace {

using ::testing::SizeIs;

const std::string kIdA(64, 'a'), kIdB(64, 'b');

TEST(ParseLogNameTest, ReadsWhatTheKubeletWrites) {
  const auto named =
      ParseLogName("rdma-app-0_team-a_main-app-" + kIdA + ".log");
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->id, kIdA);
  EXPECT_EQ(named->name, (ContainerName{.namespace_name = "team-a",
                                        .pod = "rdma-app-0",
                                        .container = "main-app"}));
}

TEST(ParseLogNameTest, OthersAreNone) {
  for (const std::string& name :
       {std::string(), std::string(".log"), std::string("_"),
        std::string("__-.log"), "pod_ns_c-" + kIdA, "pod_ns-" + kIdA + ".log",
        "pod_ns_-" + kIdA + ".log", "_ns_c-" + kIdA + ".log",
        "pod__c-" + kIdA + ".log", std::string("pod_ns_c-123.log"),
        std::string("pod_ns_c-not.hexadecimal.log"), "a-" + kIdA + "_ns_c.log"})
    EXPECT_FALSE(ParseLogName(name).has_value()) << name;
}

TEST(ParseLogNameTest, SurvivesGarbage) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string name = "pod_ns_c-" + kIdA + ".log";
    for (int change = 0; change < 4; ++change)
      name[random() % name.size()] = "_-.la0"[random() % 6];
    (void)ParseLogName(name.substr(0, random() % (name.size() + 1)));
  }
}

TEST(ContainerNamesTest, AreReadFromTheDirectoryAlone) {
  fakes::FileTree tree;
  // As on a node where the logs themselves are not mounted.
  tree.Link("containers/a_ns_app-" + kIdA + ".log", "/var/log/pods/none/0.log");
  tree.Link("containers/b_ns_app-" + kIdB + ".log", "/var/log/pods/none/1.log");
  tree.Write("containers/README", "");
  const auto names = ReadContainerNames(tree.path("containers"));
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, SizeIs(2));
  ASSERT_NE(FindContainer(*names, kIdA), nullptr);
  EXPECT_EQ(FindContainer(*names, kIdA)->pod, "a");
  EXPECT_EQ(FindContainer(*names, std::string(64, 'c')), nullptr);
  EXPECT_EQ(FindContainer(*names, ""), nullptr);
  EXPECT_TRUE(absl::IsNotFound(ReadContainerNames(tree.path("none")).status()));
}

// A file's name has at most 255 bytes.
TEST(ContainerNamesTest, AnIdThatWasCutStillTells) {
  const ContainerNames names = {{kIdA.substr(0, 20), {"ns", "pod", "app"}}};
  ASSERT_NE(FindContainer(names, kIdA), nullptr);
  EXPECT_EQ(FindContainer(names, kIdB), nullptr);
}

}  // namespace
}  // namespace purser::node_view
