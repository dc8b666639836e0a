// SPDX-License-Identifier: Apache-2.0
#include "node_view/pod_cgroup.h"

#include <algorithm>

#include "node_view/lines.h"

namespace purser::node_view {
namespace {

constexpr std::string_view kScope = ".scope", kSlice = ".slice";
// Of a pod's UID (a UUID, or 32 digits of a static pod's) and of a container's
// id (64). No word is that long by chance.
constexpr size_t kLeastIdDigits = 32;

bool IsHexadecimal(std::string_view text, std::string_view separators = {}) {
  return text.size() >= kLeastIdDigits &&
         std::all_of(text.begin(), text.end(), [separators](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
                  separators.find(c) != std::string_view::npos;
         });
}

// "pod1b4e28ba-2fa1-…", "kubepods-burstable-pod1b4e28ba_2fa1_….slice": the
// systemd driver has '_' for the '-' of the UID, so that the last '-' is before
// "pod".
std::string PodUidOf(std::string_view segment) {
  constexpr std::string_view kPod = "pod";
  const bool systemd = segment.ends_with(kSlice);
  if (systemd) {
    segment.remove_suffix(kSlice.size());
    const size_t dash = segment.rfind('-');
    if (dash == std::string_view::npos || !segment.starts_with("kube"))
      return {};
    segment.remove_prefix(dash + 1);
  }
  if (!segment.starts_with(kPod)) return {};
  segment.remove_prefix(kPod.size());
  if (!IsHexadecimal(segment, "-_")) return {};
  std::string uid(segment);
  if (systemd) std::replace(uid.begin(), uid.end(), '_', '-');
  return uid;
}

// "<id>", "crio-<id>", "cri-containerd-<id>.scope", "docker-<id>.scope".
// CRI-O's monitor of a container ("crio-conmon-<id>") is not in it.
std::string ContainerIdOf(std::string_view segment) {
  if (segment.ends_with(kScope)) segment.remove_suffix(kScope.size());
  if (segment.find("conmon") != std::string_view::npos) return {};
  const size_t separator = segment.find_last_of("-:");
  if (separator != std::string_view::npos) segment.remove_prefix(separator + 1);
  return IsHexadecimal(segment) ? std::string(segment) : std::string();
}

// "kubepods-burstable-pod<uid>.slice:cri-containerd:<id>": what the systemd
// spelling becomes where the runtime does not use systemd.
std::optional<PodCgroup> ParseColons(std::string_view segment) {
  const size_t colon = segment.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  PodCgroup cgroup{.pod_uid = PodUidOf(segment.substr(0, colon)),
                   .container_id = ContainerIdOf(segment.substr(colon + 1))};
  if (cgroup.pod_uid.empty()) return std::nullopt;
  return cgroup;
}

std::optional<PodCgroup> ParsePath(std::string_view path) {
  PodCgroup cgroup;
  bool relative = false;  // "/../<id>": above the reader's own cgroup namespace
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (segment.empty()) continue;
    relative = relative || segment == "..";
    if (cgroup.pod_uid.empty()) {
      if (auto both = ParseColons(segment)) return both;
      cgroup.pod_uid = PodUidOf(segment);
      if (!cgroup.pod_uid.empty() || !relative) continue;
    }
    // What a container makes below its own cgroup is the container's still.
    cgroup.container_id = ContainerIdOf(segment);
    if (!cgroup.container_id.empty()) break;
  }
  if (cgroup.pod_uid.empty() && cgroup.container_id.empty())
    return std::nullopt;
  return cgroup;
}

}  // namespace

std::optional<PodCgroup> ParsePodCgroup(std::string_view text) {
  std::optional<PodCgroup> found;
  ForEachLine(text, [&](std::string_view line) {
    // "4:memory:/kubepods/…", "0::/kubepods.slice/…"; a path may have colons.
    const size_t first = line.find(':');
    if (first == std::string_view::npos) return;
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) return;
    std::optional<PodCgroup> cgroup = ParsePath(line.substr(second + 1));
    // A controller may be left at the pod's level, or above it.
    if (cgroup && (!found || found->container_id.empty()))
      found = std::move(cgroup);
  });
  return found;
}

}  // namespace purser::node_view
