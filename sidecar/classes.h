// SPDX-License-Identifier: Apache-2.0
//
// Named kinds of connection, so that few get deep queues and many get shallow
// ones, and what is promised to them and to clients. Shares are parts of the
// budget, which may change while the sidecar runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rdma/verbs.h"

namespace purser::sidecar {

inline constexpr char kDefaultClass[] = "default";

struct ClassConfig {
  std::string name;
  bool core = false;     // may grow while memory is tight
  double floor = 0;      // share that is never given to another
  double max_share = 1;  // share that it never exceeds
  uint32_t weight = 1;   // of what is promised to nobody, where classes compete
  ibv_qp_cap cap{};      // what a request that names no capacities gets
};

struct ClientGuarantee {
  std::string client;  // the name it attaches with
  double share = 0;    // never given to another, whether it is attached or not
};

struct ClassesConfig {
  std::vector<ClassConfig> classes;
  std::vector<ClientGuarantee> guarantees;

  // nullptr: no such class. "" is the default class, which there always is.
  const ClassConfig* Find(const std::string& name) const;
  // "core, ordinary, default".
  std::string Names() const;
};

// Adds the default class unless it is configured. InvalidArgument: names that
// are empty or used twice, a floor above the class's maximum, promises that sum
// over the whole budget.
absl::Status Complete(ClassesConfig& config);

}  // namespace purser::sidecar
