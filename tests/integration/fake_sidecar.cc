// SPDX-License-Identifier: Apache-2.0
//
// purser-sidecar on the verbs fake, for tests of the process that need no RDMA
// device: it has one device, rxe0. Exit code 70: objects were left over.
#include <cstdio>

#include "sidecar/command.h"
#include "tests/fakes/fake_verbs.h"

int main(int argc, char** argv) {
  purser::fakes::FakeVerbs verbs;
  verbs.AddDevice(purser::fakes::RxeDevice("rxe0"));
  const int code = purser::sidecar::RunCommand(argc, argv, verbs);
  for (const auto& [object, count] : verbs.LiveObjects()) {
    if (count == 0) continue;
    std::fprintf(stderr, "left over: %d %s\n", count, object.c_str());
    return 70;
  }
  return code;
}
