// What the programs of this folder share: named objects, launches, and the list of objects that each program prints.
//
// A program is a function of (Program &, bool improved): as it is it carries an inefficiency, improved it does not. Nothing here knows of
// Sonde. expected.json says what must be found, by the names that objects are given here.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(call)                                                                                    \
  do {                                                                                                 \
    const cudaError_t status_ = (call);                                                                \
    if (status_ != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_)); \
      std::exit(1);                                                                                    \
    }                                                                                                  \
  } while (0)

namespace patterns {

// Floats in a unit of 256 KiB, in a mebibyte, and in a page of 4 KiB.
constexpr size_t kUnit = (size_t{256} << 10) / sizeof(float);
constexpr size_t kMebi = 4 * kUnit;
constexpr size_t kPage = 4096 / sizeof(float);

class Program {
 public:
  // An object of `count` floats; its begin is noted for the list.
  float *allocate(const char *name, size_t count);
  float *allocate_managed(const char *name, size_t count);
  float *allocate_ordered(const char *name, size_t count, cudaStream_t stream);
  float *allocate_from(const char *name, size_t count, cudaMemPool_t pool, cudaStream_t stream);
  void release(float *object);
  void release_ordered(float *object, cudaStream_t stream);

  // Whole objects or parts between the host's own pageable buffer and the device.
  void copy_in(float *target, size_t count);
  void copy_out(const float *source, size_t count);

  // One JSON object: name, address, bytes, and how many objects of this program had the same address before.
  void print() const;

 private:
  struct Object {
    std::string name;
    uint64_t address;
    uint64_t bytes;
    unsigned life;
  };
  float *note(const char *name, void *address, size_t count);

  std::vector<Object> objects_;
  std::vector<float> host_;
};

// One thread an element, blocks of 256; counts are multiples of 256.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), size_t count, cudaStream_t stream, Arguments... arguments) {
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = dim3(static_cast<unsigned>(count / 256));
  configuration.blockDim = dim3(256);
  configuration.stream = stream;
  CHECK(cudaLaunchKernelEx(&configuration, kernel, static_cast<Parameters>(arguments)...));
}

// The vocabulary of most programs: one kernel each, which touches every element of each object named once.
void fill(float *target, size_t count, cudaStream_t stream = nullptr);                      // writes
void step(float *object, size_t count, cudaStream_t stream = nullptr);                      // reads and writes
void map(const float *source, float *target, size_t count, cudaStream_t stream = nullptr);  // reads, writes
// target[i] = source[i * ratio] + ... + source[i * ratio + ratio - 1], of `count` targets.
void reduce(const float *source, float *target, size_t count, size_t ratio);
// target[i * ratio ...] = source[i], of `count` sources.
void widen(const float *source, float *target, size_t count, size_t ratio);
void add(const float *left, const float *right, float *target, size_t count);

// The programs, by file.
// clang-format off
#define PATTERNS_PROGRAMS(X)                                                                          \
  X(early_allocation) X(late_deallocation) X(redundant_allocation) X(unused_allocation) X(leak)       \
  X(temporary_idleness) X(host_reads_late) X(host_fills_early) X(address_reuse) X(zero_size)          \
  X(set_then_copy) X(copy_then_copy) X(rows_written_twice) X(read_between_writes) X(over_allocation)  \
  X(scattered_use) X(hot_page) X(slices)                                                              \
  X(two_products) X(three_products) X(gram_schmidt) X(two_directions)                                 \
  X(streams_of_copies) X(pool_holes) X(freed_on_another_stream) X(early_in_pool)                      \
  X(uncoalesced) X(bank_conflicts) X(diverging_blocks) X(hot_block)                                   \
  X(blocking_copies) X(tiny_copies) X(managed_ping_pong)
// clang-format on
#define PATTERNS_DECLARE(name) void name(Program &program, bool improved);
PATTERNS_PROGRAMS(PATTERNS_DECLARE)
#undef PATTERNS_DECLARE

}  // namespace patterns
