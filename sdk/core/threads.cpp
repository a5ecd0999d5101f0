#include "core/threads.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "core/session.h"

namespace sonde::core {
namespace {

constexpr size_t kPageBytes = 4096;

// The part of a thread's state that a forked child must find zeroed: the writers that programs keep pointers to.
struct WriterPage {
  std::array<sonde_writer_t, kMaxSessions> writers;
};
static_assert(sizeof(WriterPage) <= kPageBytes);

struct ThreadState {
  WriterPage *page = nullptr;
  std::array<std::shared_ptr<Stream>, kMaxSessions> streams;
  uint32_t depth = 0;
  bool helper = false;
};

// One pointer, so that the library can be loaded late: it draws on the loader's reserve of static TLS.
__attribute__((tls_model("initial-exec"))) thread_local ThreadState *this_thread = nullptr;

sonde_writer_t closed_writer = {nullptr, nullptr, 0, nullptr, nullptr};

void end_thread(void *state_pointer) {
  auto *const state = static_cast<ThreadState *>(state_pointer);
  this_thread = nullptr;
  for (auto &stream : state->streams) {
    if (stream == nullptr) continue;
    stream->ended.store(true, std::memory_order_release);
    if (stream->accepts.load(std::memory_order_acquire)) wake_waiter(*stream->wake_word);
  }
  if (state->page != nullptr) ::munmap(state->page, kPageBytes);
  delete state;
}

pthread_key_t exit_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    ::pthread_key_create(&made, end_thread);
    return made;
  }();
  return key;
}

ThreadState &thread_state() {
  if (this_thread == nullptr) {
    this_thread = new ThreadState;
    ::pthread_setspecific(exit_key(), this_thread);
  }
  return *this_thread;
}

}  // namespace

Result<sonde_writer_t *> thread_writer(Session &session) {
  ThreadState &state = thread_state();
  if (state.helper) return &closed_writer;
  const uint32_t slot = session.slot();
  auto &stream = state.streams[slot];
  if (state.page == nullptr) {
    void *const page = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return Error{SONDE_E_FULL, "no memory for this thread's writers"};
    ::madvise(page, kPageBytes, MADV_WIPEONFORK);
    state.page = static_cast<WriterPage *>(page);
  }
  sonde_writer_t *const writer = &state.page->writers[slot];
  if (stream != nullptr && stream->session == session.id()) return writer;
  // The slot's earlier session is closed: only now, on its own thread, can the old ring go.
  *writer = closed_writer;
  stream = session.add_thread_stream();
  if (stream == nullptr) {
    session.ledger().add(0, 0, SONDE_LOSS_MEMORY_CAP, 0, 1, 0);
    return Error{SONDE_E_FULL, "no memory for this thread's ring: rings may take three quarters of the cap of " +
                                   std::to_string(session.options().memory_cap) + " bytes"};
  }
  writer->cursor = writer->limit = stream->ring.at(0);
  writer->published = &stream->row->published;
  writer->host = stream.get();
  return writer;
}

void *reserve(sonde_writer_t *writer, uint32_t bytes) noexcept {
  // Host is NULL for helper threads, for writers of closed sessions, and in a forked child.
  if (writer->host == nullptr) return nullptr;
  const ThreadState *const state = this_thread;
  if (state != nullptr && state->depth > 0) return nullptr;
  return reserve_slowly(*static_cast<Stream *>(writer->host), *writer, bytes);
}

void enter_host() noexcept {
  try {
    ThreadState &state = thread_state();
    if (state.depth++ == 0 && state.page != nullptr) {
      // With no room left every reserve comes to the slow path, which looks at the depth.
      for (sonde_writer_t &writer : state.page->writers) writer.limit = writer.cursor;
    }
  } catch (...) {
    // Out of memory: the tool's own events are captured, which is untidy and harmless.
  }
}

void leave_host() noexcept {
  if (this_thread != nullptr && this_thread->depth > 0) --this_thread->depth;
}

uint32_t inside_host() noexcept {
  return this_thread != nullptr && (this_thread->helper || this_thread->depth > 0) ? 1 : 0;
}

void become_helper_thread(const std::string &name) {
  thread_state().helper = true;
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
  sigset_t all;
  ::sigfillset(&all);
  // Faults stay unblocked: blocking them would turn a crash into a silent kill.
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

void forget_thread_after_fork() noexcept {
  if (this_thread == nullptr) return;
  for (auto &stream : this_thread->streams) new (&stream) std::shared_ptr<Stream>;  // leaked on purpose
  this_thread->depth = 0;
}

}  // namespace sonde::core
