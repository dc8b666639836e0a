// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"

namespace purser::fakes {

// The fake kubelet's eye on plugins_registry: once an interval it calls the
// sockets that are new there, and lets go of those that went. What failed it
// tries again ever more slowly, while the socket is the same. One thread.
class KubeletRegistry {
 public:
  struct Callbacks {
    std::function<absl::Status(const std::string& name,
                               const std::string& path)>
        connect;
    std::function<void(const std::string& name, const std::string& path)>
        disconnect;
  };

  KubeletRegistry(std::filesystem::path directory,
                  std::chrono::milliseconds interval, bool device_plugins,
                  Callbacks callbacks);
  ~KubeletRegistry();

 private:
  struct Found {
    ino_t inode = 0;
    std::string name;  // of the resource; "": not registered
    int failures = 0;
    std::chrono::steady_clock::time_point next;
  };

  void Run();
  void Look();
  absl::Status Register(const std::string& path, std::string* name);

  const std::filesystem::path directory_;
  const std::chrono::milliseconds interval_;
  const bool device_plugins_;
  const Callbacks callbacks_;
  std::map<std::string, Found> found_;  // by path; the thread's

  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace purser::fakes
