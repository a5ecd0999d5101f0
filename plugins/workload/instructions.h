// Coalescing and bank conflicts, by kernel and by instruction.
#pragma once

#include <sonde/spaces/access.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "kernel_map.h"
#include "launch_book.h"
#include "options.h"

namespace sonde::workload {

inline constexpr uint32_t kGlobalMemory = 1;  // `memory` of sonde.access.instruction
inline constexpr uint32_t kSharedMemory = 2;
inline constexpr uint64_t kSectorBytes = 32;

// Sums of instruction records. Units are sectors of global memory, or wavefronts of shared memory.
struct UnitSums {
  uint64_t threads = 0;
  uint64_t warps = 0;
  uint64_t bytes = 0;  // asked for
  uint64_t units = 0;
  uint64_t least_units = 0;

  // 1: as few as possible. Empty where nothing was accessed.
  std::optional<double> ratio() const {
    if (least_units == 0) return std::nullopt;
    return static_cast<double>(units) / static_cast<double>(least_units);
  }
  uint64_t excess() const { return units > least_units ? units - least_units : 0; }
  void add(const sonde_access_instruction_t &record);
};

struct InstructionKey {
  KernelKey kernel;
  uint64_t offset = 0;  // bytes from the function's begin; the address where that is not known
  uint32_t memory = 0;
  uint32_t access = 0;
  uint32_t size = 0;

  auto operator<=>(const InstructionKey &) const = default;
};

struct InstructionKeyHash {
  size_t operator()(const InstructionKey &key) const {
    return mix(KernelKeyHash()(key.kernel) + mix(key.offset * 64 + key.memory * 16 + key.access) + key.size);
  }
};

struct KernelUnits {
  UnitSums global;
  UnitSums shared;
  uint64_t launches = 0;  // with records
  uint64_t last_launch = 0;
};

// Memory: a row for each kernel, and instruction_limit instructions; more share none and are counted.
class Instructions {
 public:
  Instructions(const Options &options, uint32_t other_kernels)
      : options_(&options), kernels_(static_cast<uint64_t>(options.name_limit), other_kernels) {}

  // A record of `launch`.
  void add(const LaunchFacts &launch, const sonde_access_instruction_t &record);
  // One whose launch is not known.
  void add_lost() { ++lost_; }

  const KernelMap<KernelUnits> &kernels() const { return kernels_; }
  const std::unordered_map<InstructionKey, UnitSums, InstructionKeyHash> &instructions() const { return instructions_; }
  uint64_t left_out() const { return left_out_; }
  uint64_t lost() const { return lost_; }

 private:
  const Options *options_;
  KernelMap<KernelUnits> kernels_;
  std::unordered_map<InstructionKey, UnitSums, InstructionKeyHash> instructions_;
  uint64_t left_out_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace sonde::workload
