// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deviceplugin/v1beta1/api.pb.h"
#include "plugin/advertisement.h"
#include "plugin/inventory.h"

namespace purser::plugin {

// One extended resource: how a snapshot of the node becomes units, and units
// become what a container is given. Stateless after construction and
// thread-safe; owned by App.
class Resource {
 public:
  virtual ~Resource() = default;
  virtual const std::string& name() const = 0;  // "rdma/hca"
  virtual Advertisement Advertise(const Snapshot& snapshot) const = 0;
  // What to know of that figure, such as why it is 0; for people, "" if
  // nothing.
  virtual std::string Note(const Snapshot& /*snapshot*/) const { return ""; }
  // Whether the kubelet takes as many units as there would be; if not, they are
  // cut to what it takes. InvalidArgument: the configuration's own figure is
  // too large, so it is refused where it is read. OutOfRange: the node has
  // more.
  virtual absl::Status Fits(const Snapshot& /*snapshot*/) const {
    return absl::OkStatus();
  }
  // `ids` were checked against Advertise(snapshot).
  virtual absl::StatusOr<v1beta1::ContainerAllocateResponse> Allocate(
      std::span<const std::string> ids, const Snapshot& snapshot) const = 0;

  // Whether it matters which of its units a container gets; if so, which
  // `size` of them suit it best: `must_include`, and others of `available`.
  virtual bool has_preference() const { return false; }
  virtual std::vector<std::string> Prefer(
      std::span<const std::string> /*available*/,
      std::span<const std::string> /*must_include*/, size_t /*size*/,
      const Snapshot& /*snapshot*/) const {
    return {};
  }
};

}  // namespace purser::plugin
