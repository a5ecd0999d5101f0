// A small program on the tests' own device: a context with a module, memory at addresses that nobody reads, kernels.
#pragma once

#include <atomic>

#include "port_fixture.h"

namespace sonde::cuda::access::test {

// Addresses that no other test has, aligned to 2 MiB.
inline uint64_t fresh_addresses(uint64_t bytes) {
  static std::atomic<uint64_t> next{uint64_t{1} << 44};
  return next.fetch_add((bytes + (uint64_t{4} << 20)) & ~((uint64_t{2} << 20) - 1));
}

class Program {
 public:
  Program() : context(device().create_context()), module(device().load_module(context)) {}

  // Memory of the program, told of and not made.
  uint64_t allocate(uint64_t bytes, uint32_t flags = 0) {
    const uint64_t address = fresh_addresses(bytes);
    device().tell_allocated(context, address, bytes, flags);
    return address;
  }
  void free(uint64_t address, uint64_t bytes) { device().tell_freed(context, address, bytes); }

  Function kernel(const std::string &name, std::function<void(PatchPlayer &)> body) {
    return device().add_function(module, name, [body = std::move(body)](const KernelRun &run) {
      PatchPlayer player(run);
      body(player);
    });
  }
  void launch(Function function, Stream stream = nullptr) { device().launch(context, function, stream); }
  // A kernel that is launched once.
  void run(std::function<void(PatchPlayer &)> body, const std::string &name = "kernel") {
    launch(kernel(name, std::move(body)));
    device().synchronize(context);
  }

  Context context;
  Module module;
};

}  // namespace sonde::cuda::access::test
