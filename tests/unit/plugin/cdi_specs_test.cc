// SPDX-License-Identifier: Apache-2.0
#include "plugin/cdi_specs.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <prometheus/metric_family.h>
#include <sys/stat.h>

#include "base/strict_yaml.h"
#include "tests/fakes/file_tree.h"

namespace purser::plugin {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

CdiSpec Hca(std::vector<CdiDevice> devices) {
  return {.resource = "rdma/hca",
          .devices = std::move(devices),
          .shared_nodes = {"/dev/infiniband/rdma_cm"}};
}
const CdiDevice kMlx = {"0000:3b:00.0",
                        {"/dev/infiniband/uverbs0", "/dev/infiniband/umad0"}};
const CdiDevice kRxe = {"rxe0", {"/dev/infiniband/uverbs1"}};

class CdiSpecsTest : public testing::Test {
 protected:
  std::vector<std::string> Files() {
    std::vector<std::string> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(directory_, none))
      files.push_back(entry.path().string());
    return files;
  }
  // As a runtime parses it.
  google::protobuf::Struct Read(const std::string& path) {
    google::protobuf::Struct json;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(
                    base::ReadFile(path).value(), &json)
                    .ok());
    return json;
  }

  fakes::FileTree tree_;
  const std::string directory_ = tree_.path("var/run/cdi");
  CdiSpecs specs_{directory_, "purser"};
};

TEST_F(CdiSpecsTest, WritesWhatARuntimeReads) {
  EXPECT_FALSE(specs_.InPlace("rdma/hca"));
  specs_.Refresh({Hca({kMlx, kRxe})});
  EXPECT_TRUE(specs_.InPlace("rdma/hca"));
  ASSERT_THAT(Files(), SizeIs(1));
  EXPECT_THAT(fs::path(Files()[0]).filename().string(),
              StartsWith("purser.dev-"));
  EXPECT_EQ(fs::path(Files()[0]).extension(), ".json");
  struct stat info {};
  ASSERT_EQ(stat(Files()[0].c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
  const google::protobuf::Struct json = Read(Files()[0]);
  const auto& fields = json.fields();
  EXPECT_EQ(fields.at("cdiVersion").string_value(), "0.5.0");
  EXPECT_EQ(fields.at("kind").string_value(), "purser.dev/rdma_hca");
  ASSERT_EQ(fields.at("devices").list_value().values_size(), 2);
  const auto& device =
      fields.at("devices").list_value().values(0).struct_value().fields();
  EXPECT_EQ(device.at("name").string_value(), "0000:3b:00.0");
  auto path = [](const google::protobuf::Value& edits, int node) {
    const auto& nodes = edits.struct_value().fields().at("deviceNodes");
    const auto& of = nodes.list_value().values(node).struct_value().fields();
    EXPECT_EQ(of.at("permissions").string_value(), "rw");
    return of.at("path").string_value();
  };
  EXPECT_EQ(path(device.at("containerEdits"), 1), "/dev/infiniband/umad0");
  EXPECT_EQ(path(fields.at("containerEdits"), 0), "/dev/infiniband/rdma_cm");
}

// S#320.
TEST_F(CdiSpecsTest, FollowsTheDevices) {
  specs_.Refresh({Hca({kMlx})});
  specs_.Refresh({Hca({kMlx, kRxe})});
  ASSERT_THAT(Files(), SizeIs(1));
  EXPECT_EQ(Read(Files()[0]).fields().at("devices").list_value().values_size(),
            2);
}

// Of a pool that is no more, or has no device: a container that was given names
// of it may be started again, and nobody is asked then.
TEST_F(CdiSpecsTest, StaysWhileItMayBeInUse) {
  absl::StatusOr<HeldUnits> held = HeldUnits{{"rdma/hca", {"7"}}};
  CdiSpecs specs(directory_, "purser", [&] { return held; });
  CdiSpec fast = Hca({kRxe});
  fast.resource = "rdma/fast";
  specs.Refresh({Hca({kMlx}), fast});
  ASSERT_THAT(Files(), SizeIs(2));
  specs.Refresh({Hca({})});
  EXPECT_FALSE(specs.InPlace("rdma/hca"));
  EXPECT_FALSE(specs.InPlace("rdma/fast"));
  ASSERT_THAT(Files(), SizeIs(1));
  EXPECT_THAT(Files()[0], HasSubstr("rdma_hca"));
  // Nobody can be asked: all that this process wrote.
  specs.Refresh({fast});
  held = absl::UnavailableError("restarting");
  specs.Refresh({});
  EXPECT_THAT(Files(), SizeIs(2));
  held = HeldUnits{{"rdma/hca", {}}, {"rdma/fast", {"1", "2"}}};
  specs.Refresh({});
  ASSERT_THAT(Files(), SizeIs(1));
  // Nor does the end of the plugin remove it.
  specs.Remove();
  EXPECT_THAT(Files(), SizeIs(1));
  // The next one does, when it is not in use any more.
  held = HeldUnits();
  CdiSpecs(directory_, "purser", [&] { return held; }).Refresh({});
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(CdiSpecsTest, WhereNobodyCanBeAskedItStaysAsLongAsTheProcess) {
  specs_.Refresh({Hca({kMlx})});
  specs_.Refresh({});
  EXPECT_FALSE(specs_.InPlace("rdma/hca"));
  EXPECT_THAT(Files(), SizeIs(1));
  specs_.Remove();
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(CdiSpecsTest, LeavesAFileAloneThatIsRight) {
  specs_.Refresh({Hca({kMlx})});
  const auto written = fs::last_write_time(Files()[0]);
  specs_.Refresh({Hca({kMlx})});
  EXPECT_EQ(fs::last_write_time(Files()[0]), written);
  fs::remove(Files()[0]);
  specs_.Refresh({Hca({kMlx})});
  EXPECT_THAT(Files(), SizeIs(1));
}

TEST_F(CdiSpecsTest, ReplacesAFileAsAWhole) {
  specs_.Refresh({Hca({kMlx})});
  const std::string kept = tree_.path("kept");
  fs::create_hard_link(Files()[0], kept);
  const std::string before = base::ReadFile(kept).value();
  specs_.Refresh({Hca({kRxe})});
  EXPECT_EQ(base::ReadFile(kept).value(), before);
}

TEST_F(CdiSpecsTest, RemovesItsOwnAtTheEndAndNoOthers) {
  tree_.Write("var/run/cdi/vendor.com-nic.json", "{}");
  specs_.Refresh({Hca({kMlx})});
  specs_.Remove();
  EXPECT_FALSE(specs_.InPlace("rdma/hca"));
  EXPECT_THAT(Files(), SizeIs(1));
}

// A rolling update with maxSurge: the old process ends after the new one wrote.
TEST_F(CdiSpecsTest, LeavesWhatTheNextProcessWrote) {
  specs_.Refresh({Hca({kMlx})});
  CdiSpecs next(directory_, "purser");
  next.Refresh({Hca({kMlx})});
  specs_.Remove();
  EXPECT_THAT(Files(), SizeIs(1));
  next.Remove();
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(CdiSpecsTest, InARollingUpdateNeitherTakesTheFileFromTheOther) {
  specs_.Refresh({Hca({kRxe})});
  CdiSpecs next(directory_, "purser");
  next.Refresh({Hca({kRxe})});
  const auto file = IdentifyFile(Files()[0]).value();
  specs_.Refresh({Hca({kRxe})});
  EXPECT_EQ(IdentifyFile(Files()[0]).value(), file);
  EXPECT_TRUE(specs_.InPlace("rdma/hca"));
  specs_.Remove();
  ASSERT_THAT(Files(), SizeIs(1)) << "the next process's";
  next.Refresh({Hca({kRxe})});
  EXPECT_EQ(IdentifyFile(Files()[0]).value(), file);
  next.Remove();
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(CdiSpecsTest, RemovesWhatAKilledProcessLeftOfThisInstallation) {
  CdiSpecs killed(directory_, "purser"), other(directory_, "another");
  CdiSpec gone = Hca({kMlx});
  gone.resource = "rdma/gone";
  killed.Refresh({gone});
  CdiSpec others = Hca({kMlx});
  others.resource = "rdma/other";
  other.Refresh({others});
  ASSERT_THAT(Files(), SizeIs(2));
  specs_.Refresh({Hca({kMlx})});
  EXPECT_THAT(Files(), SizeIs(2));
  other.Remove();
  EXPECT_THAT(Files(), SizeIs(1));
}

TEST_F(CdiSpecsTest, WhatCannotBeWrittenIsNotInPlace) {
  tree_.Write("var/run/cdi", "a file");
  specs_.Refresh({Hca({kMlx})});
  EXPECT_FALSE(specs_.InPlace("rdma/hca"));
  EXPECT_EQ(specs_.Collect()[0].metric[0].gauge.value, 0);
  tree_.Remove("var/run/cdi");
  specs_.Refresh({Hca({kMlx})});
  EXPECT_TRUE(specs_.InPlace("rdma/hca"));
  EXPECT_EQ(specs_.Collect()[0].metric[0].gauge.value, 1);
  EXPECT_EQ(specs_.Collect()[0].metric[0].label[0].value, "rdma/hca");
}

TEST(CdiNames, AreOfOneResourceEach) {
  const std::vector<std::string> resources = {"rdma/a_b",
                                              "rdma.a/b",
                                              "rdma/a.b",
                                              "r.dma/a_b",
                                              "rdma/a-b",
                                              "3com/hca",
                                              "r3com/hca",
                                              "rdma/" + std::string(63, 'a'),
                                              std::string(240, 'p') + "/a",
                                              std::string(240, 'p') + "/b"};
  std::set<std::string> kinds;
  for (const std::string& resource : resources) kinds.insert(CdiKind(resource));
  EXPECT_THAT(kinds, SizeIs(resources.size()));
}

TEST_F(CdiSpecsTest, ResourcesOfAlikeNamesHaveAFileEach) {
  std::vector<CdiSpec> alike;
  for (const std::string& resource :
       {std::string("rdma/a_b"), std::string("rdma.a/b"),
        std::string(240, 'p') + "/" + std::string(63, 'a')}) {
    alike.push_back(Hca({kMlx}));
    alike.back().resource = resource;
  }
  specs_.Refresh(alike);
  EXPECT_THAT(Files(), SizeIs(3));
  for (const CdiSpec& spec : alike)
    EXPECT_TRUE(specs_.InPlace(spec.resource)) << spec.resource;
}

TEST(CdiNames, AreWhatRuntimesTake) {
  EXPECT_EQ(CdiKind("rdma/hca-fast_2"), "purser.dev/rdma_hca-fast_2");
  EXPECT_THAT(CdiKind("rdma/hca-fast.2"),
              StartsWith("purser.dev/rdma_hca-fast_2-"));
  EXPECT_THAT(CdiKind("3com.example/a"),
              StartsWith("purser.dev/r3com_example_a-"));
  for (const char* good : {"mlx5_0", "0000:3b:00.2", "mlx5_core.sf.4", "a"})
    EXPECT_TRUE(IsCdiName(good)) << good;
  for (const char* bad : {"", "-a", "a-", "a b", "a/b", "ä"})
    EXPECT_FALSE(IsCdiName(bad)) << bad;
}

}  // namespace
}  // namespace purser::plugin
