// Emits marks into the session that the environment started, and ends in the way that its first argument names.
// Each mark's payload is its number in this process, from 0; its name says who made it.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sonde/capture.h>
#include <sonde/host.h>
#include <sonde/port.h>
#include <sonde/run.h>
#include <sonde/session.h>
#include <sonde/spaces/framework.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const sonde_capture_service_t *capture;
static const sonde_session_service_t *sessions;
static uint64_t next_number;

static void fetch(void) {
  const void *table = NULL;
  const sonde_host_t *const host = sonde_host();
  if (host->get_service(SONDE_CAPTURE_SERVICE, sizeof(sonde_capture_service_t), &table) != SONDE_OK) exit(70);
  capture = table;
  if (host->get_service(SONDE_SESSION_SERVICE, sizeof(sonde_session_service_t), &table) != SONDE_OK) exit(70);
  sessions = table;
}

static int emit(const char *name, int count) {
  sonde_session_t *session = NULL;
  sonde_string_t text = 0;
  if (sessions->current(&session) != SONDE_OK) {
    fprintf(stderr, "no session: %s\n", sonde_host()->last_error());
    return 71;
  }
  capture->intern(name, UINT64_MAX, &text);
  for (int index = 0; index < count; ++index) {
    sonde_framework_scope_t mark;
    memset(&mark, 0, sizeof mark);
    SONDE_RECORD_INIT(&mark, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_MARK, sonde_stamp());
    mark.name = text;
    mark.payload = __atomic_fetch_add(&next_number, 1, __ATOMIC_RELAXED);
    mark.payload_kind = 1;
    if (capture->emit(session, &mark.header) != SONDE_OK) {
      fprintf(stderr, "not emitted: %s\n", sonde_host()->last_error());
      return 72;
    }
  }
  return 0;
}

static void *thread_body(void *unused) {
  (void)unused;
  return (void *)(intptr_t)emit("thread", 100);
}

static void restore_and_raise(int number) {
  signal(number, SIG_DFL);
  raise(number);
}

static void exit_from_handler(int number) {
  (void)number;
  exit(3);
}

static int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 73;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 74;
}

int main(int count, char **arguments) {
  if (count < 2) return 64;
  const char *const way = arguments[1];
  fetch();
  int failed = emit("first", 100);
  if (failed != 0) return failed;

  if (strcmp(way, "return") == 0) return 0;
  if (strcmp(way, "_exit") == 0) _exit(5);
  if (strcmp(way, "_Exit") == 0) _Exit(6);
  if (strcmp(way, "quick_exit") == 0) quick_exit(7);
  if (strcmp(way, "abort") == 0) abort();
  if (strcmp(way, "kill") == 0) {
    kill(getpid(), SIGKILL);
    return 75;
  }
  if (strcmp(way, "sleep_and_kill") == 0) {
    usleep(600 * 1000);  // chunks are sealed every 200 ms
    if (emit("tail", 30) != 0) return 72;
    kill(getpid(), SIGKILL);
    return 75;
  }
  if (strcmp(way, "signal") == 0) {
    signal(SIGTERM, restore_and_raise);
    raise(SIGTERM);
    return 75;
  }
  if (strcmp(way, "exit_in_handler") == 0) {
    signal(SIGUSR1, exit_from_handler);
    raise(SIGUSR1);
    return 75;
  }
  if (strcmp(way, "threads") == 0) {
    for (int round = 0; round < 10; ++round) {
      pthread_t threads[4];
      for (int index = 0; index < 4; ++index) pthread_create(&threads[index], NULL, thread_body, NULL);
      for (int index = 0; index < 4; ++index) {
        void *result = NULL;
        pthread_join(threads[index], &result);
        if (result != NULL) return 72;
      }
    }
    return 0;
  }
  if (strcmp(way, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      next_number = 0;
      return emit("child", 50);
    }
    failed = emit("parent", 10);
    return failed != 0 ? failed : wait_for(child);
  }
  if (strcmp(way, "fork_many") == 0) {
    // Children of one process, one after the other, some of which fork again.
    for (int index = 0; index < 5; ++index) {
      const pid_t child = fork();
      if (child == 0) {
        next_number = 0;
        failed = emit("child", 20);
        const pid_t grandchild = fork();
        if (grandchild == 0) {
          next_number = 0;
          _exit(emit("grandchild", 5));
        }
        _exit(failed != 0 ? failed : wait_for(grandchild));
      }
      failed = wait_for(child);
      if (failed != 0) return failed;
    }
    return 0;
  }
  if (strcmp(way, "fork_silent") == 0) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    return wait_for(child);
  }
  if (strcmp(way, "exec") == 0) {
    execl("/proc/self/exe", arguments[0], "return", (char *)NULL);
    return 75;
  }
  if (strcmp(way, "exec_twice") == 0) {
    char *const next[] = {arguments[0], (char *)"exec", NULL};
    execv("/proc/self/exe", next);
    return 75;
  }
  if (strcmp(way, "exec_nothing") == 0) {
    execlp("no-such-program-anywhere", "x", (char *)NULL);
    return emit("after", 25);
  }
  if (strcmp(way, "exec_unrunnable") == 0) {
    char *const next[] = {(char *)"x", NULL};
    execve(arguments[2], next, environ);  // may be executed by its mode, but is no program
    return emit("after", 25);
  }
  if (strcmp(way, "vfork_exec") == 0) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", (char *)NULL);
      _exit(76);
    }
    failed = wait_for(child);
    return failed != 0 ? failed : emit("after", 25);
  }
  if (strcmp(way, "vfork_exit") == 0) {
    const pid_t child = vfork();
    if (child == 0) _exit(0);
    failed = wait_for(child);
    return failed != 0 ? failed : emit("after", 25);
  }
  if (strcmp(way, "system") == 0) {
    failed = system("/bin/true && /bin/echo shell > /dev/null");
    return failed != 0 ? failed : emit("after", 25);
  }
  return 64;
}
