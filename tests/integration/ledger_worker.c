/* SPDX-License-Identifier: Apache-2.0
 *
 * A process of a pod that uses the ledger by its C header, in C and with libc
 * alone. `ledger_worker FILE COMMAND...`; each command in turn:
 *   reserve N      N bytes of each kind and a queue pair; ends with 3 if
 * refused cycle N SEED   N times reserve, commit, release, of random amounts
 *   hold           says "holding" and waits to be killed
 *   fork           goes on in a child, which says its pid; the parent waits to
 *                  be killed
 *   fork-detach    a child detaches what it inherited, and ends
 *   exec           becomes another program, which says its pid and waits
 *   spawn          starts such a program beside itself
 *   detach
 * It ends with 0, or with 1 and a message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ledger/purser_ledger.h"

static struct purser_ledger ledger;

static void fail(const char* what, int error) {
  fprintf(stderr, "%s: %s\n", what, strerror(error));
  exit(1);
}

static void say(const char* what) {
  printf("%s %d\n", what, (int)getpid());
  fflush(stdout);
}

static void wait_for_the_end(void) {
  for (;;) pause();
}

static uint64_t next(uint64_t* seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 40;
}

static struct purser_ledger_charge some(uint64_t* seed) {
  struct purser_ledger_charge charge;
  charge.container_bytes = next(seed) % 1000;
  charge.node_bytes = next(seed) % 1000;
  charge.queue_pairs = 1;
  return charge;
}

static void cycle(long rounds, uint64_t seed) {
  for (long i = 0; i < rounds; ++i) {
    struct purser_ledger_charge charge = some(&seed);
    int error = purser_ledger_reserve(&ledger, &charge, NULL);
    if (error == EDQUOT) continue;
    if (error) fail("reserve", error);
    const struct purser_ledger_charge actual = some(&seed);
    error = purser_ledger_commit(&ledger, &charge, &actual, NULL);
    if (!error)
      charge = actual;
    else if (error != EDQUOT)
      fail("commit", error);
    error = purser_ledger_release(&ledger, &charge);
    if (error) fail("release", error);
  }
}

static void reserve(uint64_t bytes) {
  const struct purser_ledger_charge charge = {bytes, bytes, 1};
  const int error = purser_ledger_reserve(&ledger, &charge, NULL);
  if (error == EDQUOT) exit(3);
  if (error) fail("reserve", error);
}

static void become(const char* self) {
  execl(self, self, (char*)NULL);
  fail("exec", errno);
}

static void spawn(const char* self) {
  const pid_t pid = fork();
  if (pid < 0) fail("fork", errno);
  if (pid == 0) become(self);
}

static void fork_detach(void) {
  const pid_t pid = fork();
  if (pid < 0) fail("fork", errno);
  if (pid == 0) {
    purser_ledger_detach(&ledger);
    _exit(0);
  }
  waitpid(pid, NULL, 0);
}

static void fork_on(void) {
  const pid_t pid = fork();
  if (pid < 0) fail("fork", errno);
  if (pid > 0) wait_for_the_end();
  say("child");
}

static void hold(void) {
  say("holding");
  wait_for_the_end();
}

static void run(int count, char** arguments, const char* self) {
  for (int i = 0; i < count; ++i) {
    const char* command = arguments[i];
    if (!strcmp(command, "reserve") && i + 1 < count) {
      reserve(strtoull(arguments[++i], NULL, 10));
    } else if (!strcmp(command, "cycle") && i + 2 < count) {
      cycle(atol(arguments[i + 1]), strtoull(arguments[i + 2], NULL, 10));
      i += 2;
    } else if (!strcmp(command, "hold")) {
      hold();
    } else if (!strcmp(command, "fork")) {
      fork_on();
    } else if (!strcmp(command, "fork-detach")) {
      fork_detach();
    } else if (!strcmp(command, "exec")) {
      become(self);
    } else if (!strcmp(command, "spawn")) {
      spawn(self);
    } else if (!strcmp(command, "detach")) {
      purser_ledger_detach(&ledger);
    } else {
      fail(command, EINVAL);
    }
  }
}

int main(int argc, char** argv) {
  if (argc < 2) { /* what another worker became */
    say("child");
    wait_for_the_end();
  }
  const int error = purser_ledger_attach(&ledger, argv[1]);
  if (error) fail("attach", error);
  run(argc - 2, argv + 2, argv[0]);
  return 0;
}
