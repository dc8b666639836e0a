// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <algorithm>
#include <cstdint>

#include "base/quantity.h"
#include "spdlog/fmt/fmt.h"

namespace purser::cli {
namespace {

constexpr double kMaxSeconds = 86'400;

}  // namespace

CLI::Validator Bytes(uint64_t min, uint64_t max) {
  return CLI::Validator(
      [min, max](std::string& text) -> std::string {
        // As this tool prints it, beside Kubernetes' way.
        const bool full = text.ends_with("iB");
        auto bytes =
            base::ParseQuantity(text.substr(0, text.size() - (full ? 1 : 0)));
        if (!bytes.ok()) return std::string(bytes.status().message());
        if (*bytes < min || *bytes > max)
          return fmt::format("{} is not within {} and {} bytes", text, min,
                             max);
        text = std::to_string(*bytes);
        return {};
      },
      "");
}

CLI::Validator OneOf(std::vector<std::string> names) {
  return CLI::Validator(
      [names](std::string& text) -> std::string {
        if (std::find(names.begin(), names.end(), text) != names.end())
          return {};
        return fmt::format("'{}' is none of {}", text, fmt::join(names, ", "));
      },
      "");
}

void AddSeconds(CLI::App& app, const std::string& name,
                std::chrono::milliseconds& target, const std::string& help,
                double min) {
  app.add_option_function<double>(
         name,
         [&target](double seconds) {
           target = std::chrono::milliseconds(
               static_cast<int64_t>(seconds * 1000 + 0.5));
         },
         fmt::format("{} (default {})", help, target.count() / 1000))
      ->check(CLI::Range(min, kMaxSeconds).description(""))
      ->type_name("SECONDS");
}

void AddOutput(CLI::App& app, Output& output,
               const std::vector<std::string>& formats) {
  app.add_option_function<std::string>(
         "-o,--output",
         [&output](const std::string& name) {
           output = name == "json"   ? Output::kJson
                    : name == "yaml" ? Output::kYaml
                                     : Output::kTable;
         },
         fmt::format("{}; default {}", fmt::join(formats, ", "), formats[0]))
      ->check(OneOf(formats))
      ->type_name("FORMAT");
}

CLI::Option* AddBytes(CLI::App& app, const std::string& name,
                      std::optional<uint64_t>& bytes, const std::string& help) {
  return app.add_option(name, bytes, help)
      ->transform(Bytes(1, INT64_MAX))
      ->type_name("BYTES");
}

}  // namespace purser::cli
