// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup.h"

#include <sys/stat.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/file_tree.h"
#include "tests/unit/base/as_nobody.h"

namespace purser::base {
namespace {

using testing::HasSubstr;

constexpr char kNoLimitV1[] = "9223372036854771712\n";

class CgroupTest : public testing::Test {
 protected:
  void SelfCgroup(std::string_view text) {
    tree_.Write("proc/self/cgroup", text);
  }
  void V2(const std::string& directory, std::string_view current,
          std::string_view max) {
    tree_.Write("cgroup/" + directory + "/memory.current", current);
    tree_.Write("cgroup/" + directory + "/memory.max", max);
  }
  void V1(const std::string& directory, std::string_view usage,
          std::string_view limit) {
    tree_.Write("cgroup/" + directory + "/memory.usage_in_bytes", usage);
    tree_.Write("cgroup/" + directory + "/memory.limit_in_bytes", limit);
  }
  absl::StatusOr<CgroupMemory> Memory() {
    return CgroupReader(tree_.path("cgroup"), tree_.path("proc")).Memory();
  }
  void ExpectMemory(int version, const std::string& path, uint64_t current,
                    std::optional<uint64_t> max, const std::string& origin) {
    const absl::StatusOr<CgroupMemory> memory = Memory();
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(memory->version, version);
    EXPECT_EQ(memory->path, tree_.path("cgroup" + path));
    EXPECT_EQ(memory->current_bytes, current);
    EXPECT_EQ(memory->max_bytes, max);
    EXPECT_EQ(memory->max_origin,
              origin.empty() ? "" : tree_.path("cgroup" + origin));
  }
  void ExpectError(absl::StatusCode code, const std::string& message) {
    const absl::Status status = Memory().status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("give the budget explicitly"));
  }

  fakes::FileTree tree_;
};

TEST_F(CgroupTest, V2PrivateNamespaceIsTheMount) {
  SelfCgroup("0::/\n");
  tree_.Write("cgroup/cgroup.controllers", "cpu memory\n");
  V2("", "1048576\n", "104857600\n");
  ExpectMemory(2, "", 1048576, 104857600, "/memory.max");
}

TEST_F(CgroupTest, V2Unlimited) {
  SelfCgroup("0::/\n");
  V2("", "1048576\n", "max\n");
  ExpectMemory(2, "", 1048576, std::nullopt, "");
}

TEST_F(CgroupTest, V2ZeroIsALimit) {
  SelfCgroup("0::/\n");
  V2("", "0\n", "0\n");
  ExpectMemory(2, "", 0, 0, "/memory.max");
}

TEST_F(CgroupTest, V2SmallestLimitOfTheAncestors) {
  SelfCgroup("0::/kubepods/pod1/c1\n");
  V2("kubepods", "30\n", "3000\n");
  V2("kubepods/pod1", "20\n", "1000\n");
  V2("kubepods/pod1/c1", "10\n", "2000\n");
  ExpectMemory(2, "/kubepods/pod1/c1", 10, 1000, "/kubepods/pod1/memory.max");
}

TEST_F(CgroupTest, V2OwnLimitWhereTheAncestorsHaveNone) {
  SelfCgroup("0::/kubepods/pod1\n");
  V2("kubepods", "30\n", "max\n");
  V2("kubepods/pod1", "10\n", "2000\n");
  ExpectMemory(2, "/kubepods/pod1", 10, 2000, "/kubepods/pod1/memory.max");
}

TEST_F(CgroupTest, V2EqualLimitsNameTheNearest) {
  SelfCgroup("0::/pod1/c1\n");
  V2("pod1", "20\n", "1000\n");
  V2("pod1/c1", "10\n", "1000\n");
  ExpectMemory(2, "/pod1/c1", 10, 1000, "/pod1/c1/memory.max");
}

TEST_F(CgroupTest, V2MemoryOfACgroupWithoutControllerIsChargedToItsParent) {
  SelfCgroup("0::/pod1/c1/inner\n");
  tree_.Directory("cgroup/pod1/c1/inner");
  V2("pod1/c1", "10\n", "max\n");
  V2("pod1", "20\n", "500\n");
  ExpectMemory(2, "/pod1/c1", 10, 500, "/pod1/memory.max");
}

TEST_F(CgroupTest, V2HostNamespaceWithAPathThatTheMountDoesNotShow) {
  SelfCgroup("0::/kubepods.slice/kubepods-pod1.slice/cri-1.scope\n");
  V2("", "10\n", "2000\n");
  ExpectMemory(2, "", 10, 2000, "/memory.max");
}

TEST_F(CgroupTest, V2PathThatShowsOnlyInPartIsNotOurs) {
  SelfCgroup("0::/kubepods/pod1\n");
  V2("", "10\n", "2000\n");
  V2("kubepods", "30\n", "3\n");
  ExpectMemory(2, "", 10, 2000, "/memory.max");
}

TEST_F(CgroupTest, V2PathThatIsAFileIsNotOurs) {
  SelfCgroup("0::/memory.max\n");
  V2("", "10\n", "2000\n");
  ExpectMemory(2, "", 10, 2000, "/memory.max");
}

TEST_F(CgroupTest, V2NeverLeavesTheMount) {
  SelfCgroup("0::/../other\n");
  V2("", "10\n", "2000\n");
  tree_.Write("other/memory.current", "1\n");
  tree_.Write("other/memory.max", "1\n");
  ExpectMemory(2, "", 10, 2000, "/memory.max");
}

TEST_F(CgroupTest, V2RootHasNoLimitAndNoAccount) {
  SelfCgroup("0::/\n");
  tree_.Write("cgroup/cgroup.controllers", "cpuset cpu io memory pids rdma\n");
  ExpectMemory(2, "", 0, std::nullopt, "");
}

TEST_F(CgroupTest, V2RootThatIsNotOursIsNotTakenForUnlimited) {
  SelfCgroup("0::/../../pod1\n");
  tree_.Write("cgroup/cgroup.controllers", "cpuset cpu io memory pids rdma\n");
  ExpectError(absl::StatusCode::kNotFound,
              "no memory.current for cgroup /../../pod1 of this process in " +
                  tree_.path("cgroup"));
}

TEST_F(CgroupTest, V2WithoutMemoryController) {
  SelfCgroup("0::/\n");
  tree_.Write("cgroup/cgroup.controllers", "cpu pids\n");
  ExpectError(absl::StatusCode::kNotFound,
              "enable the memory controller for it");
}

TEST_F(CgroupTest, NothingMounted) {
  SelfCgroup("0::/\n");
  ExpectError(absl::StatusCode::kNotFound, "mount its cgroup there");
}

TEST_F(CgroupTest, V1InItsOwnMount) {
  SelfCgroup(
      "12:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n1:name=systemd:/\n");
  V1("memory", "999\n", kNoLimitV1);
  V1("memory/docker", "99\n", "5000\n");
  V1("memory/docker/1", "9\n", "7000\n");
  ExpectMemory(1, "/memory/docker/1", 9, 5000,
               "/memory/docker/memory.limit_in_bytes");
}

TEST_F(CgroupTest, V1ContainerSeesItsCgroupAsTheMount) {
  SelfCgroup("4:memory:/kubepods/pod1/c1\n");
  V1("memory", "9\n", "104857600\n");
  ExpectMemory(1, "/memory", 9, 104857600, "/memory/memory.limit_in_bytes");
}

TEST_F(CgroupTest, V1UnlimitedDependsOnThePageSize) {
  for (const char* none : {kNoLimitV1, "9223372036854710272\n",
                           "9223372036854775807\n", "18446744073709551615\n"}) {
    SelfCgroup("4:memory:/\n");
    V1("memory", "9\n", none);
    ExpectMemory(1, "/memory", 9, std::nullopt, "");
  }
}

TEST_F(CgroupTest, V1JointMount) {
  SelfCgroup("4:hugetlb,memory:/a\n");
  V1("hugetlb,memory/a", "9\n", "50\n");
  ExpectMemory(1, "/hugetlb,memory/a", 9, 50,
               "/hugetlb,memory/a/memory.limit_in_bytes");
}

TEST_F(CgroupTest, V1WithoutFiles) {
  SelfCgroup("4:memory:/a\n");
  ExpectError(absl::StatusCode::kNotFound,
              "no memory.usage_in_bytes for cgroup /a of this process in " +
                  tree_.path("cgroup/memory"));
}

TEST_F(CgroupTest, HybridWithMemoryInV1) {
  SelfCgroup("4:memory:/a\n0::/b\n");
  V1("memory/a", "9\n", "50\n");
  V2("unified/b", "1\n", "2\n");
  ExpectMemory(1, "/memory/a", 9, 50, "/memory/a/memory.limit_in_bytes");
  SelfCgroup("0::/b\n4:memory:/a\n");
  ExpectMemory(1, "/memory/a", 9, 50, "/memory/a/memory.limit_in_bytes");
}

TEST_F(CgroupTest, HybridWithMemoryInV2) {
  SelfCgroup("4:pids:/a\n0::/b\n");
  V2("unified/b", "1\n", "2\n");
  ExpectMemory(2, "/unified/b", 1, 2, "/unified/b/memory.max");
}

TEST_F(CgroupTest, CgroupOfV2NamedLikeTheHybridMount) {
  SelfCgroup("0::/b\n");
  tree_.Write("cgroup/cgroup.controllers", "memory\n");
  tree_.Directory("cgroup/unified");
  V2("b", "1\n", "2\n");
  ExpectMemory(2, "/b", 1, 2, "/b/memory.max");
}

TEST_F(CgroupTest, PathsMayHoldColons) {
  SelfCgroup("0::/docker:a:b\n");
  V2("docker:a:b", "1\n", "2\n");
  ExpectMemory(2, "/docker:a:b", 1, 2, "/docker:a:b/memory.max");
}

TEST_F(CgroupTest, NoMemoryHierarchyAtAll) {
  SelfCgroup("4:pids:/a\n1:name=systemd:/\n");
  ExpectError(absl::StatusCode::kNotFound,
              tree_.path("proc/self/cgroup") + " names no memory controller");
  SelfCgroup("");
  ExpectError(absl::StatusCode::kNotFound, "names no memory controller");
}

TEST_F(CgroupTest, MissingProc) {
  ExpectError(absl::StatusCode::kNotFound, tree_.path("proc/self/cgroup"));
}

TEST_F(CgroupTest, GarbledProc) {
  for (const std::string_view text :
       {"hello\n", "0::\n", "0:/\n", "4:memory:a\n"}) {
    SelfCgroup(text);
    ExpectError(absl::StatusCode::kInternal,
                "which is not ID:CONTROLLERS:PATH");
    ExpectError(absl::StatusCode::kInternal, tree_.path("proc/self/cgroup"));
  }
}

TEST_F(CgroupTest, GarbledFiles) {
  SelfCgroup("0::/a\n");
  for (const std::string_view text :
       {"", "\n", "foo\n", "-1\n", "12 34\n", "12x\n", "0x10\n", "1.5\n",
        "18446744073709551616\n", "max \nmax\n", "MAX\n"}) {
    V2("a", "10\n", text);
    ExpectError(absl::StatusCode::kInternal,
                "which is not a number of bytes or \"max\"");
    ExpectError(absl::StatusCode::kInternal, tree_.path("cgroup/a/memory.max"));
    V2("a", text, "10\n");
    ExpectError(absl::StatusCode::kInternal,
                tree_.path("cgroup/a/memory.current"));
  }
  V2("a", "max\n", "10\n");
  ExpectError(absl::StatusCode::kInternal,
              tree_.path("cgroup/a/memory.current") + " holds \"max\"");
}

TEST_F(CgroupTest, GarbledFileOfAnAncestor) {
  SelfCgroup("0::/a/b\n");
  V2("a/b", "10\n", "100\n");
  V2("a", "10\n", "?\n");
  ExpectError(absl::StatusCode::kInternal, tree_.path("cgroup/a/memory.max"));
}

TEST_F(CgroupTest, GarbledV1) {
  SelfCgroup("4:memory:/\n");
  V1("memory", "9\n", "max\n");
  ExpectError(absl::StatusCode::kInternal,
              tree_.path("cgroup/memory/memory.limit_in_bytes") +
                  " holds \"max\", which is not a number of bytes;");
}

TEST_F(CgroupTest, UnreadableFiles) {
  SelfCgroup("0::/a\n");
  tree_.Write("cgroup/a/memory.max", "max\n");
  tree_.Directory("cgroup/a/memory.current");
  ExpectError(absl::StatusCode::kFailedPrecondition,
              tree_.path("cgroup/a/memory.current") + ": Is a directory");
  tree_.Remove("cgroup/a/memory.max");
  tree_.Remove("cgroup/a/memory.current");
  tree_.Write("cgroup/a/memory.current", "1\n");
  tree_.Directory("cgroup/a/memory.max");
  ExpectError(absl::StatusCode::kFailedPrecondition,
              tree_.path("cgroup/a/memory.max") + ": Is a directory");
}

TEST_F(CgroupTest, UnreadableControllers) {
  SelfCgroup("0::/\n");
  tree_.Directory("cgroup/cgroup.controllers");
  ExpectError(absl::StatusCode::kFailedPrecondition,
              tree_.path("cgroup/cgroup.controllers"));
}

TEST_F(CgroupTest, ForbiddenFilesAndDirectories) {
  SelfCgroup("0::/a/b\n");
  V2("a/b", "1\n", "2\n");
  chmod(tree_.root().c_str(), 0755);
  chmod(tree_.path("cgroup/a/b/memory.max").c_str(), 0);
  AsNobody([&] {
    ExpectError(absl::StatusCode::kPermissionDenied,
                tree_.path("cgroup/a/b/memory.max"));
  });
  chmod(tree_.path("cgroup/a").c_str(), 0);
  AsNobody([&] {
    ExpectError(absl::StatusCode::kPermissionDenied,
                "cannot look at " + tree_.path("cgroup/a/b"));
  });
  chmod(tree_.path("cgroup/a").c_str(), 0755);
}

}  // namespace
}  // namespace purser::base
