// One run, several processes: the ways in which a process of a recorded program begins and ends.
//
// The first process forks before it touches CUDA. Each child uses CUDA and ends in its own way:
// by returning, by _exit, by executing this program again, or by doing so after it has used CUDA
// (one process id, two program images). Then the first process uses CUDA itself and forks once
// more; that last child leaves at once and must add nothing.
//
// Prints one JSON line: for every image that used CUDA its role, process id and launches. Exit
// code 1 if a child failed, 3 if a CUDA call failed.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "expected.h"

extern "C" __global__ void count_kernel(unsigned int *counter) { atomicAdd(counter, 1u); }

namespace {

// Different numbers, so that a record that lands in the wrong process shows.
constexpr int kReturningLaunches = 11;
constexpr int kExecutedLaunches = 13;
constexpr int kLeavingLaunches = 17;
constexpr int kBeforeExecLaunches = 19;
constexpr int kAfterExecLaunches = 23;
constexpr int kFirstProcessLaunches = 29;

struct Image {
  const char *role;
  pid_t process;
  int launches;
};

// Launches the kernel `launches` times, waits, and checks the counter. True when it is right.
bool use_cuda(int launches) {
  unsigned int *counter = nullptr;
  unsigned int value = 0;
  SONDE_TEST_CALL(cudaMalloc, reinterpret_cast<void **>(&counter), sizeof(value));
  SONDE_TEST_CALL(cudaMemset, counter, 0, sizeof(value));
  for (int launch = 0; launch < launches; ++launch) {
    SONDE_TEST_LAUNCH("count_kernel", count_kernel, 1, 1, nullptr, counter);
  }
  SONDE_TEST_CALL(cudaMemcpy, &value, counter, sizeof(value), cudaMemcpyDeviceToHost);
  SONDE_TEST_CALL(cudaFree, counter);
  return value == static_cast<unsigned int>(launches);
}

[[noreturn]] void execute_self(const char *role) {
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
  if (length > 0) {
    program[length] = '\0';
    char *arguments[] = {program, const_cast<char *>(role), nullptr};
    execv(program, arguments);
  }
  std::perror("fork_exec: cannot execute the program again");
  _exit(4);
}

template <class Body>
pid_t start_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    std::perror("fork_exec: fork");
    std::exit(4);
  }
  if (child == 0) body();
  return child;
}

bool ended_well(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int run_first_process() {
  std::vector<Image> images;
  bool good = true;

  pid_t child = start_child([] { std::exit(use_cuda(kReturningLaunches) ? 0 : 1); });
  images.push_back({"returns", child, kReturningLaunches});
  good &= ended_well(child);

  child = start_child([] { execute_self("executed"); });
  images.push_back({"executed", child, kExecutedLaunches});
  good &= ended_well(child);

  child = start_child([] { _exit(use_cuda(kLeavingLaunches) ? 0 : 1); });
  images.push_back({"leaves by _exit", child, kLeavingLaunches});
  good &= ended_well(child);

  child = start_child([] {
    if (!use_cuda(kBeforeExecLaunches)) _exit(1);
    execute_self("after_exec");
  });
  images.push_back({"before exec", child, kBeforeExecLaunches});
  images.push_back({"after exec", child, kAfterExecLaunches});
  good &= ended_well(child);

  good &= use_cuda(kFirstProcessLaunches);
  images.push_back({"first process", getpid(), kFirstProcessLaunches});
  good &= ended_well(start_child([] { _exit(0); }));

  std::printf("{\"program\":\"fork_exec\",\"wrong\":%d,\"images\":[", good ? 0 : 1);
  for (size_t index = 0; index < images.size(); ++index) {
    const Image &image = images[index];
    std::printf("%s{\"role\":\"%s\",\"process\":%d,\"kernels\":{\"count_kernel\":%d}}", index == 0 ? "" : ",",
                image.role, static_cast<int>(image.process), image.launches);
  }
  std::printf("]}\n");
  return good ? 0 : 1;
}

}  // namespace

int main(int count, char **arguments) {
  if (count == 1) return run_first_process();
  if (std::strcmp(arguments[1], "executed") == 0) return use_cuda(kExecutedLaunches) ? 0 : 1;
  if (std::strcmp(arguments[1], "after_exec") == 0) return use_cuda(kAfterExecLaunches) ? 0 : 1;
  std::fprintf(stderr, "fork_exec: unknown role %s\n", arguments[1]);
  return 2;
}
