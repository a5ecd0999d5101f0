// A driver and a Compute Sanitizer of the tests' own, in one library: device memory is host memory, a stream is a thread
// that does its work in order, a kernel is a function. As in the real ones, one lock is held while the program is inside
// the driver and through all callbacks, so that driver calls of other threads wait for them; and unpatching a module waits
// for its kernels.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sanitizer_types.h"

namespace sonde::cuda::access::test {

// What a kernel knows of its launch.
struct KernelRun {
  uint32_t grid[3];
  uint32_t block[3];
  void *state;                              // the launch's user data; null: none was set
  std::map<uint32_t, std::string> patches;  // instruction -> patch function; empty: not patched
  uint64_t begin;                           // first program counter of the function
  uint32_t processor;                       // that it runs on
};
using Kernel = std::function<void(const KernelRun &)>;

// Library-wide counters, for tests of leaks.
struct FakeCounts {
  std::atomic<uint64_t> device_bytes{0};
  std::atomic<uint64_t> host_bytes{0};
  std::atomic<uint64_t> streams{0};
  std::atomic<uint64_t> modules{0};
  std::atomic<uint64_t> patched{0};  // modules that are patched now
  std::atomic<uint64_t> patches{0};  // times that a module was patched
  std::atomic<uint64_t> subscribers{0};
  std::atomic<uint64_t> bad_calls{0};  // with handles that are gone
};

struct FakeSettings {
  std::atomic<bool> refuse_subscribing{false};
  std::atomic<bool> refuse_patching{false};
  std::atomic<bool> refuse_memory{false};  // device memory
  std::atomic<int> copy_delay{0};          // of each copy to the host, ms
};

struct GraphNodeOfTest {
  Function function;
  uint64_t node;
};

class FakeDevice {
 public:
  virtual Context create_context(int32_t device = 0) = 0;
  virtual void destroy_context(Context context) = 0;

  virtual Module load_module(Context context, const std::string &code = "") = 0;
  virtual void unload_module(Module module) = 0;
  virtual Function add_function(Module module, const std::string &name, Kernel kernel) = 0;

  virtual Stream create_stream(Context context) = 0;

  // Memory of the program. `ordered`: by the stream, from a pool.
  virtual void *allocate(Context context, uint64_t bytes, uint32_t flags = 0, Stream ordered = nullptr) = 0;
  virtual void free(void *address, Stream ordered = nullptr) = 0;
  // Tells of memory without making any.
  virtual void tell_allocated(Context context, uint64_t address, uint64_t bytes, uint32_t flags = 0) = 0;
  virtual void tell_freed(Context context, uint64_t address, uint64_t bytes) = 0;
  // Tell of copies and sets without making any.
  virtual void tell_copy(const MemcpyData &copy) = 0;
  virtual void tell_set(const MemsetData &set) = 0;
  virtual void map(Context context, uint64_t address, uint64_t bytes) = 0;
  virtual void unmap(Context context, uint64_t address, uint64_t bytes) = 0;

  // A kernel launch as the program makes it. `stream` null: the context's own.
  virtual void launch(Context context, Function function, Stream stream = nullptr, uint32_t grid = 1,
                      uint32_t block = 32) = 0;

  virtual GraphExec create_graph(bool contains_device_launches = false) = 0;
  virtual void launch_graph(Context context, GraphExec graph, const std::vector<GraphNodeOfTest> &nodes,
                            Stream stream = nullptr) = 0;

  // Waits until everything in the stream is done; in all streams.
  virtual void synchronize(Context context, Stream stream = nullptr) = 0;
  virtual void synchronize_all() = 0;

  FakeCounts counts;
  FakeSettings settings;

 protected:
  ~FakeDevice() = default;
};

// The library exports this.
using FakeDeviceFunction = FakeDevice *(*)();
constexpr char kFakeDeviceName[] = "sonde_fake_device";

}  // namespace sonde::cuda::access::test
