#include "cli/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/exit_codes.h"

namespace sonde::cli {
namespace {

constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

std::atomic<pid_t> child_process{0};

void forward(int signal, siginfo_t *info, void *) {
  // The kernel sends a terminal's signals to the whole foreground group, so the program has them already.
  const pid_t child = child_process.load(std::memory_order_relaxed);
  if (child > 0 && info->si_code <= 0) kill(child, signal);
}

class ForwardedSignals {
 public:
  ForwardedSignals() {
    struct sigaction action {};
    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (size_t index = 0; index < kForwarded.size(); ++index) {
      sigaction(kForwarded[index], nullptr, &before_[index]);
      // A signal that whoever started us wants ignored (nohup) stays ignored.
      if (before_[index].sa_handler != SIG_IGN) sigaction(kForwarded[index], &action, nullptr);
    }
  }
  ~ForwardedSignals() { restore(); }

  void restore() const {
    for (size_t index = 0; index < kForwarded.size(); ++index) sigaction(kForwarded[index], &before_[index], nullptr);
  }

 private:
  std::array<struct sigaction, kForwarded.size()> before_{};
};

[[noreturn]] void become(const Launch &launch, int failure_pipe) {
  for (const auto &[name, value] : launch.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char *> arguments;
  for (const std::string &word : launch.command) arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int reason = errno;
  // Only this tells a program that could not start from one that ended with 127 itself.
  if (write(failure_pipe, &reason, sizeof(reason)) != sizeof(reason)) _exit(kCannotRun);
  _exit(kNoCommand);
}

}  // namespace

int launch_and_wait(const Launch &launch) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
    fmt::print(stderr, "sonde: cannot start {}: {}\n", launch.command[0], std::strerror(errno));
    return kCannotRun;
  }
  const ForwardedSignals signals;
  // Held back until it is known whom to send them to.
  sigset_t held;
  sigset_t before;
  sigemptyset(&held);
  for (const int signal : kForwarded) sigaddset(&held, signal);
  sigprocmask(SIG_BLOCK, &held, &before);
  const pid_t child = fork();
  if (child == 0) {
    signals.restore();
    sigprocmask(SIG_SETMASK, &before, nullptr);
    close(pipe_ends[0]);
    become(launch, pipe_ends[1]);
  }
  int reason = child < 0 ? errno : 0;
  child_process.store(child, std::memory_order_relaxed);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  close(pipe_ends[1]);
  if (child > 0) {
    ssize_t got = 0;
    do {
      got = read(pipe_ends[0], &reason, sizeof(reason));
    } while (got < 0 && errno == EINTR);
    if (got != sizeof(reason)) reason = 0;
  }
  close(pipe_ends[0]);
  int status = 0;
  if (child > 0) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    child_process.store(0, std::memory_order_relaxed);
  }
  if (reason != 0) {
    fmt::print(stderr, "sonde: cannot start {}: {}\n", launch.command[0], std::strerror(reason));
    return reason == ENOENT ? kNoCommand : kCannotRun;
  }
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace sonde::cli
