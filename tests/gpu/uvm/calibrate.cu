// Micro-benchmarks of paging on this card, without oversubscription, for the simulator of the analysis `uvm`.
//
//   calibrate [--out FILE] [--repeats 5]
//
// Writes `measurements:` as YAML (nanoseconds unless the name says otherwise; medians of fresh memory each time), which
// `sonde call uvm fit FILE` turns into the simulator's parameters. At most 1.5 GiB of managed memory at one time.
//
//   to_device_*, to_host_*  explicit prefetches of two sizes: bandwidth and the cost of a call. The one to the host is
//                           what stands for evictions
//   fault_alone             one thread, one page of a fresh block after the other: a batch of one page
//   fault_together          the same number of blocks, one page each, by as many thread blocks at one time
//   walk_block              one thread, every page of a fresh block in turn: shows the tree prefetcher
//   stream                  a full-speed kernel over fresh memory of the host, read and written
//   populate                the same writing memory that nobody has touched
//   host_fault_*            the host's faults on pages that the device has
//   remote                  reading memory that stays on the host, accessed by the device
//   launch                  host time of a launch
#include "managed.h"

constexpr uint64_t kPage = 64 << 10;
constexpr uint64_t kBlock = 2 << 20;

__global__ void nothing() {}

// One word of each piece, one after the other: the next address waits for the last value.
__global__ void walk(const char *memory, uint64_t stride, uint64_t count, uint64_t *sink) {
  uint64_t sum = 0;
  for (uint64_t index = 0; index < count; ++index) {
    // The next address depends on the sum as far as the compiler knows.
    sum += *reinterpret_cast<const volatile uint64_t *>(memory + index * stride);
    memory += (sum == 0x123456789abcdefull) ? 8 : 0;
  }
  *sink = sum;
}

// One word of each piece, by a thread block each.
__global__ void touch_each(const char *memory, uint64_t stride, uint64_t *sink) {
  if (threadIdx.x != 0) return;
  const uint64_t word = *reinterpret_cast<const volatile uint64_t *>(memory + blockIdx.x * stride);
  if (word == 0x123456789abcdefull) *sink = word;
}

__global__ void scale(const float *in, float *out, uint64_t count, float factor) {
  const uint64_t index = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (index < count) out[index] = in[index] * factor;
}

__global__ void fill(float *out, uint64_t count, float value) {
  const uint64_t index = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (index < count) out[index] = value;
}

__global__ void sum_all(const float4 *in, uint64_t count, float *sink) {
  float sum = 0;
  for (uint64_t index = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; index < count;
       index += uint64_t{gridDim.x} * blockDim.x) {
    const float4 four = in[index];
    sum += four.x + four.y + four.z + four.w;
  }
  if (sum == 12345.678f) *sink = sum;
}

struct Row {
  std::string name;
  double value;
};
std::vector<Row> rows;

void add(const std::string &name, double value) {
  rows.push_back({name, value});
  std::printf("%-28s %16.1f\n", name.c_str(), value);
  std::fflush(stdout);
}

cudaStream_t stream;
int repeats = 5;

// Median of `body` on fresh managed memory that `prepare` has made ready. The device is idle before and after.
template <typename Prepare, typename Body>
double measure(uint64_t bytes, Prepare prepare, Body body) {
  std::vector<double> times;
  for (int index = 0; index < repeats; ++index) {
    void *memory = nullptr;
    CHECK(cudaMallocManaged(&memory, bytes));
    prepare(memory);
    CHECK(cudaDeviceSynchronize());
    const int64_t begin = now_ns();
    body(memory);
    CHECK(cudaStreamSynchronize(stream));
    times.push_back(static_cast<double>(now_ns() - begin));
    CHECK(cudaFree(memory));
  }
  return median(times);
}

int main(int argc, char **argv) {
  repeats = std::atoi(option(argc, argv, "--repeats", "5"));
  const char *const file = option(argc, argv, "--out", nullptr);
  if (repeats < 1) return 2;
  CHECK(cudaSetDevice(0));
  CHECK(cudaFree(nullptr));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  uint64_t *sink = nullptr;
  CHECK(cudaMalloc(&sink, 64));
  load_kernel(nothing);
  load_kernel(walk);
  load_kernel(touch_each);
  load_kernel(scale);
  load_kernel(fill);
  load_kernel(sum_all);
  nothing<<<1, 1, 0, stream>>>();
  CHECK(cudaStreamSynchronize(stream));

  cudaDeviceProp card{};
  CHECK(cudaGetDeviceProperties(&card, 0));
  std::printf("# %s, managed memory %s by host and device at one time\n", card.name,
              card.concurrentManagedAccess != 0 ? "is touched" : "cannot be touched");

  const uint64_t small = kBlock, large = 512ull << 20;
  const auto by_host = [](uint64_t bytes) { return [bytes](void *memory) { write_by_host(memory, bytes); }; };
  const auto by_device = [](uint64_t bytes) {
    return [bytes](void *memory) {
      write_by_host(memory, bytes);
      prefetch(memory, bytes, 0, stream);
    };
  };
  add("small_bytes", static_cast<double>(small));
  add("large_bytes", static_cast<double>(large));
  add("to_device_small", measure(small, by_host(small), [&](void *memory) { prefetch(memory, small, 0, stream); }));
  add("to_device_large", measure(large, by_host(large), [&](void *memory) { prefetch(memory, large, 0, stream); }));
  add("to_host_small", measure(small, by_device(small), [&](void *memory) { prefetch(memory, small, kHost, stream); }));
  add("to_host_large", measure(large, by_device(large), [&](void *memory) { prefetch(memory, large, kHost, stream); }));

  // How long the call itself keeps its caller, and whether two threads move more than one.
  {
    double call = 0;
    add("to_device_large_again", measure(large, by_host(large), [&](void *memory) {
          const int64_t begin = now_ns();
          prefetch(memory, large, 0, stream);
          call = static_cast<double>(now_ns() - begin);
        }));
    add("to_device_call", call);
    cudaStream_t other;
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    add("to_device_two_threads", measure(large, by_host(large), [&](void *memory) {
          std::thread second([&] {
            CHECK(cudaSetDevice(0));
            prefetch(static_cast<char *>(memory) + large / 2, large / 2, 0, other);
            CHECK(cudaStreamSynchronize(other));
          });
          prefetch(memory, large / 2, 0, stream);
          second.join();
        }));
    // Both directions at one time: half of the memory comes, half goes.
    add("both_ways_half_each", measure(
                                   large,
                                   [&](void *memory) {
                                     write_by_host(memory, large);
                                     prefetch(memory, large / 2, 0, stream);
                                   },
                                   [&](void *memory) {
                                     std::thread second([&] {
                                       CHECK(cudaSetDevice(0));
                                       prefetch(memory, large / 2, kHost, other);
                                       CHECK(cudaStreamSynchronize(other));
                                     });
                                     prefetch(static_cast<char *>(memory) + large / 2, large / 2, 0, stream);
                                     second.join();
                                   }));
    CHECK(cudaStreamDestroy(other));
  }

  // The link without paging, for comparison.
  {
    void *pinned = nullptr, *device = nullptr;
    CHECK(cudaMallocHost(&pinned, large));
    CHECK(cudaMalloc(&device, large));
    for (const bool to_device : {true, false}) {
      std::vector<double> times;
      for (int index = 0; index < repeats; ++index) {
        const int64_t begin = now_ns();
        CHECK(to_device ? cudaMemcpyAsync(device, pinned, large, cudaMemcpyHostToDevice, stream)
                        : cudaMemcpyAsync(pinned, device, large, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        times.push_back(static_cast<double>(now_ns() - begin));
      }
      add(to_device ? "pinned_to_device_large" : "pinned_to_host_large", median(times));
    }
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(device));
  }

  const uint64_t faults = 64;
  add("fault_count", static_cast<double>(faults));
  const auto walk_over = [&](uint64_t stride, uint64_t count) {
    return [=](void *memory) { walk<<<1, 1, 0, stream>>>(static_cast<const char *>(memory), stride, count, sink); };
  };
  add("fault_alone", measure(faults * kBlock, by_host(faults * kBlock), walk_over(kBlock, faults)));
  add("fault_together", measure(faults * kBlock, by_host(faults * kBlock), [&](void *memory) {
        touch_each<<<static_cast<unsigned>(faults), 32, 0, stream>>>(static_cast<const char *>(memory), kBlock, sink);
      }));
  const uint64_t walked = 16;
  add("walked_blocks", static_cast<double>(walked));
  add("walk_block", measure(walked * kBlock, by_host(walked * kBlock), walk_over(kPage, walked * kBlock / kPage)));

  const uint64_t half = 128ull << 20;
  const uint64_t count = half / sizeof(float);
  const auto scale_halves = [&](void *memory) {
    scale<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(
        static_cast<const float *>(memory), static_cast<float *>(memory) + count, count, 2.0f);
  };
  add("stream_bytes", static_cast<double>(2 * half));
  add("stream", measure(2 * half, by_host(2 * half), scale_halves));
  add("stream_resident", measure(2 * half, by_device(2 * half), scale_halves));
  const auto fill_all = [&](void *memory) {
    fill<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream>>>(static_cast<float *>(memory), count, 3.0f);
  };
  add("populate_bytes", static_cast<double>(half));
  add("populate", measure(
                      half, [](void *) {}, fill_all));
  add("populate_resident", measure(half, by_device(half), fill_all));

  const uint64_t returned = 64ull << 20;
  add("host_fault_bytes", static_cast<double>(returned));
  add("host_fault_all", measure(returned, by_device(returned), [&](void *memory) {
        volatile char *const bytes = static_cast<volatile char *>(memory);
        for (uint64_t at = 0; at < returned; at += 4096) bytes[at] = 1;
      }));
  add("host_fault_one_each", measure(returned, by_device(returned), [&](void *memory) {
        volatile char *const bytes = static_cast<volatile char *>(memory);
        for (uint64_t at = 0; at < returned; at += kBlock) bytes[at] = 1;
      }));

  add("remote_bytes", static_cast<double>(half));
  add("remote", measure(
                    half,
                    [&](void *memory) {
                      advise(memory, half, cudaMemAdviseSetPreferredLocation, kHost);
                      advise(memory, half, cudaMemAdviseSetAccessedBy, 0);
                      write_by_host(memory, half);
                    },
                    [&](void *memory) {
                      sum_all<<<2048, 256, 0, stream>>>(static_cast<const float4 *>(memory), half / 16,
                                                        reinterpret_cast<float *>(sink));
                    }));

  {
    constexpr int kLaunches = 1000;
    std::vector<double> times;
    for (int index = 0; index < repeats; ++index) {
      const int64_t begin = now_ns();
      for (int launch = 0; launch < kLaunches; ++launch) nothing<<<1, 1, 0, stream>>>();
      times.push_back(static_cast<double>(now_ns() - begin) / kLaunches);
      CHECK(cudaStreamSynchronize(stream));
    }
    add("launch", median(times));
  }

  if (file != nullptr) {
    FILE *const out = std::fopen(file, "w");
    if (out == nullptr) {
      std::perror(file);
      return 3;
    }
    std::fprintf(out, "card: \"%s\"\nrepeats: %d\nmeasurements:\n", card.name, repeats);
    for (const Row &row : rows) std::fprintf(out, "  %s: %.1f\n", row.name.c_str(), row.value);
    std::fclose(out);
  }
  return 0;
}
