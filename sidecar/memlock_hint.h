// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace purser::sidecar {

// ENOMEM from verbs usually means RLIMIT_MEMLOCK, not memory: a sentence that
// says so, with the limit and the fix, for the end of an error message. "" when
// the limit does not bind this process.
std::string MemlockHint(const std::string& proc_root);

}  // namespace purser::sidecar
