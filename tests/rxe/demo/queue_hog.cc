// SPDX-License-Identifier: Apache-2.0
//
// The other side of the contrast: a program that opens the device itself and
// creates queue pairs, as any verbs application may. Prints one line per 20
// queue pairs and holds them until it is killed or told to end.
//   queue_hog DEVICE COUNT MAX_SEND_WR MAX_SEND_SGE [PAUSE_MS]
// PAUSE_MS: after each queue pair, so that one can watch.
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

void Pause(int milliseconds) {
  const timespec time{.tv_sec = milliseconds / 1000,
                      .tv_nsec = milliseconds % 1000 * 1'000'000L};
  nanosleep(&time, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::fprintf(stderr,
                 "usage: %s DEVICE COUNT MAX_SEND_WR MAX_SEND_SGE [PAUSE_MS]\n",
                 argv[0]);
    return 2;
  }
  const int pause_ms = argc == 6 ? std::atoi(argv[5]) : 0;
  const int count = std::atoi(argv[2]);
  int device_count = 0;
  ibv_device** devices = ibv_get_device_list(&device_count);
  ibv_context* context = nullptr;
  for (int i = 0; i < device_count; ++i) {
    if (std::strcmp(ibv_get_device_name(devices[i]), argv[1]) == 0) {
      context = ibv_open_device(devices[i]);
    }
  }
  if (context == nullptr) {
    std::fprintf(stderr, "%s: cannot open the device %s\n", argv[0], argv[1]);
    return 1;
  }
  ibv_pd* pd = ibv_alloc_pd(context);
  ibv_cq* cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
  if (pd == nullptr || cq == nullptr) return 1;
  for (int i = 1; i <= count; ++i) {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap.max_send_wr = static_cast<uint32_t>(std::atoi(argv[3]));
    attr.cap.max_send_sge = static_cast<uint32_t>(std::atoi(argv[4]));
    attr.cap.max_recv_wr = attr.cap.max_recv_sge = 1;
    if (ibv_create_qp(pd, &attr) == nullptr) {
      std::printf("queue pair %d: %s\n", i, std::strerror(errno));
      std::fflush(stdout);
      break;
    }
    if (i % 20 == 0) {
      std::printf("%d\n", i);
      std::fflush(stdout);
    }
    Pause(pause_ms);
  }
  pause();
  return 0;
}
