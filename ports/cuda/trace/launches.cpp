#include "launches.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

namespace sonde::cuda {

namespace {

// Threads share cells only when there are more of them than cells.
struct alignas(64) Cell {
  std::atomic<uint64_t> launches{0};
};
std::array<Cell, 64> cells;
std::atomic<uint32_t> threads{0};

}  // namespace

void count_launch() {
  thread_local Cell *const mine = &cells[threads.fetch_add(1, std::memory_order_relaxed) % cells.size()];
  mine->launches.fetch_add(1, std::memory_order_relaxed);
}

uint64_t launches_counted() {
  uint64_t sum = 0;
  for (const Cell &cell : cells) sum += cell.launches.load(std::memory_order_relaxed);
  return sum;
}

double driver_call_ns() {
  using Call = int (*)(int *);
  using Clock = std::chrono::steady_clock;
  constexpr int kBatches = 7;
  constexpr int kCalls = 200;
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  const auto call = reinterpret_cast<Call>(dlsym(library, "cuDriverGetVersion"));
  double least = 0;
  for (int batch = 0; call != nullptr && batch < kBatches; ++batch) {
    int version = 0;
    const auto begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) call(&version);
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kCalls;
    least = batch == 0 ? ns : std::min(least, ns);
  }
  dlclose(library);
  return least;
}

}  // namespace sonde::cuda
