// SPDX-License-Identifier: Apache-2.0
#include "sidecar/device.h"

#include <utility>

#include "base/status_macros.h"
#include "spdlog/fmt/fmt.h"

namespace purser::sidecar {

Device::Device(rdma::Verbs& verbs, std::string name, SystemRoots roots)
    : verbs_(verbs), name_(std::move(name)), roots_(std::move(roots)) {}

absl::StatusOr<std::unique_ptr<Device>> Device::Open(rdma::Verbs& verbs,
                                                     const std::string& name,
                                                     SystemRoots roots) {
  std::unique_ptr<Device> device(new Device(verbs, name, std::move(roots)));
  PURSER_ASSIGN_OR_RETURN(std::shared_ptr<OpenedDevice> opened,
                          OpenedDevice::Open(verbs, name, device->roots_,
                                             OpenedDevice::Occasion::kStart));
  device->provider_ = opened->provider();
  device->Set(std::move(opened));
  return device;
}

void Device::Set(std::shared_ptr<OpenedDevice> opened) {
  std::lock_guard lock(mutex_);
  traits_ = opened->traits();
  capabilities_ = opened->capabilities();
  port_num_ = opened->port_num();
  opened_ = std::move(opened);
}

absl::StatusOr<std::shared_ptr<OpenedDevice>> Device::Opened() const {
  std::lock_guard lock(mutex_);
  if (opened_ == nullptr) return why_;
  return opened_;
}

DeviceTraits Device::traits() const {
  std::lock_guard lock(mutex_);
  return traits_;
}

rdma::Capabilities Device::capabilities() const {
  std::lock_guard lock(mutex_);
  return capabilities_;
}

uint8_t Device::port_num() const {
  std::lock_guard lock(mutex_);
  return port_num_;
}

absl::StatusOr<rdma::Gid> Device::PreferredGid() const {
  PURSER_ASSIGN_OR_RETURN(const std::shared_ptr<OpenedDevice> opened, Opened());
  return rdma::PreferredGid(verbs_, opened->context(), opened->port_num(),
                            roots_.sysfs);
}

absl::StatusOr<ibv_port_attr> Device::QueryPort() const {
  PURSER_ASSIGN_OR_RETURN(const std::shared_ptr<OpenedDevice> opened, Opened());
  return verbs_.QueryPort(opened->context().get(), opened->port_num());
}

void Device::Lose(const std::string& why) {
  std::shared_ptr<OpenedDevice> lost;  // let go of without the lock
  std::lock_guard lock(mutex_);
  lost = std::exchange(opened_, nullptr);
  if (lost != nullptr) lost->SetLost();
  why_ = absl::UnavailableError(
      fmt::format("{}; it is opened again when it is back", why));
}

absl::Status Device::Reopen() {
  absl::StatusOr<std::shared_ptr<OpenedDevice>> opened = OpenAgain();
  if (opened.ok()) {
    Set(*std::move(opened));
    return absl::OkStatus();
  }
  std::lock_guard lock(mutex_);
  why_ = absl::UnavailableError(
      fmt::format("device {} is back, but cannot be used: {}", name_,
                  std::string(opened.status().message())));
  return why_;
}

absl::StatusOr<std::shared_ptr<OpenedDevice>> Device::OpenAgain() const {
  PURSER_ASSIGN_OR_RETURN(std::shared_ptr<OpenedDevice> opened,
                          OpenedDevice::Open(verbs_, name_, roots_,
                                             OpenedDevice::Occasion::kReturn));
  // The budget was made for the provider that it had.
  if (opened->provider() != provider_)
    return absl::FailedPreconditionError(
        fmt::format("its provider was {} and is {} now: delete the pod, that a "
                    "new one is made",
                    queue_memory::ProviderName(provider_),
                    queue_memory::ProviderName(opened->provider())));
  return opened;
}

}  // namespace purser::sidecar
