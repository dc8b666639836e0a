// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "plugin/file_id.h"

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

// "rdma/hca" -> "purser.dev/rdma_hca".
std::string CdiKind(const std::string& resource);
// Whether a device may be called that in a specification.
bool IsCdiName(const std::string& name);

// The specifications of one installation's plugin in a directory of the
// Container Device Interface, /var/run/cdi on most nodes.
// A file is replaced as a whole, so that a runtime never reads half of one, and
// removed only while it is the one that was written: in a rolling update the
// next process has written its own. Refresh() and Remove() belong to one
// thread.
class CdiSpecs {
 public:
  CdiSpecs(std::string directory, const std::string& installation);

  // Makes the directory hold `specs` and no other of this installation. A
  // specification without devices is no file. Faults are logged once; what
  // could not be written is not in place.
  void Refresh(const std::vector<CdiSpec>& specs);
  // All that were written; at the end.
  void Remove();

  // Whether a container may be told names of the resource's devices; any
  // thread.
  bool InPlace(const std::string& resource) const;

 private:
  struct Written {
    CdiSpec spec;
    FileId file;
  };
  absl::Status Write(const CdiSpec& spec);
  void RemoveForeign(const std::set<std::string>& kept) const;
  std::string Path(const std::string& resource) const;

  const std::string directory_, begin_;     // of our files' paths
  std::map<std::string, Written> written_;  // by resource; Refresh()'s thread
  absl::Status last_error_;
  mutable std::mutex mutex_;
  std::set<std::string> in_place_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::plugin
