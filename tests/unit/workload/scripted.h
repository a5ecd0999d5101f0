// Objects, launches and touches made by hand, as a MemoryHistory would tell them.
#pragma once

#include <sonde/spaces/access.h>
#include <sonde/toolkit/memory_history.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include <sonde/spaces/access_packed.h>

namespace sonde::workload {

inline constexpr auto kAllocationLevel = toolkit::ObjectLevel::kAllocation;
inline constexpr auto kTensorLevel = toolkit::ObjectLevel::kTensor;

class Script {
 public:
  toolkit::MemoryObject object(uint64_t address, uint64_t bytes, toolkit::ObjectLevel level = kAllocationLevel,
                               uint32_t device = 0) {
    toolkit::MemoryObject out;
    out.id = ++objects_;
    out.level = level;
    out.address = address;
    out.bytes = bytes;
    out.device = device;
    return out;
  }

  // The next launch of the process, at `time_ns`.
  toolkit::MemoryOperation launch(int64_t time_ns = 0, uint64_t accesses = 0, uint32_t device = 0) {
    toolkit::MemoryOperation out;
    out.kind = toolkit::OperationKind::kKernel;
    out.index = operations_++;
    out.kernels = launches_++;
    out.launch = launches_;
    out.time_ns = time_ns;
    out.device = device;
    out.launch_flags = SONDE_LAUNCH_WATCHED;
    out.accesses = accesses;
    return out;
  }
  toolkit::MemoryOperation copy(int64_t time_ns = 0) {
    toolkit::MemoryOperation out;
    out.kind = toolkit::OperationKind::kCopy;
    out.index = operations_++;
    out.kernels = launches_;
    out.time_ns = time_ns;
    return out;
  }

  static toolkit::MemoryTouch touch(const toolkit::MemoryObject &object, uint64_t reads, uint64_t writes = 0) {
    toolkit::MemoryTouch out;
    out.object = &object;
    out.reads = reads;
    out.writes = writes;
    out.read_bytes = 4 * reads;
    out.write_bytes = 4 * writes;
    return out;
  }

 private:
  uint64_t objects_ = 0;
  uint64_t operations_ = 0;
  uint64_t launches_ = 0;
};

inline toolkit::MemoryObject freed(toolkit::MemoryObject object) {
  object.end = toolkit::ObjectEnd::kFreed;
  return object;
}

// One packed warp access: lane i of the mask touches base + stride * i.
struct WarpEntry {
  uint32_t block = 0;
  uint32_t warp = 0;
  uint32_t pc = 0;
  uint32_t kind = 1;    // 1 read, 2 write, 3 atomic
  uint32_t memory = 0;  // 0 global, 1 shared
  uint64_t base = 0;
  int32_t stride = 4;
  uint32_t size = 4;
  uint32_t mask = UINT32_MAX;
};

inline std::vector<uint64_t> packed(const std::vector<WarpEntry> &entries) {
  std::vector<uint64_t> words;
  for (const WarpEntry &entry : entries) {
    sonde_warp_access_t head{};
    head.size8 = sizeof(head) / 8;
    head.form = SONDE_WARP_AFFINE;
    head.mask = entry.mask;
    head.base = entry.base;
    head.stride = entry.stride;
    head.block = entry.block;
    head.pc = entry.pc;
    head.warp = static_cast<uint16_t>(entry.warp);
    head.size = static_cast<uint8_t>(entry.size);
    head.access = static_cast<uint8_t>(entry.kind | entry.memory << 4);
    const size_t at = words.size();
    words.resize(at + sizeof(head) / 8);
    std::memcpy(words.data() + at, &head, sizeof(head));
  }
  return words;
}

}  // namespace sonde::workload
