// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "plugin/config/config.h"

namespace purser::plugin {

// The names that pools have taken: their resources' and their variables'.
class PoolNames {
 public:
  // What is wrong with the pool's resource name beside those before it; "" if
  // nothing.
  std::string Take(const PoolConfig& pool);
  // The same for the variables that containers find, which two resources may
  // share by accident ("a-b" and "a_b"); all of them.
  std::string TakeVariables(const PoolConfig& pool);

 private:
  std::set<std::string> resources_;
  std::map<std::string, std::string> variables_;
};

}  // namespace purser::plugin
