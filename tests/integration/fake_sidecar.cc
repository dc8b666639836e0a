// SPDX-License-Identifier: Apache-2.0
//
// purser-sidecar on the verbs fake, for tests of the process that need no RDMA
// device: it has one device, rxe0. Exit code 70: objects were left over.
// FAKE_SLOW_CALL: a verbs call without ibv_ that takes 500 ms.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "sidecar/command.h"
#include "tests/fakes/fake_verbs.h"

int main(int argc, char** argv) {
  purser::fakes::FakeVerbs verbs;
  verbs.AddDevice(purser::fakes::RxeDevice("rxe0"));
  if (const char* slow = std::getenv("FAKE_SLOW_CALL"))
    verbs.Observe([slow](std::string_view call) {
      if (call == slow)
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    });
  const int code = purser::sidecar::RunCommand(argc, argv, verbs);
  for (const auto& [object, count] : verbs.LiveObjects()) {
    if (count == 0) continue;
    std::fprintf(stderr, "left over: %d %s\n", count, object.c_str());
    return 70;
  }
  return code;
}
