// SPDX-License-Identifier: Apache-2.0
//
// Strict reading of YAML 1.2, and so of JSON (libyaml): every fault is
// collected with line and column, unknown and repeated keys are faults with a
// suggestion, and nothing throws. Aliases work; merge keys (<<), tags other
// than the core ones, further documents and more than 64 levels are faults. One
// thread. A document is read into plain structs:
//
//   StrictYaml yaml("config.yaml", text);
//   YamlMap root = yaml.Root();
//   root.String("logLevel", &config.log_level);
//   root.Uint("port", 1, 65535, &config.port);
//   for (YamlMap pool : root.Maps("pools")) { … }
//   PURSER_RETURN_IF_ERROR(yaml.Finish());   // all faults at once
//
// In the dialect kGoJson it reads JSON as Go's encoding/json does, for files
// that were made for programs in Go: keys in any case, unknown and repeated
// ones are warnings (of a repeated one the last counts, maps are merged), a
// null in a list is an empty value, and strings must be strings.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/yaml_mark.h"

namespace purser::base {

// Of a configuration file: 1 MiB.
inline constexpr size_t kLongestConfig = 1 << 20;

struct YamlDocument;

enum class YamlDialect { kStrictYaml, kGoJson };

// One mapping of the document. Each getter names a key that is known: absent
// (or null) leaves the default untouched; a wrong type or range is a fault.
// Returns whether the key was there and good. Keys never asked for are faults
// at Finish(). Copies stand for the same mapping.
class YamlMap {
 public:
  bool Has(std::string_view key);  // and is not null
  // Any scalar, as it is written; no quotes are needed.
  bool String(std::string_view key, std::string* out);
  bool Bool(std::string_view key, bool* out);
  bool Uint(std::string_view key, uint64_t min, uint64_t max, uint64_t* out);
  bool Fraction(std::string_view key, double* out);  // 0 < x <= 1, or "50%"
  bool Bytes(std::string_view key, uint64_t* out);   // Kubernetes quantity
  // "60s", "500ms", "1h30m", a bare number is seconds; 0 to 8760h.
  bool Duration(std::string_view key, std::chrono::milliseconds* out);
  // The text of a scalar, whatever it is; "" where there is none. No fault.
  std::string Text(std::string_view key);
  // A list of scalars; replaces `out` unless one is bad.
  bool Strings(std::string_view key, std::vector<std::string>* out);
  // A map of maps of strings, whose keys are free. Replaces `out` unless one is
  // bad. Of a repeated key the last counts. For JSON: aliases would multiply.
  using StringMaps = std::map<std::string, std::map<std::string, std::string>>;
  bool MapsOfStrings(std::string_view key, StringMaps* out);
  // Absent: an empty map. Not a map: a fault, and an empty map whose own faults
  // are not told.
  YamlMap Map(std::string_view key);
  // A list of maps; absent: empty. Items that are no maps are faults and left
  // out.
  std::vector<YamlMap> Maps(std::string_view key);
  // A map stands for a list of one.
  std::vector<YamlMap> MapOrMaps(std::string_view key);
  // From SoftenFaults() to HardenFaults() faults of this map are warnings, and
  // so are those of maps got from it meanwhile.
  void SoftenFaults();
  void HardenFaults();
  bool has_softened_faults() const;
  // A fault at the key's value (or, if absent, at this map):
  // "config.yaml:3:5: pools[0].rdmaHcaMax: must …".
  void Fault(std::string_view key, std::string_view message);
  void Warn(std::string_view key, std::string_view message);
  std::string path() const;  // "pools[0]"
  // Where the map stands, and where a fault of `key` would be.
  YamlMark Place() const;
  YamlMark Place(std::string_view key);

 private:
  friend class StrictYaml;
  struct State;
  explicit YamlMap(std::shared_ptr<State> state);
  static YamlMap Of(std::shared_ptr<YamlDocument> document, size_t index);
  std::shared_ptr<State> state_;
};

class StrictYaml {
 public:
  // `name` is what messages call the document. Parsing faults (syntax, a root
  // that is no map) show at Finish(); after a fault of syntax no other is told.
  // An empty document is an empty map. More than `longest` bytes are a fault.
  StrictYaml(std::string name, std::string_view text,
             size_t longest = kLongestConfig);
  StrictYaml(std::string name, std::string_view text, YamlDialect dialect);
  ~StrictYaml();
  YamlMap Root();
  // InvalidArgument with all faults (the first 100), one a line, in document
  // order: "NAME:LINE:COLUMN: path: what is wrong".
  absl::Status Finish();
  // In the same form and order. Complete once all keys were asked for.
  std::vector<std::string> Warnings() const;

 private:
  std::shared_ptr<YamlDocument> document_;
};

enum class FileKind {
  kRegular,
  kAny,  // a pipe or a terminal too, whose end is waited for
};

// Reads a whole file. NotFound, PermissionDenied, InvalidArgument (too long, of
// another kind), … with the path and what to do.
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     size_t max_bytes = kLongestConfig,
                                     FileKind kind = FileKind::kRegular);

}  // namespace purser::base
