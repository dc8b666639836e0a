// SPDX-License-Identifier: Apache-2.0
#include "planner/workload.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "base/utf8.h"
#include "planner/names.h"
#include "planner/send_operations.h"
#include "spdlog/fmt/fmt.h"

namespace purser::planner {
namespace {

using base::YamlMap;
using queue_memory::Argument;
using queue_memory::ArgumentName;

struct ArgumentKey {
  Argument argument;
  std::string_view key;
  uint32_t most;
};
constexpr ArgumentKey kArgumentKeys[] = {
    {Argument::kMaxSendWr, "maxSendWr", kMostDepth},
    {Argument::kMaxSendSge, "maxSendSge", kMostSge},
    {Argument::kMaxInlineData, "maxInlineData", kMostInlineData},
    {Argument::kMaxRecvWr, "maxRecvWr", kMostDepth},
    {Argument::kMaxRecvSge, "maxRecvSge", kMostSge},
};

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

std::string NoReceives(queue_memory::QueuePairType type) {
  return fmt::format("{} queue pairs have no receives: remove it",
                     TypeName(type));
}

bool ReadUint(YamlMap& map, std::string_view key, uint32_t min, uint32_t max,
              uint32_t* out) {
  uint64_t value = 0;
  if (!map.Uint(key, min, max, &value)) return false;
  *out = static_cast<uint32_t>(value);
  return true;
}

class Reader {
 public:
  Reader(const std::string& source, std::string_view text)
      : yaml_(base::EscapeText(source), text, kLongestWorkload) {
    workload_.source = base::EscapeText(source);
  }

  absl::StatusOr<Workload> Read() {
    YamlMap root = yaml_.Root();
    ReadHead(root);
    ReadDevice(root);
    for (YamlMap map : root.Maps("completionQueues")) ReadQueues(map);
    for (YamlMap map : root.Maps("sharedReceiveQueues")) ReadShared(map);
    for (YamlMap map : root.Maps("groups")) ReadGroup(map);
    if (workload_.groups.empty())
      root.Fault("groups", "is required: at least one group of queue pairs");
    RefuseUnused(root);
    PURSER_RETURN_IF_ERROR(yaml_.Finish());
    return std::move(workload_);
  }

 private:
  void ReadHead(YamlMap& root) {
    std::string version;
    if (root.String("version", &version) ? version != "v1"
                                         : !root.Has("version"))
      root.Fault("version", "must be v1, the format of this file");
    ReadName(root, "name", &workload_.name);
    ReadUint(root, "podsPerNode", 1, kMostPodsPerNode,
             &workload_.pods_per_node);
  }

  void ReadName(YamlMap& map, std::string_view key, std::string* name) {
    if (map.String(key, name) && !IsName(*name)) map.Fault(key, NoName(*name));
  }

  void ReadDevice(YamlMap& root) {
    std::string provider;
    Device device;
    if (root.String("provider", &provider)) {
      absl::StatusOr<Device> found = DeviceOfProfile(provider);
      if (!found.ok()) root.Fault("provider", Text(found.status()));
      if (found.ok()) device = *std::move(found);
    } else if (root.Has("limits")) {
      root.Fault("limits", "are those of a provider: add `provider`");
    }
    std::string version;
    if (root.String("kernelVersion", &version)) {
      const absl::Status status = SetKernelVersion(version, &device);
      if (!status.ok()) root.Fault("kernelVersion", Text(status));
      if (!root.Has("provider"))
        root.Fault("kernelVersion",
                   "is that of a provider's device: add `provider`");
    }
    YamlMap limits = root.Map("limits");
    for (const std::string_view name : LimitNames()) {
      uint64_t value = 0;
      if (!limits.Uint(name, 1, INT32_MAX, &value)) continue;
      const absl::Status status = SetLimit(name, value, &device);
      // What a provider that is not known has is not known either.
      if (!status.ok() && !device.name.empty())
        limits.Fault(name, Text(status));
    }
    if (!provider.empty()) workload_.device = std::move(device);
  }

  void ReadQueues(YamlMap& map) {
    CompletionQueues queues{.mark = map.Place()};
    queue_names_.Read(map, workload_.completion_queues.size(), &queues.name);
    ReadUint(map, "count", 1, kMostQueuePairs, &queues.count);
    ReadUint(map, "cqe", 1, kMostCqe, &queues.cqe);
    workload_.completion_queues.push_back(std::move(queues));
    queue_maps_.push_back(map);
  }

  void ReadShared(YamlMap& map) {
    SharedReceiveQueues queues{.mark = map.Place()};
    shared_names_.Read(map, workload_.shared_receive_queues.size(),
                       &queues.name);
    ReadUint(map, "count", 1, kMostQueuePairs, &queues.count);
    if (!map.Has("maxWr")) map.Fault("maxWr", "is required");
    ReadUint(map, "maxWr", 1, kMostDepth, &queues.request.max_wr);
    ReadUint(map, "maxSge", 1, kMostSge, &queues.request.max_sge);
    workload_.shared_receive_queues.push_back(std::move(queues));
    shared_maps_.push_back(map);
  }

  void ReadGroup(YamlMap& map) {
    Group group{.mark = map.Place()};
    group_names_.Read(map, workload_.groups.size(), &group.name);
    ReadName(map, "class", &group.class_name);
    if (ReadUint(map, "count", 1, kMostQueuePairs, &group.count))
      CountQueuePairs(map, group.count);
    ReadType(map, &group);
    group.completion_queues = queue_names_.Refer(map, "completionQueue");
    group.shared_receive_queues =
        shared_names_.Refer(map, "sharedReceiveQueue");
    group.request.uses_srq = map.Has("sharedReceiveQueue");
    if (group.request.uses_srq && SendsAlone(group.request.type))
      map.Fault("sharedReceiveQueue", NoReceives(group.request.type));
    ReadArguments(map, &group);
    ReadSendOps(map, &group);
    workload_.groups.push_back(std::move(group));
  }

  void CountQueuePairs(YamlMap& map, uint32_t count) {
    const bool fitted = queue_pairs_ <= kMostQueuePairs;
    queue_pairs_ += count;
    if (fitted && queue_pairs_ > kMostQueuePairs)
      map.Fault("count",
                fmt::format("with those before it makes {} queue pairs; a "
                            "device has at most {}, since a number has 24 bits",
                            queue_pairs_, kMostQueuePairs));
  }

  void ReadType(YamlMap& map, Group* group) {
    std::string name;
    if (!map.String("type", &name)) return;
    const auto type = QueuePairTypeFromName(absl::AsciiStrToLower(name));
    if (type.ok()) {
      group->request.type = *type;
    } else {
      map.Fault("type", Text(type.status()));
    }
  }

  void ReadArguments(YamlMap& map, Group* group) {
    const bool receives = HasReceiveSide(*group);
    if (!receives) group->request.max_recv_wr = group->request.max_recv_sge = 0;
    for (const auto& [argument, key, most] : kArgumentKeys) {
      group->argument_marks[static_cast<size_t>(argument)] = map.Place(key);
      uint32_t value = 0;
      if (!ReadUint(map, key, 0, most, &value)) continue;
      group->request = With(group->request, argument, value);
      const bool of_receives =
          argument == Argument::kMaxRecvWr || argument == Argument::kMaxRecvSge;
      if (of_receives && !receives)
        map.Fault(key, group->request.uses_srq
                           ? std::string("contradicts `sharedReceiveQueue`, "
                                         "which has the receives: remove one")
                           : NoReceives(group->request.type));
    }
    if (receives && group->request.max_send_wr == 0 &&
        group->request.max_recv_wr == 0)
      map.Fault("maxSendWr",
                "is 0 and so is maxRecvWr: such a queue pair does nothing");
  }

  void ReadSendOps(YamlMap& map, Group* group) {
    std::vector<std::string> names;
    if (!map.Strings("sendOps", &names)) return;
    for (const std::string& name : names) {
      const auto bits = SendOperation(name, group->request.type);
      if (!bits.ok()) map.Fault("sendOps", Text(bits.status()));
      if (bits.ok()) group->request.send_ops |= *bits;
    }
  }

  void RefuseUnused(YamlMap& root) {
    if (!root.Has("groups")) return;
    const auto refuse = [](std::vector<YamlMap>& maps, const auto& queues,
                           const Names& names) {
      for (size_t i = 0; i < maps.size(); ++i)
        if (!names.IsUsed(queues[i].name))
          maps[i].Fault("name",
                        "no group uses it: remove it, or name it in a "
                        "group");
    };
    refuse(queue_maps_, workload_.completion_queues, queue_names_);
    refuse(shared_maps_, workload_.shared_receive_queues, shared_names_);
  }

  base::StrictYaml yaml_;
  Workload workload_;
  Names group_names_{"group"};
  Names queue_names_{"completion queue"};
  Names shared_names_{"shared receive queue"};
  std::vector<YamlMap> queue_maps_, shared_maps_;
  uint64_t queue_pairs_ = 0;
};

}  // namespace

absl::StatusOr<Workload> ReadWorkload(const std::string& source,
                                      std::string_view text) {
  return Reader(source, text).Read();
}

bool HasReceiveSide(const Group& group) {
  return !group.request.uses_srq && !SendsAlone(group.request.type);
}

}  // namespace purser::planner
