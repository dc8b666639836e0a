// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

#include <string_view>

#include "absl/strings/escaping.h"
#include "cli/names.h"
#include "google/protobuf/util/json_util.h"

namespace purser::cli {
namespace {

// Quotes within JSON strings are escaped, so this is always a field's name.
constexpr std::string_view kGidField = "\"gid\": \"";

void MakeGidsReadable(std::string& json) {
  for (size_t at = 0; (at = json.find(kGidField, at)) != std::string::npos;) {
    at += kGidField.size();
    const size_t length = json.find('"', at) - at;
    std::string gid;
    if (length == 0 || !absl::Base64Unescape(json.substr(at, length), &gid))
      continue;
    json.replace(at, length, GidText(gid));
  }
}

}  // namespace

std::string Json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  std::string json;
  // Fails for an Any of unknown type alone, and these messages have none.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  MakeGidsReadable(json);
  return json;
}

}  // namespace purser::cli
