// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/kubelet_control.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <sstream>

#include "spdlog/fmt/fmt.h"

namespace purser::fakes {
namespace {

constexpr const char* kOk = "ok\n";
constexpr const char* kError = "error\n";

std::string ControlPath(const std::filesystem::path& root_dir) {
  return (root_dir / "fake-kubelet.sock").string();
}

sockaddr_un Address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  return text;
}

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

// -1: nobody answers in time.
int ConnectTo(const std::string& path, std::chrono::milliseconds timeout) {
  const sockaddr_un address = Address(path);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  do {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address),
                sizeof address) == 0)
      return fd;
    close(fd);
    usleep(20'000);
  } while (std::chrono::steady_clock::now() < deadline);
  return -1;
}

std::string Join(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace

absl::StatusOr<Requests> ParseRequests(const std::string& text) {
  Requests requests;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const size_t equals = item.find('=');
    int units = 0;
    const char* end = item.data() + item.size();
    if (equals == std::string::npos ||
        std::from_chars(item.data() + equals + 1, end, units).ptr != end ||
        units <= 0) {
      return absl::InvalidArgumentError(
          "\"" + item + "\" is not RESOURCE=UNITS, such as rdma/hca=1");
    }
    requests.emplace_back(item.substr(0, equals), units);
  }
  return requests;
}

std::string AllocationLines(const ContainerAllocation& allocation) {
  std::string lines;
  for (const auto& [key, value] : allocation.envs)
    lines += fmt::format("{}='{}'\n", key, value);
  std::vector<std::string> ids, devices, mounts;
  for (const auto& [resource, units] : allocation.ids)
    ids.push_back(fmt::format("{}:{}", resource, units.size()));
  for (const auto& device : allocation.devices)
    devices.push_back(device.container_path() + ":" + device.permissions());
  for (const auto& mount : allocation.mounts) {
    mounts.push_back(mount.host_path() + ":" + mount.container_path() +
                     (mount.read_only() ? ":ro" : ":rw"));
  }
  lines += fmt::format("ALLOCATED_UNITS='{}'\n", Join(ids));
  lines += fmt::format("ALLOCATED_DEVICES='{}'\n", Join(devices));
  lines += fmt::format("ALLOCATED_MOUNTS='{}'\n", Join(mounts));
  return lines;
}

absl::StatusOr<std::string> Admit(Kubelet& kubelet,
                                  const AdmitOptions& options) {
  const auto deadline = std::chrono::steady_clock::now() + options.timeout;
  for (const std::string& resource : options.wait_for) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (!kubelet.WaitForAllocatable(resource, left)) {
      return absl::DeadlineExceededError(
          fmt::format("no plugin offers {} after {} ms", resource,
                      options.timeout.count()));
    }
  }
  if (options.requests.empty()) return "";
  const absl::StatusOr<ContainerAllocation> allocation =
      kubelet.Allocate(options.container, options.requests);
  if (!allocation.ok()) return allocation.status();
  return AllocationLines(*allocation);
}

KubeletControl::KubeletControl(Kubelet& kubelet,
                               const std::filesystem::path& root_dir)
    : kubelet_(kubelet), path_(ControlPath(root_dir)) {
  unlink(path_.c_str());
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = Address(path_);
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address),
           sizeof address) != 0 ||
      listen(listener_, 16) != 0) {
    fmt::print(stderr, "fake_kubelet: no control socket {}\n", path_);
  }
  thread_ = std::thread([this] { Run(); });
}

KubeletControl::~KubeletControl() {
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  close(listener_);
  unlink(path_.c_str());
}

void KubeletControl::Run() {
  for (int fd; (fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;
       close(fd)) {
    WriteAll(fd, Answer(ReadAll(fd)));
  }
}

// The request: container, time-out in ms, resources to wait for, requests; one
// a line.
std::string KubeletControl::Answer(const std::string& request) {
  std::istringstream in(request);
  AdmitOptions options;
  std::string timeout, wait_for, requests;
  std::getline(in, options.container);
  std::getline(in, timeout);
  std::getline(in, wait_for);
  std::getline(in, requests);
  options.timeout = std::chrono::milliseconds(std::atoi(timeout.c_str()));
  std::istringstream names(wait_for);
  for (std::string name; std::getline(names, name, ',');)
    options.wait_for.push_back(name);
  absl::StatusOr<Requests> parsed = ParseRequests(requests);
  if (!parsed.ok()) return kError + std::string(parsed.status().message());
  options.requests = *std::move(parsed);
  const absl::StatusOr<std::string> lines = Admit(kubelet_, options);
  return lines.ok() ? kOk + *lines : kError + lines.status().ToString();
}

absl::StatusOr<std::string> AskForAdmission(
    const std::filesystem::path& root_dir, const AdmitOptions& options) {
  const int fd = ConnectTo(ControlPath(root_dir), options.timeout);
  if (fd < 0) {
    return absl::NotFoundError(fmt::format(
        "no fake kubelet runs on {}; start one: fake_kubelet --root {} &",
        root_dir.string(), root_dir.string()));
  }
  std::vector<std::string> requests;
  for (const auto& [resource, units] : options.requests)
    requests.push_back(fmt::format("{}={}", resource, units));
  WriteAll(fd, fmt::format("{}\n{}\n{}\n{}\n", options.container,
                           options.timeout.count(), Join(options.wait_for),
                           Join(requests)));
  shutdown(fd, SHUT_WR);
  const std::string answer = ReadAll(fd);
  close(fd);
  if (answer.rfind(kOk, 0) == 0)
    return answer.substr(std::string_view(kOk).size());
  if (answer.rfind(kError, 0) == 0)
    return absl::UnknownError(answer.substr(std::string_view(kError).size()));
  return absl::UnavailableError("the fake kubelet hung up");
}

}  // namespace purser::fakes
