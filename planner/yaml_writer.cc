// SPDX-License-Identifier: Apache-2.0
#include "planner/yaml_writer.h"

#include <yaml.h>

#include <nlohmann/json.hpp>

namespace purser::planner {
namespace {

using Json = nlohmann::ordered_json;

// Calls fail where there is no memory alone; then the text ends early.
class Emitter {
 public:
  Emitter() {
    (void)yaml_emitter_initialize(&emitter_);
    yaml_emitter_set_output(&emitter_, Append, &text_);
    yaml_emitter_set_unicode(&emitter_, 1);
    yaml_emitter_set_width(&emitter_, -1);
  }
  ~Emitter() { yaml_emitter_delete(&emitter_); }
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  std::string Document(const Json& value) {
    (void)yaml_stream_start_event_initialize(&event_, YAML_UTF8_ENCODING);
    Emit();
    (void)yaml_document_start_event_initialize(&event_, nullptr, nullptr,
                                               nullptr, 1);
    Emit();
    Value(value);
    (void)yaml_document_end_event_initialize(&event_, 1);
    Emit();
    (void)yaml_stream_end_event_initialize(&event_);
    Emit();
    return std::move(text_);
  }

 private:
  static int Append(void* text, unsigned char* buffer, size_t size) {
    static_cast<std::string*>(text)->append(
        reinterpret_cast<const char*>(buffer), size);
    return 1;
  }

  void Emit() { (void)yaml_emitter_emit(&emitter_, &event_); }

  void Scalar(const std::string& text, yaml_scalar_style_t style) {
    (void)yaml_scalar_event_initialize(
        &event_, nullptr, nullptr,
        reinterpret_cast<const yaml_char_t*>(text.data()),
        static_cast<int>(text.size()), 1, 1, style);
    Emit();
  }

  void Value(const Json& value) {
    if (value.is_object()) {
      (void)yaml_mapping_start_event_initialize(
          &event_, nullptr, nullptr, 1,
          value.empty() ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE);
      Emit();
      for (const auto& [key, member] : value.items()) {
        Scalar(key, YAML_PLAIN_SCALAR_STYLE);
        Value(member);
      }
      (void)yaml_mapping_end_event_initialize(&event_);
      Emit();
    } else if (value.is_array()) {
      (void)yaml_sequence_start_event_initialize(
          &event_, nullptr, nullptr, 1,
          value.empty() ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE);
      Emit();
      for (const Json& item : value) Value(item);
      (void)yaml_sequence_end_event_initialize(&event_);
      Emit();
    } else if (value.is_string()) {
      Scalar(value.get<std::string>(), YAML_DOUBLE_QUOTED_SCALAR_STYLE);
    } else {
      Scalar(value.dump(), YAML_PLAIN_SCALAR_STYLE);
    }
  }

  std::string text_;
  yaml_emitter_t emitter_{};
  yaml_event_t event_{};
};

}  // namespace

std::string ToYaml(const Json& document) {
  return Emitter().Document(document);
}

}  // namespace purser::planner
