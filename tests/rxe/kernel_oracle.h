// SPDX-License-Identifier: Apache-2.0
//
// What the kernel itself says that soft-RoCE's queues take, in two ways that
// know nothing of Purser.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace purser::rxe {

// Bytes and number of the vmalloc areas made by rxe_queue_init, each less its
// guard page. Root only.
struct QueueAreas {
  uint64_t bytes = 0;
  uint64_t count = 0;
  friend bool operator==(const QueueAreas&, const QueueAreas&) = default;
};

inline QueueAreas ReadQueueAreas() {
  constexpr uint64_t kGuardPage = 4096;
  QueueAreas areas;
  std::ifstream file("/proc/vmallocinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.find("rxe_queue_init") == std::string::npos) continue;
    uint64_t bytes = 0;
    if (std::sscanf(line.c_str(), "%*s %lu", &bytes) != 1) continue;
    areas.bytes += bytes - kGuardPage;
    ++areas.count;
  }
  return areas;
}

// Bytes that a process has mapped of the device: each ring once.
inline uint64_t ReadUverbsMappings(pid_t pid) {
  uint64_t bytes = 0;
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(file, line);) {
    if (line.find("/dev/infiniband/uverbs") == std::string::npos) continue;
    uint64_t from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &from, &to) == 2)
      bytes += to - from;
  }
  return bytes;
}

// How many objects the kernel has on rxe0, as `rdma resource` counts them: its
// own queue pairs among them.
struct KernelObjects {
  int pd = 0, cq = 0, qp = 0, mr = 0, srq = 0;
  friend bool operator==(const KernelObjects&, const KernelObjects&) = default;
};

inline KernelObjects ReadKernelObjects() {
  KernelObjects objects;
  FILE* pipe = popen("rdma resource show rxe0", "r");
  std::string line;
  for (int c; (c = fgetc(pipe)) != EOF;) line += static_cast<char>(c);
  pclose(pipe);
  for (const auto& [word, count] :
       {std::pair(" pd ", &objects.pd), std::pair(" cq ", &objects.cq),
        std::pair(" qp ", &objects.qp), std::pair(" mr ", &objects.mr),
        std::pair(" srq ", &objects.srq)})
    if (const size_t at = line.find(word); at != std::string::npos)
      *count = std::atoi(line.c_str() + at + std::string(word).size());
  return objects;
}

}  // namespace purser::rxe
