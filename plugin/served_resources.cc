// SPDX-License-Identifier: Apache-2.0
#include "plugin/served_resources.h"

#include <algorithm>
#include <utility>

namespace purser::plugin {
namespace {

// More than a server is ever bound between two configurations.
constexpr uint32_t kBindsOfAConfiguration = 1 << 16;

}  // namespace

ServedResources::ServedResources(Identity identity,
                                 std::function<void()> changed)
    : identity_(std::move(identity)), changed_(std::move(changed)) {}

void ServedResources::Replace(
    std::vector<std::unique_ptr<Resource>> resources) {
  const std::vector<std::shared_ptr<Served>> before = served();
  std::vector<std::shared_ptr<Served>> after;
  const uint32_t binds_before = replacements_++ * kBindsOfAConfiguration;
  for (std::unique_ptr<Resource>& resource : resources) {
    const auto same =
        std::find_if(before.begin(), before.end(), [&](const auto& served) {
          // The kubelet asks for a preference only if it was told of one when
          // the resource was registered.
          return served->resource.name() == resource->name() &&
                 served->resource.has_preference() ==
                     resource->has_preference();
        });
    if (same == before.end()) {
      after.push_back(std::make_shared<Served>(std::move(resource), identity_,
                                               changed_, binds_before));
    } else {
      (*same)->resource.Replace(std::move(resource));
      after.push_back(*same);
    }
  }
  std::lock_guard lock(mutex_);
  served_ = std::move(after);
}

void ServedResources::Update(const std::shared_ptr<const Snapshot>& snapshot) {
  for (const auto& one : served()) one->server.Update(snapshot);
}

void ServedResources::Stop(std::chrono::system_clock::time_point deadline) {
  const std::vector<std::shared_ptr<Served>> all = served();
  for (auto one = all.rbegin(); one != all.rend(); ++one)
    (*one)->server.Stop(deadline);
}

std::vector<std::shared_ptr<ResourceServer>> ServedResources::servers() const {
  std::vector<std::shared_ptr<ResourceServer>> servers;
  for (const auto& one : served()) servers.emplace_back(one, &one->server);
  return servers;
}

ServedResources::View ServedResources::Find(
    const std::string& resource_name) const {
  for (const auto& one : served()) {
    if (one->resource.name() == resource_name)
      return {{one, &one->resource}, {one, &one->server}};
  }
  return {};
}

std::vector<std::shared_ptr<ServedResources::Served>> ServedResources::served()
    const {
  std::lock_guard lock(mutex_);
  return served_;
}

}  // namespace purser::plugin
