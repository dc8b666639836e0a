// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "plugin/replaceable_resource.h"
#include "plugin/resource_server.h"

namespace purser::plugin {

// The resources that the configuration asks for, and the server of each. Owned
// by App. Replace() and Stop() are the main thread's; the rest may be called
// from any.
class ServedResources {
 public:
  // `changed` is ResourceServer's.
  ServedResources(Identity identity, std::function<void()> changed);

  // These and no others, in this order. One that is there by the same name goes
  // on with its socket and its streams, unless the kubelet would have to be
  // told more than a list. Servers that are left out go with their last owner.
  void Replace(std::vector<std::unique_ptr<Resource>> resources);
  void Update(const std::shared_ptr<const Snapshot>& snapshot);
  // All, until `deadline`. May be called again.
  void Stop(std::chrono::system_clock::time_point deadline);

  const Identity& identity() const { return identity_; }
  std::vector<std::shared_ptr<ResourceServer>> servers() const;
  struct View {
    std::shared_ptr<const Resource> resource;
    std::shared_ptr<const ResourceServer> server;
  };
  // Null: not served (any more).
  View Find(const std::string& resource_name) const;

 private:
  struct Served {
    Served(std::unique_ptr<Resource> made, const Identity& identity,
           std::function<void()> changed, uint32_t binds_before)
        : resource(std::move(made)),
          server(resource, identity, std::move(changed), binds_before) {}
    ReplaceableResource resource;
    ResourceServer server;
  };
  std::vector<std::shared_ptr<Served>> served() const;

  const Identity identity_;
  const std::function<void()> changed_;
  uint32_t replacements_ = 0;  // the main thread's
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Served>> served_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::plugin
