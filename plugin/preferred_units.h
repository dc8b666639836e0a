// SPDX-License-Identifier: Apache-2.0
//
// Which of a resource's free units suit one container best. The kubelet takes
// it as a hint, after it has narrowed the units down by NUMA node where it has
// a topology manager.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plugin/allocate_options.h"

namespace purser::plugin {

// The units of one HCA: shares of a device, or devices of a physical function.
struct HcaUnits {
  int numa_node = -1;  // -1: not known
  std::vector<std::string> must_include;
  std::vector<std::string> available;  // without those; best first
};

// Whether a container's units shall be of one HCA or of several.
enum class Company { kTogether, kApart };

// `size` units, those that must be included first; fewer where there are not
// so many. Of one NUMA node where that is possible. Together: of as few HCAs as
// possible; which one, says `placement`. Apart: of as many as possible.
std::vector<std::string> PreferUnits(std::vector<HcaUnits> hcas, size_t size,
                                     Placement placement, Company company);

}  // namespace purser::plugin
