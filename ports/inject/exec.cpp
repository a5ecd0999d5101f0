// The exec family: the run of this image ends before the next one replaces it, and the next one gets a number of its
// own in SONDE_EXEC, because process id and start time stay the same.
//
// A child of vfork runs in its parent's memory: there nothing but the environment of the call is touched (the run
// service knows by the process id).
#include <fcntl.h>
#include <sonde/run.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string.h>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>

#include <cstring>

#include "inject.h"

namespace sonde::inject {

namespace {

constexpr char kImageVariable[] = "SONDE_EXEC=";
constexpr size_t kMostVariables = 1 << 16;  // more are passed on without a new number

size_t count_of(char *const *list) {
  size_t count = 0;
  while (list != nullptr && list[count] != nullptr) ++count;
  return count;
}

bool has_variable(char *const *environment, const char *prefix) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (std::strncmp(*environment, prefix, std::strlen(prefix)) == 0) return true;
  }
  return false;
}

// Writes the environment with the next image number into `out`, which has room for count + 2 pointers.
void number_environment(char *const *environment, char **out, char *text, size_t text_bytes) {
  unsigned long image = 0;
  size_t kept = 0;
  for (; *environment != nullptr; ++environment) {
    if (std::strncmp(*environment, kImageVariable, sizeof kImageVariable - 1) == 0) {
      image = std::strtoul(*environment + sizeof kImageVariable - 1, nullptr, 10);
    } else {
      out[kept++] = *environment;
    }
  }
  // No snprintf: it may allocate, and this may be a child of vfork or fork.
  char digits[24];
  size_t length = 0;
  for (unsigned long rest = image + 1; rest != 0 || length == 0; rest /= 10) {
    digits[length++] = static_cast<char>('0' + rest % 10);
  }
  std::memcpy(text, kImageVariable, sizeof kImageVariable - 1);
  size_t used = sizeof kImageVariable - 1;
  while (length > 0 && used + 1 < text_bytes) text[used++] = digits[--length];
  text[used] = '\0';
  out[kept++] = text;
  out[kept] = nullptr;
}

// True when exec of this file is likely to succeed: then the run ends. `search`: through PATH, as execvp does.
bool is_program(const char *file, bool search) {
  if (file == nullptr) return false;
  if (!search || std::strchr(file, '/') != nullptr) return ::access(file, X_OK) == 0;
  const char *path = std::getenv("PATH");
  if (path == nullptr) path = "/bin:/usr/bin";
  char candidate[4096];
  const size_t name = std::strlen(file);
  while (true) {
    const char *const end = ::strchrnul(path, ':');
    const auto folder = static_cast<size_t>(end - path);
    if (folder + name + 2 <= sizeof candidate) {
      std::memcpy(candidate, path, folder);
      size_t used = folder;
      if (folder != 0) candidate[used++] = '/';
      std::memcpy(candidate + used, file, name + 1);
      struct stat status {};
      if (::stat(candidate, &status) == 0 && S_ISREG(status.st_mode) && ::access(candidate, X_OK) == 0) return true;
    }
    if (*end == '\0') return false;
    path = end + 1;
  }
}

// Ends the run, calls `execute` with the environment for the next image, and takes up again when that returns.
template <typename Execute>
int replace_image(bool likely, char *const *environment, Execute &&execute) {
  if (likely) call(SONDE_ENTRY_EXEC, nullptr);
  int result = -1;
  const size_t count = count_of(environment);
  if (count == 0 || count > kMostVariables || !has_variable(environment, "SONDE_RUN=")) {
    result = execute(environment);
  } else {
    auto **const numbered = static_cast<char **>(__builtin_alloca((count + 2) * sizeof(char *)));
    char text[40];
    number_environment(environment, numbered, text, sizeof text);
    result = execute(numbered);
  }
  const int error = errno;
  if (likely) call(SONDE_ENTRY_EXEC_FAILED, nullptr);
  errno = error;
  return result;
}

using Execve = int (*)(const char *, char *const *, char *const *);

int execute_path(const char *path, char *const *arguments, char *const *environment) {
  static const auto real = next<Execve>("execve");
  return replace_image(is_program(path, false), environment,
                       [&](char *const *numbered) { return real(path, arguments, numbered); });
}

int execute_file(const char *file, char *const *arguments, char *const *environment) {
  static const auto real = next<Execve>("execvpe");
  return replace_image(is_program(file, true), environment,
                       [&](char *const *numbered) { return real(file, arguments, numbered); });
}

// Arguments of execl and its kin up to the NULL. `Run` gets them as a list, and the va_list behind the NULL.
template <typename Run>
int with_list(const char *first, va_list &rest, Run &&run) {
  va_list counting;
  va_copy(counting, rest);
  size_t count = first == nullptr ? 0 : 1;
  if (first != nullptr) {
    while (va_arg(counting, const char *) != nullptr) ++count;
  }
  va_end(counting);
  auto **const list = static_cast<char **>(__builtin_alloca((count + 1) * sizeof(char *)));
  if (first != nullptr) {
    list[0] = const_cast<char *>(first);
    for (size_t index = 1; index <= count; ++index) list[index] = va_arg(rest, char *);
  }
  list[count] = nullptr;
  return run(list);
}

}  // namespace

}  // namespace sonde::inject

using namespace sonde::inject;

extern "C" {

SONDE_EXPORTED int execve(const char *path, char *const arguments[], char *const environment[]) noexcept {
  return execute_path(path, arguments, environment);
}

SONDE_EXPORTED int execv(const char *path, char *const arguments[]) noexcept {
  return execute_path(path, arguments, environ);
}

SONDE_EXPORTED int execvp(const char *file, char *const arguments[]) noexcept {
  return execute_file(file, arguments, environ);
}

SONDE_EXPORTED int execvpe(const char *file, char *const arguments[], char *const environment[]) noexcept {
  return execute_file(file, arguments, environment);
}

SONDE_EXPORTED int execl(const char *path, const char *first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int result = with_list(first, rest, [&](char **list) { return execute_path(path, list, environ); });
  va_end(rest);
  return result;
}

SONDE_EXPORTED int execlp(const char *file, const char *first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int result = with_list(first, rest, [&](char **list) { return execute_file(file, list, environ); });
  va_end(rest);
  return result;
}

SONDE_EXPORTED int execle(const char *path, const char *first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int result = with_list(first, rest, [&](char **list) {
    char *const *const environment = va_arg(rest, char *const *);
    return execute_path(path, list, environment);
  });
  va_end(rest);
  return result;
}

SONDE_EXPORTED int fexecve(int descriptor, char *const arguments[], char *const environment[]) noexcept {
  static const auto real = next<int (*)(int, char *const *, char *const *)>("fexecve");
  return replace_image(::fcntl(descriptor, F_GETFD) >= 0, environment,
                       [&](char *const *numbered) { return real(descriptor, arguments, numbered); });
}

SONDE_EXPORTED int execveat(int folder, const char *path, char *const arguments[], char *const environment[],
                            int flags) noexcept {
  static const auto real = next<int (*)(int, const char *, char *const *, char *const *, int)>("execveat");
  return replace_image(::faccessat(folder, path, X_OK, 0) == 0 || (flags & AT_EMPTY_PATH) != 0, environment,
                       [&](char *const *numbered) { return real(folder, path, arguments, numbered, flags); });
}
}
