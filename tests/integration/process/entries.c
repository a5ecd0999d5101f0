// Opens the library of its first argument as a runtime would and calls the foreign entries. The exit status has a bit
// for each answer that says "a tool is here". With a second argument it forks in between and the child calls again.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int call_all(void *library) {
  int (*cuda)(void);
  int (*nvtx)(void *);
  void *(*rocprofiler)(uint32_t, const char *, uint32_t, void *);
  int32_t (*layer)(uint32_t, const void *, uint32_t *, const void **);
  *(void **)&cuda = dlsym(library, "InitializeInjection");
  *(void **)&nvtx = dlsym(library, "InitializeInjectionNvtx2");
  *(void **)&rocprofiler = dlsym(library, "rocprofiler_configure");
  *(void **)&layer = dlsym(library, "clInitLayer");
  if (cuda == NULL || nvtx == NULL || rocprofiler == NULL || layer == NULL) return 64;
  uint32_t entries = 0;
  const void *table = NULL;
  int answer = cuda() == 1 ? 1 : 0;
  answer |= nvtx((void *)0x1234) == 1 ? 2 : 0;
  answer |= rocprofiler(7, "1.2", 3, NULL) != NULL ? 4 : 0;
  answer |= layer(2, "target", &entries, &table) == 0 && entries == 2 ? 8 : 0;
  return answer;
}

int main(int count, char **arguments) {
  if (count < 2) return 65;
  void *const library = dlopen(arguments[1], RTLD_NOW);
  if (library == NULL) return 66;
  const int answer = call_all(library);
  if (count > 2) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) exit(call_all(library));
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 67;
  }
  return answer;
}
