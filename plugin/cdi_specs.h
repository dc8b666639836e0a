// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/collectable.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "plugin/file_id.h"
#include "plugin/held_units.h"

namespace purser::plugin {

// What a container runtime is to give with one device's name.
struct CdiDevice {
  std::string name;
  std::vector<std::string> nodes;  // "/dev/infiniband/uverbs0"
  bool operator==(const CdiDevice&) const = default;
};

// One resource's devices, and the nodes that go with any of them.
struct CdiSpec {
  std::string resource;  // "rdma/hca"
  std::vector<CdiDevice> devices;
  std::vector<std::string> shared_nodes;
  bool operator==(const CdiSpec&) const = default;
};

// "rdma/hca" -> "purser.dev/rdma_hca", "a.com/hca" ->
// "purser.dev/a_com_hca-34fca3d8": another for each resource.
std::string CdiKind(const std::string& resource);
// Whether a device may be called that in a specification.
bool IsCdiName(const std::string& name);

// The specifications of one installation's plugin in a directory of the
// Container Device Interface, /var/run/cdi on most nodes.
// A file is replaced as a whole, so that a runtime never reads half of one, and
// removed only while it is the one that was written: in a rolling update the
// next process has written its own, which is let alone where it says the same.
// One that a container was given names of
// stays, since the container may be started again without anybody being asked.
// Refresh() and Remove() belong to one thread.
class CdiSpecs : public prometheus::Collectable {
 public:
  CdiSpecs(std::string directory, const std::string& installation,
           AskHeldUnits held = nullptr);

  // Makes the directory hold `specs` and, of this installation, no other but
  // those of resources that containers have units of; where that is not known,
  // those that this process wrote. A specification without devices is no file.
  // Faults are logged once; what could not be written is not in place.
  void Refresh(const std::vector<CdiSpec>& specs);
  // All that were written, at the end, but for those that are known to be in
  // use.
  void Remove();

  // Whether a container may be told names of the resource's devices; any
  // thread.
  bool InPlace(const std::string& resource) const;
  // The same of each resource that has devices; any thread.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  struct Written {
    CdiSpec spec;
    std::optional<FileId> file;  // nullopt: another process has replaced it
  };
  absl::Status Write(const CdiSpec& spec);
  // Files of resources that containers have; nullopt: not known.
  std::optional<std::set<std::string>> HeldFiles() const;
  void RemoveOthers(const std::set<std::string>& wanted);
  std::string Path(const std::string& resource) const;

  const std::string directory_, begin_;  // of our files' paths
  const AskHeldUnits held_;
  std::map<std::string, Written> written_;  // by resource; Refresh()'s thread
  absl::Status last_error_;
  mutable std::mutex mutex_;
  // Of each resource that has devices.
  std::map<std::string, bool> in_place_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::plugin
