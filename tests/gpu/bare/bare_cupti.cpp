// The least that a CUPTI activity client can do: the floor that recorders are measured against.
//
// Loaded by the driver through CUDA_INJECTION64_PATH. Switches on kernel records only, gives CUPTI
// buffers from a pool, counts the records of each full buffer and forgets them. At exit it flushes
// and writes one JSON object to the file that BARE_CUPTI_OUTPUT names.
//
//   BARE_CUPTI_OUTPUT      file for the counts; without it they go to standard error
//   BARE_CUPTI_BUFFER_MIB  size of a buffer in MiB, 1 to 64, default 8
//   BARE_CUPTI_FLUSH_MS    CUPTI's own flush period in milliseconds, default: CUPTI's behaviour
//   BARE_CUPTI_EXTRA       further kinds, separated by commas: memory, copy, set, sync, runtime,
//                          driver. With these it is no floor any more: it tells what a kind costs
#include <cupti.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct ExtraKind {
  std::string_view name;
  CUpti_ActivityKind kind;
};

constexpr ExtraKind kExtraKinds[] = {
    {"memory", CUPTI_ACTIVITY_KIND_MEMORY2},  {"copy", CUPTI_ACTIVITY_KIND_MEMCPY},
    {"set", CUPTI_ACTIVITY_KIND_MEMSET},      {"sync", CUPTI_ACTIVITY_KIND_SYNCHRONIZATION},
    {"runtime", CUPTI_ACTIVITY_KIND_RUNTIME}, {"driver", CUPTI_ACTIVITY_KIND_DRIVER},
};

// CUPTI asks for 8-byte alignment; a cache line keeps neighbours apart.
constexpr size_t kBufferAlignment = 64;

class BufferPool {
 public:
  void set_buffer_bytes(size_t bytes) { buffer_bytes_ = bytes; }
  size_t buffer_bytes() const { return buffer_bytes_; }

  // Null when memory is short; CUPTI then drops records and counts them.
  uint8_t *take() {
    {
      std::lock_guard<std::mutex> hold(mutex_);
      if (!free_.empty()) {
        uint8_t *buffer = free_.back();
        free_.pop_back();
        return buffer;
      }
    }
    allocated.fetch_add(1, std::memory_order_relaxed);
    return static_cast<uint8_t *>(std::aligned_alloc(kBufferAlignment, buffer_bytes_));
  }

  void give(uint8_t *buffer) {
    std::lock_guard<std::mutex> hold(mutex_);
    free_.push_back(buffer);
  }

  std::atomic<uint64_t> allocated{0};

 private:
  std::mutex mutex_;
  std::vector<uint8_t *> free_;
  size_t buffer_bytes_ = size_t{8} << 20;
};

// Never destroyed: CUPTI may hand buffers over while the process ends.
BufferPool &pool() {
  static BufferPool *const instance = new BufferPool;
  return *instance;
}

std::atomic<uint64_t> kernels{0};
std::atomic<uint64_t> others{0};
std::atomic<uint64_t> dropped{0};
std::atomic<uint64_t> buffers{0};

bool succeeded(CUptiResult result, const char *what) {
  if (result == CUPTI_SUCCESS) return true;
  const char *text = nullptr;
  cuptiGetResultString(result, &text);
  std::fprintf(stderr, "bare_cupti: %s: %s\n", what, text != nullptr ? text : "unknown error");
  return false;
}

void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *bytes, size_t *record_limit) {
  *buffer = pool().take();
  *bytes = *buffer != nullptr ? pool().buffer_bytes() : 0;
  *record_limit = 0;  // as many as fit
}

void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t, size_t valid_bytes) {
  uint64_t kernels_here = 0;
  uint64_t others_here = 0;
  CUpti_Activity *record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    const bool is_kernel =
        record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL;
    (is_kernel ? kernels_here : others_here) += 1;
  }
  kernels.fetch_add(kernels_here, std::memory_order_relaxed);
  others.fetch_add(others_here, std::memory_order_relaxed);
  buffers.fetch_add(1, std::memory_order_relaxed);
  size_t lost = 0;
  if (cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS) {
    dropped.fetch_add(lost, std::memory_order_relaxed);
  }
  pool().give(buffer);
}

void write_counts() {
  succeeded(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  const char *path = std::getenv("BARE_CUPTI_OUTPUT");
  FILE *output = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (path != nullptr && output == nullptr) std::perror("bare_cupti: BARE_CUPTI_OUTPUT");
  FILE *target = output != nullptr ? output : stderr;
  const auto value = [](const std::atomic<uint64_t> &counter) {
    return static_cast<unsigned long long>(counter.load());
  };
  std::fprintf(target,
               "{\"kernels\":%llu,\"others\":%llu,\"dropped\":%llu,\"buffers\":%llu,"
               "\"buffers_allocated\":%llu}\n",
               value(kernels), value(others), value(dropped), value(buffers), value(pool().allocated));
  if (output != nullptr) std::fclose(output);
}

// The number in an environment variable, or `otherwise` when it is absent or out of range.
unsigned long number_of(const char *variable, unsigned long low, unsigned long high, unsigned long otherwise) {
  const char *text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  char *end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (end != text && *end == '\0' && value >= low && value <= high) return value;
  std::fprintf(stderr, "bare_cupti: %s=%s is not a number from %lu to %lu; using %lu\n", variable, text, low, high,
               otherwise);
  return otherwise;
}

bool enable_extra_kinds() {
  const char *list = std::getenv("BARE_CUPTI_EXTRA");
  std::string_view rest = list != nullptr ? list : "";
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const ExtraKind *found = nullptr;
    for (const ExtraKind &extra : kExtraKinds) {
      if (extra.name == word) found = &extra;
    }
    if (found == nullptr) {
      std::fprintf(stderr, "bare_cupti: BARE_CUPTI_EXTRA: unknown kind '%s'\n", std::string(word).c_str());
      return false;
    }
    if (!succeeded(cuptiActivityEnable(found->kind), "cuptiActivityEnable")) return false;
  }
  return true;
}

}  // namespace

// Called by the driver when it initialises. Returns 1 on success, 0 on failure.
extern "C" __attribute__((visibility("default"))) int InitializeInjection(void) {
  pool().set_buffer_bytes(size_t{number_of("BARE_CUPTI_BUFFER_MIB", 1, 64, 8)} << 20);
  const unsigned long period = number_of("BARE_CUPTI_FLUSH_MS", 1, 60000, 0);
  const bool ready =
      succeeded(cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed), "cuptiActivityRegisterCallbacks") &&
      succeeded(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable") &&
      enable_extra_kinds() &&
      (period == 0 || succeeded(cuptiActivityFlushPeriod(static_cast<uint32_t>(period)), "cuptiActivityFlushPeriod"));
  if (!ready) return 0;
  std::atexit(write_counts);
  return 1;
}
