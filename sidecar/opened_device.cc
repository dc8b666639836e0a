// SPDX-License-Identifier: Apache-2.0
#include "sidecar/opened_device.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/status_macros.h"
#include "queue_memory/registry.h"
#include "rdma/discovery.h"
#include "sidecar/memlock_hint.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {
namespace {

absl::Status Annotated(const absl::Status& status, const std::string& text) {
  absl::Status annotated(
      status.code(), fmt::format("{}{}", std::string(status.message()), text));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

// Why a device node cannot be opened, in words.
std::string NodeHint(const std::string& name, const std::filesystem::path& node,
                     OpenedDevice::Occasion occasion) {
  std::error_code error;
  const bool exists = std::filesystem::exists(node, error);
  if (occasion == OpenedDevice::Occasion::kReturn)
    return fmt::format(
        "; {} {}: this container was given the device node of before, so "
        "delete the pod, that a new one is made",
        node.string(),
        exists ? "may not be opened" : "is not in this container");
  if (exists)
    return fmt::format(
        "; {} is there: is this process allowed to open it (device cgroup, "
        "user)?",
        node.string());
  return fmt::format(
      "; {} exists on this node, but {} is not in this container: request "
      "rdma/<pool> in the resources of the sidecar's container, by default "
      "resources: {{limits: {{rdma/hca: 1}}}}",
      name, node.string());
}

}  // namespace

OpenedDevice::OpenedDevice(rdma::Verbs& verbs, std::string name)
    : verbs_(verbs), name_(std::move(name)) {}

absl::StatusOr<std::shared_ptr<OpenedDevice>> OpenedDevice::Open(
    rdma::Verbs& verbs, const std::string& name, const SystemRoots& roots,
    Occasion occasion) {
  std::shared_ptr<OpenedDevice> device(new OpenedDevice(verbs, name));
  PURSER_RETURN_IF_ERROR(device->ReadSysfs(roots));
  if (absl::Status status = device->OpenContext(); !status.ok())
    return device->OpenFailure(status, roots, occasion);
  PURSER_RETURN_IF_ERROR(device->FindPort());
  return device;
}

// Before the device is opened: an entry that is another one afterwards is then
// noticed.
absl::Status OpenedDevice::ReadSysfs(const SystemRoots& roots) {
  PURSER_ASSIGN_OR_RETURN(uverbs_, rdma::FindUverbsEntry(roots.sysfs, name_));
  absl::StatusOr<rdma::SysfsDevice> found =
      rdma::Discovery(roots.sysfs, roots.dev).Device(name_);
  // A device that sysfs does not show is reported by OpenContext, which lists
  // those that there are.
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  PURSER_RETURN_IF_ERROR(found.status());
  provider_ = found->provider;
  if (const auto* profile = queue_memory::FindProfile(found->driver.c_str()))
    capabilities_.limits = profile->limits;
  return absl::OkStatus();
}

absl::Status OpenedDevice::OpenContext() {
  PURSER_ASSIGN_OR_RETURN(context_, rdma::OpenDevice(verbs_, name_));
  PURSER_ASSIGN_OR_RETURN(const rdma::Capabilities queried,
                          rdma::QueryCapabilities(verbs_, context_));
  capabilities_.attr = queried.attr;
  capabilities_.limits =
      queue_memory::Overlay(capabilities_.limits, queried.limits);
  PURSER_ASSIGN_OR_RETURN(pd_, rdma::AllocPd(verbs_, context_));
  PURSER_ASSIGN_OR_RETURN(channel_, rdma::CreateCompChannel(verbs_, context_));
  return absl::OkStatus();
}

absl::Status OpenedDevice::OpenFailure(const absl::Status& status,
                                       const SystemRoots& roots,
                                       Occasion occasion) const {
  if (rdma::ErrnoOf(status) == ENOMEM)
    return Annotated(status, MemlockHint(roots.proc));
  if (context_ != nullptr || !uverbs_.has_value()) return status;
  return Annotated(status, NodeHint(name_,
                                    std::filesystem::path(roots.dev) /
                                        "infiniband" / uverbs_->path.filename(),
                                    occasion));
}

absl::Status OpenedDevice::FindPort() {
  for (int port_num = 1; port_num <= capabilities_.attr.phys_port_cnt;
       ++port_num) {
    PURSER_ASSIGN_OR_RETURN(
        const ibv_port_attr port,
        verbs_.QueryPort(context_.get(), static_cast<uint8_t>(port_num)));
    if (port.state == IBV_PORT_ACTIVE) {
      port_num_ = static_cast<uint8_t>(port_num);
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

DeviceTraits OpenedDevice::traits() const {
  return {
      .name = name_,
      .provider = provider_,
      .limits = capabilities_.limits,
      .max_qp = static_cast<uint64_t>(std::max(capabilities_.attr.max_qp, 0))};
}

}  // namespace purser::sidecar
