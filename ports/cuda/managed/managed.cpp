#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include <sonde/host.h>
#include <sonde/ranges.h>
#include <sonde/version.h>

#include "sonde_managed.h"

namespace {

constexpr uint64_t kUsualCap = uint64_t{2} << 30;
constexpr uint32_t kAttachGlobal = 1;  // CU_MEM_ATTACH_GLOBAL
constexpr uint32_t kMessages = 8;      // printed at most

thread_local std::string last_error;
std::atomic<uint32_t> messages{0};

void *refuse(const std::string &reason) {
  last_error = reason;
  if (messages.fetch_add(1, std::memory_order_relaxed) < kMessages) {
    std::fprintf(stderr, "sonde_managed: %s\n", reason.c_str());
  }
  return nullptr;
}

// ---- the driver ----------------------------------------------------------------------------------------------------

struct Driver {
  int32_t (*initialise)(uint32_t flags) = nullptr;
  int32_t (*get_current)(void **context) = nullptr;
  int32_t (*set_current)(void *context) = nullptr;
  int32_t (*primary_retain)(void **context, int32_t device) = nullptr;
  int32_t (*allocate)(uint64_t *address, size_t bytes, uint32_t flags) = nullptr;
  int32_t (*release)(uint64_t address) = nullptr;
  int32_t (*error_name)(int32_t error, const char **name) = nullptr;
  std::string error;

  std::string name_of(int32_t result) const {
    const char *name = nullptr;
    if (error_name == nullptr || error_name(result, &name) != 0 || name == nullptr) return std::to_string(result);
    return name;
  }
};

template <typename Function>
bool resolve(void *library, const char *name, Function &out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

Driver open_driver() {
  Driver driver;
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    driver.error = std::string("no CUDA driver: ") + dlerror();
    return driver;
  }
  const bool complete =
      resolve(library, "cuInit", driver.initialise) & resolve(library, "cuCtxGetCurrent", driver.get_current) &
      resolve(library, "cuCtxSetCurrent", driver.set_current) &
      resolve(library, "cuDevicePrimaryCtxRetain", driver.primary_retain) &
      resolve(library, "cuMemAllocManaged", driver.allocate) & resolve(library, "cuMemFree_v2", driver.release);
  resolve(library, "cuGetErrorName", driver.error_name);
  if (!complete) {
    driver.error = "the CUDA driver lacks functions of managed memory";
  } else if (const int32_t result = driver.initialise(0); result != 0) {
    driver.error = "the CUDA driver does not start: " + driver.name_of(result);
  }
  return driver;
}

const Driver &driver() {
  static const Driver instance = open_driver();
  return instance;
}

// ---- the host of Sonde, if one is in the process -------------------------------------------------------------------

const sonde_ranges_service_t *find_ranges() {
  using HostFunction = const sonde_host_t *(*)();
  auto function = reinterpret_cast<HostFunction>(dlsym(RTLD_DEFAULT, "sonde_host"));
  if (function == nullptr) {
    // A library that was loaded for itself alone is found by its name.
    const std::string name = "libsonde.so." + std::to_string(SONDE_ABI_MAJOR);
    for (const char *candidate : {"libsonde_inject.so", name.c_str()}) {
      void *const library = dlopen(candidate, RTLD_NOW | RTLD_NOLOAD);
      if (library == nullptr) continue;
      function = reinterpret_cast<HostFunction>(dlsym(library, "sonde_host"));
      if (function != nullptr) break;
    }
  }
  const void *table = nullptr;
  const sonde_host_t *const host = function != nullptr ? function() : nullptr;
  if (host == nullptr ||
      host->get_service(SONDE_RANGES_SERVICE, SONDE_NEED(sonde_ranges_service_t, watched), &table) != SONDE_OK) {
    return nullptr;
  }
  return static_cast<const sonde_ranges_service_t *>(table);
}

// Looked for at each block until it is found: blocks are few, and a host may be loaded late.
const sonde_ranges_service_t *ranges() {
  static std::atomic<const sonde_ranges_service_t *> found{nullptr};
  const auto *known = found.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = find_ranges();
    found.store(known, std::memory_order_release);
  }
  return known;
}

// ---- state ---------------------------------------------------------------------------------------------------------

// "1Gi" in bytes; the usual cap, with a message, for what is no size.
uint64_t cap_of_environment() {
  const char *text = secure_getenv("SONDE_MANAGED_CAP");
  if (text == nullptr || *text == '\0') return kUsualCap;
  char *end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  uint32_t shift = 0;
  if (std::strcmp(end, "Ki") == 0) shift = 10;
  if (std::strcmp(end, "Mi") == 0) shift = 20;
  if (std::strcmp(end, "Gi") == 0) shift = 30;
  const bool known = *end == '\0' || shift != 0;
  if (end == text || *text == '-' || !known || number > (UINT64_MAX >> shift)) {
    std::fprintf(stderr,
                 "sonde_managed: SONDE_MANAGED_CAP is \"%s\", a number of bytes such as 512Mi was expected; "
                 "the cap is 2 GiB\n",
                 text);
    return kUsualCap;
  }
  return static_cast<uint64_t>(number) << shift;
}

struct Block {
  uint64_t bytes;
  bool announced;
};

struct State {
  std::mutex mutex;
  uint64_t cap = cap_of_environment();
  uint64_t live_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t total_blocks = 0;
  uint64_t refused_blocks = 0;
  uint64_t refused_bytes = 0;
  uint64_t failed_blocks = 0;
  uint64_t unknown_frees = 0;
  uint64_t announced = 0;
  std::unordered_map<uint64_t, Block> blocks;
  std::map<int, void *> contexts;  // primary contexts that were retained here
};

// Never destroyed: a framework may free while the process ends.
State &state() {
  static State *const instance = new State;
  return *instance;
}

// Makes a context current for the length of a call, where the thread has none.
class UsableContext {
 public:
  UsableContext(const Driver &driver, int device) : driver_(driver) {
    void *current = nullptr;
    if (driver_.get_current(&current) == 0 && current != nullptr) return;
    void *context = nullptr;
    {
      std::lock_guard<std::mutex> hold(state().mutex);
      void *&kept = state().contexts[device];
      if (kept == nullptr) result_ = driver_.primary_retain(&kept, device);
      context = kept;
    }
    if (result_ == 0) result_ = driver_.set_current(context);
    made_current_ = result_ == 0;
  }
  ~UsableContext() {
    if (made_current_) driver_.set_current(nullptr);
  }
  UsableContext(const UsableContext &) = delete;
  UsableContext &operator=(const UsableContext &) = delete;
  int32_t result() const { return result_; }

 private:
  const Driver &driver_;
  int32_t result_ = 0;
  bool made_current_ = false;
};

void announce(uint64_t address, uint64_t bytes, int device) {
  const auto *service = ranges();
  if (service == nullptr) return;
  sonde_range_t range = {};
  range.struct_size = sizeof(range);
  range.kind = SONDE_RANGE_POOL;
  range.address = address;
  range.bytes = bytes;
  range.device = static_cast<uint32_t>(device);
  if (service->announce(&range, nullptr) != SONDE_OK) return;
  std::lock_guard<std::mutex> hold(state().mutex);
  ++state().announced;
  if (const auto found = state().blocks.find(address); found != state().blocks.end()) found->second.announced = true;
}

}  // namespace

// ---- the library's functions ---------------------------------------------------------------------------------------

void *sonde_managed_malloc(ssize_t size, int device, void *stream) {
  (void)stream;
  if (size <= 0) return nullptr;
  const auto bytes = static_cast<uint64_t>(size);
  const Driver &cuda = driver();
  State &all = state();
  {
    std::lock_guard<std::mutex> hold(all.mutex);
    if (!cuda.error.empty()) {
      ++all.failed_blocks;
      return refuse(cuda.error);
    }
    if (bytes > all.cap || all.live_bytes > all.cap - bytes) {
      ++all.refused_blocks;
      all.refused_bytes += bytes;
      return refuse(std::to_string(bytes) + " bytes of managed memory refused: " + std::to_string(all.live_bytes) +
                    " live, the cap is " + std::to_string(all.cap) + " (SONDE_MANAGED_CAP)");
    }
    // Reserved before the driver is asked, so that threads together stay below the cap.
    all.live_bytes += bytes;
  }
  const UsableContext context(cuda, device);
  uint64_t address = 0;
  const int32_t result = context.result() != 0 ? context.result() : cuda.allocate(&address, bytes, kAttachGlobal);
  {
    std::lock_guard<std::mutex> hold(all.mutex);
    if (result != 0) {
      all.live_bytes -= bytes;
      ++all.failed_blocks;
      return refuse(std::to_string(bytes) + " bytes of managed memory: the driver says " + cuda.name_of(result));
    }
    ++all.total_blocks;
    all.peak_bytes = std::max(all.peak_bytes, all.live_bytes);
    all.blocks[address] = {bytes, false};
  }
  announce(address, bytes, device);
  return reinterpret_cast<void *>(address);
}

void sonde_managed_free(void *pointer, ssize_t size, int device, void *stream) {
  (void)size;
  (void)stream;
  if (pointer == nullptr) return;
  const auto address = reinterpret_cast<uint64_t>(pointer);
  State &all = state();
  bool announced = false;
  {
    std::lock_guard<std::mutex> hold(all.mutex);
    const auto found = all.blocks.find(address);
    if (found == all.blocks.end()) {
      ++all.unknown_frees;
      refuse("a pointer that is no live block was freed");
      return;
    }
    all.live_bytes -= found->second.bytes;
    announced = found->second.announced;
    all.blocks.erase(found);
  }
  // Retired first: once the driver has it back, the address may be another block's.
  if (announced) ranges()->retire(SONDE_RANGE_POOL, address);
  const Driver &cuda = driver();
  const UsableContext context(cuda, device);
  if (const int32_t result = cuda.release(address); result != 0) {
    refuse("a block was not given back: the driver says " + cuda.name_of(result));
  }
}

void sonde_managed_set_cap(uint64_t bytes) {
  std::lock_guard<std::mutex> hold(state().mutex);
  state().cap = bytes;
}

uint64_t sonde_managed_statistic(uint32_t which) {
  State &all = state();
  std::lock_guard<std::mutex> hold(all.mutex);
  switch (which) {
    case SONDE_MANAGED_CAP:
      return all.cap;
    case SONDE_MANAGED_LIVE_BYTES:
      return all.live_bytes;
    case SONDE_MANAGED_PEAK_BYTES:
      return all.peak_bytes;
    case SONDE_MANAGED_LIVE_BLOCKS:
      return all.blocks.size();
    case SONDE_MANAGED_TOTAL_BLOCKS:
      return all.total_blocks;
    case SONDE_MANAGED_REFUSED_BLOCKS:
      return all.refused_blocks;
    case SONDE_MANAGED_REFUSED_BYTES:
      return all.refused_bytes;
    case SONDE_MANAGED_FAILED_BLOCKS:
      return all.failed_blocks;
    case SONDE_MANAGED_UNKNOWN_FREES:
      return all.unknown_frees;
    case SONDE_MANAGED_ANNOUNCED:
      return all.announced;
    default:
      return UINT64_MAX;
  }
}

const char *sonde_managed_last_error(void) { return last_error.c_str(); }
