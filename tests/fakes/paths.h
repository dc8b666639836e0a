// SPDX-License-Identifier: Apache-2.0
//
// Where the tests find files of the project and programs of the build. In one
// source file, since absolute paths in the others' definitions would compile
// them anew in each clone.
#pragma once

#include <string>

namespace purser::fakes {

// "docs/examples/bulk-mover.yaml"
std::string SourcePath(const std::string& path);
// "sidecar/purser-sidecar"
std::string BuiltPath(const std::string& path);

}  // namespace purser::fakes
