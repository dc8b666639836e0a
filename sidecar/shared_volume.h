// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace purser::sidecar {

// What may be wrong with the volume that the pod's containers share, found
// before anything is opened: it is not there, may not be written, is full, or
// another sidecar serves in it. Says what to change in the pod's spec. A stale
// socket is removed. InvalidArgument for a path that no socket can have, else
// FailedPrecondition, AlreadyExists or an errno's code.
absl::Status PrepareSharedVolume(const std::string& directory,
                                 const std::string& socket);

}  // namespace purser::sidecar
