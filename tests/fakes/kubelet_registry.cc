// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/kubelet_registry.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "pluginregistration/v1/api.grpc.pb.h"
#include "tests/fakes/kubelet_endpoint.h"

namespace purser::fakes {
namespace {

namespace api = pluginregistration;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstBackOff{500};

absl::Status Notify(api::Registration::Stub& stub, const absl::Status& status) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(5));
  api::RegistrationStatus request;
  request.set_plugin_registered(status.ok());
  request.set_error(std::string(status.message()));
  api::RegistrationStatusResponse response;
  return FromGrpc(stub.NotifyRegistrationStatus(&context, request, &response));
}

}  // namespace

KubeletRegistry::KubeletRegistry(std::filesystem::path directory,
                                 std::chrono::milliseconds interval,
                                 bool device_plugins, Callbacks callbacks)
    : directory_(std::move(directory)),
      interval_(interval),
      device_plugins_(device_plugins),
      callbacks_(std::move(callbacks)),
      thread_([this] { Run(); }) {}

KubeletRegistry::~KubeletRegistry() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void KubeletRegistry::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    Look();
    lock.lock();
    stopped_.wait_for(lock, interval_, [&] { return stop_; });
  }
}

void KubeletRegistry::Look() {
  std::map<std::string, ino_t> there;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory_, error)) {
    struct stat info {};
    const std::string path = entry.path().string();
    if (entry.path().filename().string().starts_with('.') ||
        stat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode))
      continue;
    there[path] = info.st_ino;
  }
  for (auto at = found_.begin(); at != found_.end();) {
    const auto still = there.find(at->first);
    if (still != there.end() && still->second == at->second.inode) {
      ++at;
      continue;
    }
    if (!at->second.name.empty())
      callbacks_.disconnect(at->second.name, at->first);
    at = found_.erase(at);
  }
  for (const auto& [path, inode] : there) {
    Found& found = found_[path];
    found.inode = inode;
    if (!found.name.empty() || steady_clock::now() < found.next) continue;
    std::string name;
    if (Register(path, &name).ok()) {
      found.name = name;
    } else {
      found.next =
          steady_clock::now() + kFirstBackOff * (1 << found.failures++);
    }
  }
}

absl::Status KubeletRegistry::Register(const std::string& path,
                                       std::string* name) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = api::Registration::NewStub(grpc::CreateCustomChannel(
      "unix:" + path, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(1));
  api::PluginInfo info;
  const grpc::Status asked = stub->GetInfo(&context, api::InfoRequest(), &info);
  if (!asked.ok()) return FromGrpc(asked);
  *name = info.name();
  absl::Status status;
  if (info.type() != "DevicePlugin" || !device_plugins_) {
    status = absl::UnknownError("no handler registered for plugin type: " +
                                info.type());
  } else if (std::count(info.supported_versions().begin(),
                        info.supported_versions().end(), "v1beta1") == 0) {
    status = absl::UnknownError("plugin validation failed");
  } else {
    status = callbacks_.connect(
        info.name(), info.endpoint().empty() ? path : info.endpoint());
  }
  const absl::Status told = Notify(*stub, status);
  return status.ok() ? told : status;
}

}  // namespace purser::fakes
