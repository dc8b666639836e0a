// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device.h"

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

}  // namespace

Device::Device(rdma::Verbs& verbs, std::string name, SystemRoots roots)
    : verbs_(verbs), name_(std::move(name)), roots_(std::move(roots)) {}

absl::StatusOr<std::unique_ptr<Device>> Device::Open(rdma::Verbs& verbs,
                                                     const std::string& name,
                                                     SystemRoots roots) {
  std::unique_ptr<Device> device(new Device(verbs, name, std::move(roots)));
  PURSER_RETURN_IF_ERROR(device->ReadProvider());
  if (absl::Status status = device->OpenContext(); !status.ok())
    return device->OpenFailure(status);
  PURSER_RETURN_IF_ERROR(device->FindPort());
  return device;
}

absl::Status Device::ReadProvider() {
  absl::StatusOr<rdma::SysfsDevice> found =
      rdma::Discovery(roots_.sysfs, roots_.dev).Device(name_);
  // A device that sysfs does not show is reported by OpenContext, which lists
  // those that there are.
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  PURSER_RETURN_IF_ERROR(found.status());
  provider_ = found->provider;
  if (const auto* profile = queue_memory::FindProfile(found->driver.c_str()))
    profile_limits_ = profile->limits;
  uverbs_ = found->uverbs;
  return absl::OkStatus();
}

absl::Status Device::OpenContext() {
  PURSER_ASSIGN_OR_RETURN(context_, rdma::OpenDevice(verbs_, name_));
  PURSER_ASSIGN_OR_RETURN(capabilities_,
                          rdma::QueryCapabilities(verbs_, context_));
  capabilities_.limits =
      queue_memory::Overlay(profile_limits_, capabilities_.limits);
  PURSER_ASSIGN_OR_RETURN(pd_, rdma::AllocPd(verbs_, context_));
  return absl::OkStatus();
}

absl::Status Device::OpenFailure(const absl::Status& status) const {
  if (rdma::ErrnoOf(status) == ENOMEM)
    return Annotated(status, MemlockHint(roots_.proc));
  if (context_ != nullptr || uverbs_.empty()) return status;
  const std::filesystem::path node =
      std::filesystem::path(roots_.dev) / "infiniband" / uverbs_;
  std::error_code error;
  if (!std::filesystem::exists(node, error))
    return Annotated(
        status,
        fmt::format("; {} exists on this node, but {} is not in this "
                    "container: request the resource rdma/<pool> of the "
                    "device plugin for the sidecar's container",
                    name_, node.string()));
  return Annotated(status,
                   fmt::format("; {} is there: is this process allowed to "
                               "open it (device cgroup, user)?",
                               node.string()));
}

absl::Status Device::FindPort() {
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

DeviceTraits Device::traits() const {
  return {
      .name = name_,
      .provider = provider_,
      .limits = capabilities_.limits,
      .max_qp = static_cast<uint64_t>(std::max(capabilities_.attr.max_qp, 0))};
}

absl::StatusOr<rdma::Gid> Device::PreferredGid() const {
  return rdma::PreferredGid(verbs_, context_, port_num_, roots_.sysfs);
}

absl::StatusOr<ibv_port_attr> Device::QueryPort() const {
  return verbs_.QueryPort(context_.get(), port_num_);
}

}  // namespace purser::sidecar
