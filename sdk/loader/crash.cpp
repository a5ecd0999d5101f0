#include "loader/crash.h"

#include <signal.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace sonde::loader {

namespace {

// One pointer of static TLS: the handler may read it without the allocation that dynamic TLS can need.
__attribute__((tls_model("initial-exec"))) thread_local const char *current_plugin = nullptr;

struct CodeRange {
  uintptr_t begin;
  uintptr_t end;
  const char *id;
};

constexpr size_t kMaxRanges = 512;
CodeRange ranges[kMaxRanges];
std::atomic<size_t> range_count{0};
std::atomic_flag range_writer = ATOMIC_FLAG_INIT;

struct FatalSignal {
  int number;
  const char *name;
  struct sigaction before;
};

FatalSignal fatal_signals[] = {
    {SIGSEGV, "SIGSEGV", {}}, {SIGBUS, "SIGBUS", {}},   {SIGILL, "SIGILL", {}},
    {SIGFPE, "SIGFPE", {}},   {SIGABRT, "SIGABRT", {}},
};

const char *plugin_at(uintptr_t address) {
  const size_t count = range_count.load(std::memory_order_acquire);
  for (size_t index = 0; index < count; ++index) {
    if (address >= ranges[index].begin && address < ranges[index].end) return ranges[index].id;
  }
  return nullptr;
}

uintptr_t register_of(const ucontext_t &context, bool stack_pointer) {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[stack_pointer ? REG_RSP : REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<uintptr_t>(stack_pointer ? context.uc_mcontext.sp : context.uc_mcontext.pc);
#endif
}

// Looks for a return address into a plugin near the top of the stack: the plugin called something that crashed.
const char *plugin_on_stack(uintptr_t stack) {
  uintptr_t words[512];
  stack &= ~uintptr_t{sizeof(uintptr_t) - 1};
  // The kernel copies, so the end of the stack is an error instead of another fault.
  for (size_t bytes = sizeof words; bytes >= 512; bytes /= 2) {
    iovec local{words, bytes};
    iovec remote{reinterpret_cast<void *>(stack), bytes};
    const ssize_t got = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
    if (got <= 0) continue;
    for (size_t index = 0; index < static_cast<size_t>(got) / sizeof(uintptr_t); ++index) {
      if (const char *const id = plugin_at(words[index])) return id;
    }
    return nullptr;
  }
  return nullptr;
}

class Line {
 public:
  Line &operator<<(const char *text) {
    const size_t length = std::strlen(text);
    const size_t room = sizeof text_ - used_;
    const size_t taken = length < room ? length : room;
    std::memcpy(text_ + used_, text, taken);
    used_ += taken;
    return *this;
  }
  void write() const {
    for (size_t done = 0; done < used_;) {
      const ssize_t wrote = ::write(STDERR_FILENO, text_ + done, used_ - done);
      if (wrote <= 0) return;
      done += static_cast<size_t>(wrote);
    }
  }

 private:
  char text_[512];
  size_t used_ = 0;
};

void on_fatal(int number, siginfo_t *info, void *context_pointer) {
  const auto &context = *static_cast<const ucontext_t *>(context_pointer);
  FatalSignal *fatal = nullptr;
  for (FatalSignal &candidate : fatal_signals) {
    if (candidate.number == number) fatal = &candidate;
  }
  const char *culprit = plugin_at(register_of(context, false));
  const char *how = "in the code of plugin '";
  if (culprit == nullptr) {
    culprit = current_plugin;
    how = "while plugin '";
  }
  const char *after = culprit == current_plugin && how[0] == 'w' ? "' was called" : "'";
  if (culprit == nullptr) {
    culprit = plugin_on_stack(register_of(context, true));
    how = "below a call that plugin '";
    after = "' seems to have made";
  }
  if (culprit != nullptr) (Line() << "sonde: " << fatal->name << " " << how << culprit << after << "\n").write();
  ::sigaction(number, &fatal->before, nullptr);
  // A fault strikes again by itself when the instruction is repeated, with the same details; others are sent again.
  if (info->si_code <= 0 || number == SIGABRT) ::raise(number);
}

}  // namespace

CurrentPlugin::CurrentPlugin(const char *id) : before_(current_plugin) { current_plugin = id; }
CurrentPlugin::~CurrentPlugin() { current_plugin = before_; }
const char *CurrentPlugin::id() { return current_plugin; }

void note_plugin_code(uintptr_t begin, uintptr_t end, const char *id) {
  while (range_writer.test_and_set(std::memory_order_acquire)) {
  }
  const size_t count = range_count.load(std::memory_order_relaxed);
  if (count < kMaxRanges) {
    ranges[count] = {begin, end, id};
    range_count.store(count + 1, std::memory_order_release);
  }
  range_writer.clear(std::memory_order_release);
}

void install_crash_handler() {
  static const bool once = [] {
    for (FatalSignal &fatal : fatal_signals) {
      struct sigaction action {};
      action.sa_sigaction = on_fatal;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigemptyset(&action.sa_mask);
      ::sigaction(fatal.number, &action, &fatal.before);
    }
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace sonde::loader
