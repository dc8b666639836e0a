// SPDX-License-Identifier: Apache-2.0
#include "plugin/node_events.h"

#include "plugin/events/netlink_source.h"

namespace purser::plugin {

void NodeEvents::Open(const Config& config) {
  sysfs_root_ = config.sysfs_root;
  if (config.events) {
    sources_.Add(RefreshCause::kUevents, MakeUeventSource());
    sources_.Add(RefreshCause::kRtnetlink, MakeLinkSource());
  }
  if (!config.open_devices) return;
  absl::StatusOr<std::unique_ptr<OpenedDevices>> opened =
      OpenedDevices::Create(rdma::LibibverbsVerbs(), sysfs_root_);
  if (opened.ok()) opened_ = opened->get();
  sources_.Add(RefreshCause::kAsync, std::move(opened));
}

void NodeEvents::CloseGone() {
  if (opened_ != nullptr) opened_->CloseGone();
}

std::set<std::string> NodeEvents::fatal() const {
  return opened_ == nullptr ? std::set<std::string>() : opened_->fatal();
}

void NodeEvents::Follow(const Snapshot& snapshot, EventSources::TimePoint now) {
  std::set<std::string> netdevs, to_open;
  for (const Device& device : snapshot.devices) {
    if (device.health == DeviceHealth::kOtherNamespace) continue;
    if (!device.sysfs.parent_netdev.empty())
      netdevs.insert(device.sysfs.parent_netdev);
    for (const rdma::PortStatus& port : device.sysfs.ports)
      netdevs.insert(port.netdevs.begin(), port.netdevs.end());
    if (device.health != DeviceHealth::kIncomplete)
      to_open.insert(device.sysfs.name);
  }
  sources_.Judge(RefreshCause::kRtnetlink,
                 IsOtherNamespace(sysfs_root_, netdevs) ? "other_netns" : "");
  if (opened_ == nullptr) return;
  opened_->Follow(to_open, now);
  sources_.Judge(RefreshCause::kAsync, opened_->status());
}

}  // namespace purser::plugin
