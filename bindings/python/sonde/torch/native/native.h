// What the parts of the native PyTorch adapter share: sinks, threads and the emitting of records.
//
// The adapter is compiled on the user's machine against the installed PyTorch. It links PyTorch only; the host table of
// Sonde comes as an address from the package's extension. Its interface is plain C, called through ctypes, so that no
// Python header is needed.
//
// A sink is one session that wants PyTorch's events. Callbacks run on any thread, some with locks of PyTorch held, and
// never throw. They touch nothing of a session but the thread's own writer, whose memory outlives the session, so stop
// needs no barrier: a callback that is under way writes to a ring that nobody reads any more.
#pragma once

#include <sonde/sonde.h>

#include <atomic>
#include <cstdint>

namespace sonde_torch {

constexpr uint32_t kSinks = 4;  // sessions at the same time

// Options of a sink, bits.
constexpr uint32_t kOperators = 1;
constexpr uint32_t kShapes = 2;       // with kOperators: types and shapes of the inputs
constexpr uint32_t kStacks = 4;       // with kOperators: the Python call path of outermost operators
constexpr uint32_t kCudaTensors = 8;  // blocks of the CUDA allocator
constexpr uint32_t kAnnounce = 16;    // with kCudaTensors: tell sonde.ranges of them
constexpr uint32_t kCpuTensors = 32;  // blocks of the CPU allocator

struct Sink {
  std::atomic<uint64_t> generation{0};  // 0: free; otherwise the number of the start that took it
  std::atomic<uint64_t> demand{0};      // wanted types of sonde.framework, copied at each change
  std::atomic<uint32_t> options{0};
  std::atomic<sonde_session_t *> session{nullptr};
};

extern Sink sinks[kSinks];

// Union of the options of all sinks; 0 while nobody captures. What a callback reads first.
extern std::atomic<uint32_t> active;

extern const sonde_capture_service_t *capture;
extern const sonde_ranges_service_t *ranges;  // NULL on a host that lacks it

struct ThreadState {
  uint64_t thread = 0;         // system's id
  uint64_t scope = 0;          // innermost operator open on this thread, 0: none
  uint64_t next_identity = 0;  // of operators; the high bits number the thread
  struct {
    uint64_t generation = 0;
    sonde_writer_t *writer = nullptr;
  } writers[kSinks];
  // Names by the address of their text: PyTorch hands out the same literal again and again. The text is compared too,
  // because short-lived ones share addresses.
  struct Name {
    const char *address = nullptr;
    char text[52] = {};
    sonde_string_t id = 0;
  } names[256];
  void *free_contexts = nullptr;  // recycled memory of operators' contexts, linked through the first word
};

// This thread's state, made at the first call. NULL when there is no memory.
ThreadState *this_thread() noexcept;

// This thread's writer for a sink whose generation was read as `generation`; NULL when it is gone.
sonde_writer_t *writer_of(ThreadState &state, uint32_t sink, uint64_t generation) noexcept;

sonde_string_t intern(const char *text) noexcept;

// The same through the thread's table.
sonde_string_t intern_cached(ThreadState &state, const char *text) noexcept;

// Calls `emit(writer, options, index)` for each sink that wants `type` and has all of `options`.
template <typename Emit>
void for_each_sink(ThreadState &state, uint32_t type, uint32_t options, Emit &&emit) noexcept {
  for (uint32_t i = 0; i < kSinks; ++i) {
    const uint64_t generation = sinks[i].generation.load(std::memory_order_acquire);
    if (generation == 0 || (sinks[i].options.load(std::memory_order_relaxed) & options) != options) continue;
    if (((sinks[i].demand.load(std::memory_order_relaxed) >> type) & 1) == 0) continue;
    if (sonde_writer_t *const writer = writer_of(state, i, generation)) emit(*writer, i, generation);
  }
}

// operators.cpp: adds, changes or removes the callback so that it serves `options`.
void watch_operators(uint32_t options) noexcept;

// stacks.cpp: identity of the Python call path of this thread, emitted to `sink` when it is new there; 0 when the
// thread runs no Python.
uint64_t python_call_path(ThreadState &state, uint32_t sink, sonde_writer_t &writer) noexcept;
void forget_call_paths(uint32_t sink) noexcept;

// allocators.cpp
void forget_blocks_after_fork() noexcept;

}  // namespace sonde_torch
