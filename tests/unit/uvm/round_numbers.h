// Parameters with which times can be calculated in the head.
#pragma once

#include "parameters.h"
#include "simulator.h"
#include "trace.h"

namespace sonde::uvm {

inline constexpr uint64_t kUnlimited = UINT64_MAX;

// A page of 64 KiB takes 1 us to the device and 2 us to the host; a block has 32 of them.
inline PagingParameters round_numbers() {
  PagingParameters out;
  out.to_device = 65.536e9;
  out.to_host = 32.768e9;
  out.fault_rate = 65.536e9;
  out.prefetch_call_ns = 5'000;
  out.batch_ns = 10'000;
  out.block_ns = 1'000;
  out.window_bytes = kBlockBytes;
  out.populate_rate = 131.072e9;  // a page in 0.5 us
  out.evict_ns = 3'000;
  out.host_fault_ns = 7'000;
  out.host_fault_rate = 16.384e9;  // a page in 4 us
  out.remote_rate = 6.5536e9;      // a page in 10 us
  out.launch_ns = 0;
  return out;
}

// Allocations of one block each, and launches that touch some of them.
struct Blocks {
  Trace trace;
  uint32_t kernel = trace.kernel("kernel");

  explicit Blocks(uint32_t count, Home home = Home::kHost) {
    for (uint32_t index = 0; index < count; ++index) trace.allocate(kBlockBytes, home);
  }
  uint32_t set(std::initializer_list<uint32_t> blocks, bool writes = false) {
    TouchSet all;
    for (const uint32_t block : blocks) all.push_back({block, 0, kBlockPages, writes, !writes, 1});
    return trace.intern(std::move(all));
  }
  Blocks &launch(std::initializer_list<uint32_t> blocks, int64_t duration_ns = 0, bool writes = false) {
    trace.launch(kernel, set(blocks, writes), duration_ns);
    return *this;
  }
  Blocks &host(std::initializer_list<uint32_t> blocks, bool writes = true) {
    trace.host_touch(set(blocks, writes));
    return *this;
  }
};

inline Move fetch(uint32_t block, uint32_t needed = kNone) { return {block, 0, kBlockPages, false, needed}; }
inline Move evict(uint32_t block) { return {block, 0, kBlockPages, true, kNone}; }

}  // namespace sonde::uvm
