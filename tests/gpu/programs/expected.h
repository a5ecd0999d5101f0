// What a test program did, counted where it does it, and printed as one JSON line.
//
// Every operation goes through a function here or through SONDE_TEST_CALL, so that the numbers
// are those of the program's own requests and never read back from a tool.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace expected {

struct Amount {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

// Thread-safe counters. While a graph is being captured, `repeat` says how often the recorded
// operations will run: calls count once, device operations that many times.
class Ledger {
 public:
  void call(const char *function) {
    std::lock_guard<std::mutex> hold(mutex_);
    ++calls_[function];
  }
  void launch(const char *name) {
    std::lock_guard<std::mutex> hold(mutex_);
    kernels_[name] += repeat;
    ++calls_["cudaLaunchKernel"];
  }
  void copy(const char *direction, uint64_t bytes) { add(copies_, direction, bytes, repeat); }
  void set(uint64_t bytes) { add(sets_, "sets", bytes, repeat); }
  void allocate(const char *kind, uint64_t bytes) { add(allocations_, kind, bytes, 1); }
  void free(const char *kind) { add(frees_, kind, 0, 1); }
  // `what`: push, pop, start, end or mark.
  void range(const char *domain, const char *what) {
    std::lock_guard<std::mutex> hold(mutex_);
    ++ranges_[domain][what];
  }

  // The members of the JSON object, without the braces around them.
  std::string json() const {
    std::lock_guard<std::mutex> hold(mutex_);
    const auto sets = sets_.find("sets");
    return "\"kernels\":" + counts(kernels_) + ",\"copies\":" + amounts(copies_) +
           ",\"sets\":" + amount(sets == sets_.end() ? Amount{} : sets->second) +
           ",\"allocations\":" + amounts(allocations_) + ",\"frees\":" + amounts(frees_) +
           ",\"calls\":" + counts(calls_) + ",\"ranges\":" + nested(ranges_);
  }

  static thread_local uint64_t repeat;

 private:
  using Counts = std::map<std::string, uint64_t>;
  using Amounts = std::map<std::string, Amount>;

  void add(Amounts &amounts, const char *name, uint64_t bytes, uint64_t times) {
    std::lock_guard<std::mutex> hold(mutex_);
    Amount &entry = amounts[name];
    entry.count += times;
    entry.bytes += bytes * times;
  }
  // Names are identifiers and plain words of this folder's programs: nothing needs escaping.
  template <class Map, class Print>
  static std::string object(const Map &map, Print print) {
    std::string text = "{";
    for (const auto &[name, value] : map) {
      if (text.size() > 1) text += ",";
      text += "\"" + name + "\":" + print(value);
    }
    return text + "}";
  }
  static std::string counts(const Counts &map) {
    return object(map, [](uint64_t value) { return std::to_string(value); });
  }
  static std::string amount(const Amount &value) {
    return "{\"count\":" + std::to_string(value.count) + ",\"bytes\":" + std::to_string(value.bytes) + "}";
  }
  static std::string amounts(const Amounts &map) { return object(map, amount); }
  static std::string nested(const std::map<std::string, Counts> &map) {
    return object(map, [](const Counts &inner) { return counts(inner); });
  }

  mutable std::mutex mutex_;
  Counts kernels_, calls_;
  Amounts copies_, sets_, allocations_, frees_;
  std::map<std::string, Counts> ranges_;
};

inline thread_local uint64_t Ledger::repeat = 1;

inline Ledger ledger;

inline void check(cudaError_t error, const char *what, const char *file, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, what, cudaGetErrorName(error), cudaGetErrorString(error));
  std::exit(3);
}

}  // namespace expected

// Calls a function of the runtime, counts the call under the function's name and ends the program
// with a message and exit code 3 if it fails.
#define SONDE_TEST_CALL(function, ...)                                     \
  do {                                                                     \
    expected::ledger.call(#function);                                      \
    expected::check(function(__VA_ARGS__), #function, __FILE__, __LINE__); \
  } while (0)

// Launches `kernel<<<...>>>` given by its configuration in parentheses: the device code must be
// launched by a statement, hence a macro. `name` is how the kernel is listed.
#define SONDE_TEST_LAUNCH(name, kernel, blocks, threads, stream, ...) \
  do {                                                                \
    expected::ledger.launch(name);                                    \
    kernel<<<(blocks), (threads), 0, (stream)>>>(__VA_ARGS__);        \
    SONDE_TEST_CALL(cudaGetLastError);                                \
  } while (0)
