// SPDX-License-Identifier: Apache-2.0
#include "node_view/pod_cgroup.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace purser::node_view {
namespace {

constexpr char kUid[] = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
constexpr char kId[] =
    "93ffbd5b0b1a1c4e9ab4b8b7b2e2d1a0f0e9d8c7b6a594837261504f3e2d1c0b";
// %U: the UID, %S: as systemd has it, %I: the id.
std::string Expand(std::string text) {
  std::string systemd = kUid;
  for (char& c : systemd) c = c == '-' ? '_' : c;
  for (const auto& [key, value] :
       {std::pair<std::string, std::string>("%U", kUid),
        {"%S", systemd},
        {"%I", kId}}) {
    for (size_t at; (at = text.find(key)) != std::string::npos;)
      text.replace(at, key.size(), value);
  }
  return text;
}

struct Case {
  const char* what;
  const char* text;
  bool in_container = true;
};
constexpr Case kPods[] = {
    {"cgroupfs, version 2", "0::/kubepods/burstable/pod%U/%I\n"},
    {"cgroupfs, guaranteed", "0::/kubepods/pod%U/%I\n"},
    {"cgroupfs, version 1",
     "12:pids:/kubepods/besteffort/pod%U/%I\n"
     "4:memory:/kubepods/besteffort/pod%U/%I\n1:name=systemd:/init.scope\n"},
    {"systemd, containerd",
     "0::/kubepods.slice/kubepods-burstable.slice/"
     "kubepods-burstable-pod%S.slice/cri-containerd-%I.scope\n"},
    {"systemd, guaranteed",
     "0::/kubepods.slice/kubepods-pod%S.slice/cri-containerd-%I.scope\n"},
    {"systemd, CRI-O",
     "0::/kubepods.slice/kubepods-besteffort.slice/"
     "kubepods-besteffort-pod%S.slice/crio-%I.scope\n"},
    {"CRI-O makes the container one below",
     "0::/kubepods.slice/kubepods-pod%S.slice/crio-%I.scope/container\n"},
    {"systemd, cri-dockerd",
     "0::/kubepods.slice/kubepods-pod%S.slice/docker-%I.scope\n"},
    {"cgroupfs, CRI-O", "0::/kubepods/burstable/pod%U/crio-%I\n"},
    {"systemd's spelling without systemd",
     "0::/system.slice/containerd.service/"
     "kubepods-burstable-pod%S.slice:cri-containerd:%I\n"},
    {"below a cgroup of the kubelet's own",
     "0::/kubelet.slice/kubelet-kubepods.slice/"
     "kubelet-kubepods-burstable.slice/"
     "kubelet-kubepods-burstable-pod%S.slice/cri-containerd-%I.scope\n"},
    {"a node in a container",
     "0::/docker/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaa/kubelet/kubepods/pod%U/%I\n"},
    {"seen from another cgroup namespace",
     "0::/../../../kubepods-burstable.slice/kubepods-burstable-pod%S.slice/"
     "cri-containerd-%I.scope\n"},
    {"cgroups of the container's own",
     "0::/kubepods/pod%U/%I/init.scope/a-b\n"},
    {"hybrid: version 2 without the pod",
     "5:memory:/kubepods/pod%U/%I\n0::/system.slice/kubelet.service\n"},
    {"one controller is left at the pod",
     "5:rdma:/kubepods/pod%U\n4:memory:/kubepods/pod%U/%I\n"},
    {"directly in the pod", "0::/kubepods/pod%U\n", false},
    {"CRI-O's monitor is not in the container",
     "0::/kubepods.slice/kubepods-pod%S.slice/crio-conmon-%I.scope\n", false},
};

TEST(PodCgroupTest, EverySpellingOfAContainer) {
  for (const Case& c : kPods) {
    const auto cgroup = ParsePodCgroup(Expand(c.text));
    ASSERT_TRUE(cgroup.has_value()) << c.what;
    EXPECT_EQ(cgroup->pod_uid, kUid) << c.what;
    EXPECT_EQ(cgroup->container_id, c.in_container ? kId : "") << c.what;
  }
}

TEST(PodCgroupTest, AStaticPodsUidIsOfDigitsAlone) {
  const std::string uid = "0123456789abcdef0123456789abcdef";
  EXPECT_EQ(ParsePodCgroup(Expand("0::/kubepods/pod" + uid + "/%I\n"))->pod_uid,
            uid);
}

TEST(PodCgroupTest, OfTheReadersOwnPodTheContainerAlone) {
  const auto cgroup =
      ParsePodCgroup(Expand("0::/../cri-containerd-%I.scope\n"));
  ASSERT_TRUE(cgroup.has_value());
  EXPECT_EQ(cgroup->pod_uid, "");
  EXPECT_EQ(cgroup->container_id, kId);
}

TEST(PodCgroupTest, OthersAreOutsidePods) {
  for (const char* text :
       {"", "0::/\n", "0::/system.slice/sshd.service\n", "0::/podman\n",
        "0::/kubepods\n", "0::/kubepods.slice/kubepods-burstable.slice\n",
        "0::/docker/%I\n", "0::/user.slice/podx/%I\n", "no colon\n",
        "1:memory\n", "0::/../../system.slice/containerd.service\n"})
    EXPECT_FALSE(ParsePodCgroup(Expand(text)).has_value()) << text;
}

TEST(PodCgroupTest, SurvivesGarbage) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string text = Expand(kPods[random() % std::size(kPods)].text);
    for (int change = 0; change < 4; ++change)
      text[random() % text.size()] = "/:-_.\n0apx"[random() % 10];
    text.resize(random() % (text.size() + 1));
    (void)ParsePodCgroup(text);
  }
}

}  // namespace
}  // namespace purser::node_view
