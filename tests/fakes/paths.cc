// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/paths.h"

namespace purser::fakes {

std::string SourcePath(const std::string& path) {
  return SOURCE_DIRECTORY "/" + path;
}

std::string BuiltPath(const std::string& path) {
  return BUILD_DIRECTORY "/" + path;
}

}  // namespace purser::fakes
