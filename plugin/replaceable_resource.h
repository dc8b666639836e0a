// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "plugin/resource.h"

namespace purser::plugin {

// A resource as the configuration has it now: another of the same name may take
// its place while it is served. Thread-safe.
class ReplaceableResource : public Resource {
 public:
  explicit ReplaceableResource(std::shared_ptr<const Resource> resource)
      : name_(resource->name()), resource_(std::move(resource)) {}

  void Replace(std::shared_ptr<const Resource> resource) {
    std::lock_guard lock(mutex_);
    resource_ = std::move(resource);
  }

  const std::string& name() const override { return name_; }
  Advertisement Advertise(const Snapshot& snapshot) const override {
    return now()->Advertise(snapshot);
  }
  std::string Note(const Snapshot& snapshot) const override {
    return now()->Note(snapshot);
  }
  absl::Status Fits(const Snapshot& snapshot) const override {
    return now()->Fits(snapshot);
  }
  absl::StatusOr<v1beta1::ContainerAllocateResponse> Allocate(
      std::span<const std::string> ids,
      const Snapshot& snapshot) const override {
    return now()->Allocate(ids, snapshot);
  }
  bool has_preference() const override { return now()->has_preference(); }
  std::vector<std::string> Prefer(std::span<const std::string> available,
                                  std::span<const std::string> must_include,
                                  size_t size,
                                  const Snapshot& snapshot) const override {
    return now()->Prefer(available, must_include, size, snapshot);
  }

 private:
  std::shared_ptr<const Resource> now() const {
    std::lock_guard lock(mutex_);
    return resource_;
  }

  const std::string name_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Resource> resource_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace purser::plugin
