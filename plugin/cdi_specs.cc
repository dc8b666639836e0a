// SPDX-License-Identifier: Apache-2.0
#include "plugin/cdi_specs.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <prometheus/metric_family.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/file_descriptor.h"
#include "base/logging.h"
#include "base/status_macros.h"
#include "base/strict_yaml.h"
#include "cdi/v0/spec.pb.h"
#include "plugin/endpoint_name.h"
#include "spdlog/fmt/fmt.h"

namespace purser::plugin {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVersion = "0.5.0";
constexpr std::string_view kVendor = "purser.dev";
constexpr std::string_view kFileEnd = ".json";

// With the file's name around it, it is a file's name too.
constexpr size_t kLongestClass = 120;

// Of a kind: letters, digits, '-' and '_', with a letter first. A prefix has no
// '_', so the first one stands for the '/'; what else is lost of a resource's
// name a hash of it makes up for.
std::string Class(const std::string& resource) {
  std::string text = resource;
  bool lossy = false;
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ||
        c == '_')
      continue;
    lossy |= c != '/';
    c = '_';
  }
  if (std::isalpha(static_cast<unsigned char>(text.front())) == 0) {
    text = "r" + text;
    lossy = true;
  }
  if (!lossy && text.size() <= kLongestClass) return text;
  return fmt::format("{}-{:08x}", text.substr(0, kLongestClass),
                     ResourceHash(resource));
}

void AddNodes(const std::vector<std::string>& nodes,
              cdi::ContainerEdits* edits) {
  for (const std::string& path : nodes) {
    cdi::DeviceNode* node = edits->add_device_nodes();
    node->set_path(path);
    node->set_permissions("rw");
  }
}

absl::StatusOr<std::string> Json(const CdiSpec& spec) {
  cdi::Spec message;
  message.set_cdi_version(kVersion);
  message.set_kind(CdiKind(spec.resource));
  for (const CdiDevice& device : spec.devices) {
    cdi::Device* out = message.add_devices();
    out->set_name(device.name);
    AddNodes(device.nodes, out->mutable_container_edits());
  }
  if (!spec.shared_nodes.empty())
    AddNodes(spec.shared_nodes, message.mutable_container_edits());
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  std::string text;
  const auto status =
      google::protobuf::util::MessageToJsonString(message, &text, options);
  if (status.ok()) return text;
  return absl::InternalError("CDI specification of " + spec.resource + ": " +
                             status.ToString());
}

absl::Status WriteAll(const std::string& path, std::string_view text) {
  const base::FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
           0644));
  if (!file.valid()) return absl::ErrnoToStatus(errno, "make " + path);
  while (!text.empty()) {
    const ssize_t written = write(file.get(), text.data(), text.size());
    if (written < 0) return absl::ErrnoToStatus(errno, "write " + path);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

std::string CdiKind(const std::string& resource) {
  return fmt::format("{}/{}", kVendor, Class(resource));
}

bool IsCdiName(const std::string& name) {
  auto alnum = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
  };
  return !name.empty() && alnum(name.front()) && alnum(name.back()) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return alnum(c) || c == '_' || c == '-' || c == '.' || c == ':';
         });
}

CdiSpecs::CdiSpecs(std::string directory, const std::string& installation,
                   AskHeldUnits held)
    : directory_(std::move(directory)),
      begin_(fmt::format("{}/{}-{:08x}-", directory_, kVendor,
                         InstallationHash(installation))),
      held_(std::move(held)) {}

std::string CdiSpecs::Path(const std::string& resource) const {
  return fmt::format("{}{}{}", begin_, Class(resource), kFileEnd);
}

void CdiSpecs::Refresh(const std::vector<CdiSpec>& specs) {
  std::map<std::string, bool> in_place;
  std::set<std::string> files;
  absl::Status fault;
  for (const CdiSpec& spec : specs) {
    if (spec.devices.empty()) continue;
    const absl::Status status = Write(spec);
    in_place[spec.resource] = status.ok();
    if (status.ok()) {
      files.insert(Path(spec.resource));
    } else {
      fault = status;
    }
  }
  if (!fault.ok() && fault != last_error_) {
    base::LogError(
        "cannot write a CDI specification: containers get device nodes from "
        "the kubelet instead",
        {{"error", fault}});
  }
  last_error_ = fault;
  {
    std::lock_guard lock(mutex_);
    in_place_ = in_place;
  }
  RemoveOthers(files);
}

absl::Status CdiSpecs::Write(const CdiSpec& spec) {
  const std::string path = Path(spec.resource);
  PURSER_ASSIGN_OR_RETURN(std::optional<FileId> there, IdentifyFile(path));
  const auto before = written_.find(spec.resource);
  const bool is_there =
      there && before != written_.end() && before->second.spec == spec;
  if (is_there && there == before->second.file) return absl::OkStatus();
  PURSER_ASSIGN_OR_RETURN(const std::string text, Json(spec));
  if (is_there && base::ReadFile(path).value_or("") == text) {
    before->second.file.reset();
    return absl::OkStatus();
  }
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) return absl::ErrnoToStatus(error.value(), "make " + directory_);
  // Runtimes read files that end in .json or .yaml.
  const std::string temporary = fmt::format("{}.{}", path, getpid());
  unlink(temporary.c_str());
  absl::Status status = WriteAll(temporary, text);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = absl::ErrnoToStatus(errno, "rename " + temporary);
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  PURSER_ASSIGN_OR_RETURN(there, IdentifyFile(path));
  if (!there) return absl::UnavailableError(path + " was removed");
  written_[spec.resource] = {spec, there};
  base::LogInfo("CDI specification written",
                {{"resource", spec.resource},
                 {"file", path},
                 {"devices", spec.devices.size()}});
  return absl::OkStatus();
}

std::optional<std::set<std::string>> CdiSpecs::HeldFiles() const {
  if (!held_) return std::nullopt;
  const absl::StatusOr<HeldUnits> held = held_();
  if (!held.ok()) return std::nullopt;
  std::set<std::string> files;
  for (const auto& [resource, ids] : *held)
    if (!resource.empty() && !ids.empty()) files.insert(Path(resource));
  return files;
}

// Of resources that are no more, and of processes that were killed.
void CdiSpecs::RemoveOthers(const std::set<std::string>& wanted) {
  std::set<std::string> others;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory_, ignored)) {
    const std::string path = entry.path().string();
    if (path.starts_with(begin_) && path.ends_with(kFileEnd) &&
        !wanted.contains(path))
      others.insert(path);
  }
  // Without any nobody is asked.
  if (others.empty()) return;
  std::optional<std::set<std::string>> kept = HeldFiles();
  if (!kept) {
    kept.emplace();
    for (const auto& [resource, written] : written_)
      kept->insert(Path(resource));
  }
  for (const std::string& path : others) {
    if (!kept->contains(path) && unlink(path.c_str()) == 0)
      base::LogInfo("CDI specification removed", {{"file", path}});
  }
  std::erase_if(written_, [&](const auto& entry) {
    const std::string path = Path(entry.first);
    return others.contains(path) && !kept->contains(path);
  });
}

void CdiSpecs::Remove() {
  {
    std::lock_guard lock(mutex_);
    in_place_.clear();
  }
  if (written_.empty()) return;
  const std::set<std::string> kept =
      HeldFiles().value_or(std::set<std::string>());
  for (const auto& [resource, written] : written_) {
    const std::string path = Path(resource);
    const absl::StatusOr<std::optional<FileId>> there = IdentifyFile(path);
    if (written.file && !kept.contains(path) && there.ok() &&
        *there == written.file)
      unlink(path.c_str());
  }
  written_.clear();
}

bool CdiSpecs::InPlace(const std::string& resource) const {
  std::lock_guard lock(mutex_);
  const auto found = in_place_.find(resource);
  return found != in_place_.end() && found->second;
}

std::vector<prometheus::MetricFamily> CdiSpecs::Collect() const {
  prometheus::MetricFamily written{
      "purser_device_plugin_cdi_in_place",
      "1 if the resource's CDI specification is written and containers get "
      "names; 0 if it cannot be written and they get device nodes.",
      prometheus::MetricType::Gauge,
      {}};
  std::lock_guard lock(mutex_);
  for (const auto& [resource, in_place] : in_place_) {
    prometheus::ClientMetric& metric = written.metric.emplace_back();
    metric.label = {{"resource", resource}};
    metric.gauge.value = in_place ? 1 : 0;
  }
  return {std::move(written)};
}

}  // namespace purser::plugin
