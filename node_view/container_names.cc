// SPDX-License-Identifier: Apache-2.0
#include "node_view/container_names.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

namespace purser::node_view {
namespace {

constexpr std::string_view kSuffix = ".log";
// Fewer digits of an id would not tell containers apart.
constexpr size_t kLeastIdDigits = 12;

bool IsId(std::string_view text) {
  return text.size() >= kLeastIdDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::optional<NamedContainer> ParseLogName(std::string_view file_name) {
  if (!file_name.ends_with(kSuffix)) return std::nullopt;
  file_name.remove_suffix(kSuffix.size());
  // Kubernetes' names have no '_', and ids have no '-'.
  const size_t first = file_name.find('_');
  const size_t second =
      file_name.find('_', std::min(first, file_name.size() - 1) + 1);
  const size_t dash = file_name.rfind('-');
  if (first == std::string_view::npos || second == std::string_view::npos ||
      dash == std::string_view::npos || dash < second)
    return std::nullopt;
  NamedContainer named{.id = std::string(file_name.substr(dash + 1)),
                       .name = {.namespace_name = std::string(file_name.substr(
                                    first + 1, second - first - 1)),
                                .pod = std::string(file_name.substr(0, first)),
                                .container = std::string(file_name.substr(
                                    second + 1, dash - second - 1))}};
  if (!IsId(named.id) || named.name.pod.empty() ||
      named.name.namespace_name.empty() || named.name.container.empty())
    return std::nullopt;
  return named;
}

absl::StatusOr<ContainerNames> ReadContainerNames(
    const std::filesystem::path& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(directory.c_str()),
                                                    closedir);
  if (entries == nullptr)
    return absl::ErrnoToStatus(errno, "list " + directory.string());
  ContainerNames names;
  while (const dirent* entry = readdir(entries.get())) {
    if (std::optional<NamedContainer> named = ParseLogName(entry->d_name))
      names.insert_or_assign(std::move(named->id), std::move(named->name));
  }
  return names;
}

const ContainerName* FindContainer(const ContainerNames& names,
                                   const std::string& id) {
  // A cut id is the last that is not after the whole one.
  auto after = names.upper_bound(id);
  if (after == names.begin()) return nullptr;
  const auto& [key, name] = *std::prev(after);
  return id.starts_with(key) ? &name : nullptr;
}

}  // namespace purser::node_view
