// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "plugin/config/config.h"
#include "plugin/events/event_sources.h"
#include "plugin/events/opened_devices.h"
#include "plugin/inventory.h"

namespace purser::plugin {

// The sources of events that the configuration asks for, kept to the devices
// that the node has. Owned by App; the main thread's but for
// sources().States().
class NodeEvents {
 public:
  void Open(const Config& config);
  std::vector<RefreshCause> Wait(std::initializer_list<int> others,
                                 EventSources::TimePoint until) {
    return sources_.Wait(others, until);
  }
  // Before a scan: the removal of a device waits until it is closed here.
  void CloseGone();
  // After a scan: opens what is new, and says which sources tell of it.
  void Follow(const Snapshot& snapshot, EventSources::TimePoint now);
  // Devices that reported a fatal error.
  std::set<std::string> fatal() const;
  const EventSources& sources() const { return sources_; }

 private:
  std::string sysfs_root_;
  EventSources sources_;
  OpenedDevices* opened_ = nullptr;  // of sources_; null: not wanted
};

}  // namespace purser::plugin
