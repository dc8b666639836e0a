// SPDX-License-Identifier: Apache-2.0
//
// The first process of each pod of the test cluster: holds the pod's
// namespaces, reaps what is left to it, ends at SIGTERM. Linked statically, it
// is the whole image.
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int main(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  for (;;) {
    const int signal = sigwaitinfo(&signals, NULL);
    if (signal == SIGINT || signal == SIGTERM) return 0;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
  }
}
