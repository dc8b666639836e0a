// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "rdma/verbs.h"
#include "sidecar/command.h"

int main(int argc, char** argv) {
  // So that libibverbs frees what it allocated for the objects of a device that
  // was unplugged or reset, whose kernel part is gone: it would leak, and the
  // container pays for it (rdma-core: Documentation/libibverbs.md).
  setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 0);
  return purser::sidecar::RunCommand(argc, argv,
                                     purser::rdma::LibibverbsVerbs());
}
