// SPDX-License-Identifier: Apache-2.0
//
// One queue pair's request by names: "type=rc,send-wr=256", and the options of
// the same names.
#pragma once

#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cli/command_line.h"

namespace purser::cli {

// Reads `text` over what `source` has. InvalidArgument with the part that is at
// fault, or what contradicts it.
absl::Status ReadRequest(const std::string& text, WorkloadSource* source);

// "send-wr" where `text` names something that is `given` otherwise, too; else
// "".
std::string GivenTwice(const std::string& text,
                       absl::FunctionRef<bool(std::string_view)> given);

// What contradicts itself among those `given`, which are written with `dashes`
// before them; "" where nothing does.
std::string Contradiction(const std::string& type,
                          absl::FunctionRef<bool(std::string_view)> given,
                          const char* dashes);

}  // namespace purser::cli
