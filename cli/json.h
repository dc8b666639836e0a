// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "google/protobuf/message.h"

namespace purser::cli {

// protobuf's JSON (names in lowerCamelCase, 64-bit numbers as strings), fields
// of value 0 too, and a line feed at the end. GIDs are text, "::ffff:10.0.0.1",
// where protobuf has base64.
std::string Json(const google::protobuf::Message& message);

}  // namespace purser::cli
