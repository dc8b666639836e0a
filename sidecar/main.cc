// SPDX-License-Identifier: Apache-2.0
#include "rdma/verbs.h"
#include "sidecar/command.h"

int main(int argc, char** argv) {
  return purser::sidecar::RunCommand(argc, argv,
                                     purser::rdma::LibibverbsVerbs());
}
