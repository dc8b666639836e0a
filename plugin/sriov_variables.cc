// SPDX-License-Identifier: Apache-2.0
#include "plugin/sriov_variables.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "plugin/device_access.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

using google::protobuf::Struct;

void Set(Struct* info, const char* provider, const std::string& key,
         const std::string& text) {
  auto& of_provider = (*info->mutable_fields())[provider];
  (*of_provider.mutable_struct_value()->mutable_fields())[key].set_string_value(
      text);
}

void SetExtra(const PoolConfig& pool, const std::string& id, Struct* info) {
  for (const std::string& whose : {std::string("*"), id}) {
    const auto found = pool.additional_info.find(whose);
    if (found == pool.additional_info.end()) continue;
    for (const auto& [key, text] : found->second) Set(info, "extra", key, text);
  }
}

void SetRdma(const std::vector<std::string>& nodes, const std::string& name,
             Struct* info) {
  for (const std::string& path : nodes) {
    for (const char* kind : {"uverbs", "umad", "issm", "rdma_cm"})
      if (path.find(kind) != std::string::npos) Set(info, "rdma", kind, path);
  }
  Set(info, "rdma", "rdma_dev", name);
}

}  // namespace

void SetSriovVariables(const PoolConfig& pool,
                       const std::vector<const Device*>& devices,
                       const Snapshot& snapshot,
                       v1beta1::ContainerAllocateResponse* response) {
  std::string ids;
  Struct all;
  for (const Device* device : devices) {
    const std::string id = UnitId(pool, device->sysfs);
    ids += (ids.empty() ? "" : ",") + id;
    Struct* info = (*all.mutable_fields())[id].mutable_struct_value();
    Set(info, "generic", "deviceID", id);
    SetRdma(NodesFor(pool, *device, snapshot), device->sysfs.name, info);
    SetExtra(pool, id, info);
  }
  const std::string variable =
      SriovVariable(pool.resource_prefix, pool.resource_name);
  auto& variables = *response->mutable_envs();
  variables[variable] = ids;
  std::string json;
  if (google::protobuf::util::MessageToJsonString(all, &json).ok())
    variables[variable + "_INFO"] = json;
}

}  // namespace purser::plugin
