// What a device can do at most: work and traffic per second, measured or given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sonde::workload {

// Kinds of work that have ceilings of their own. Tensor: of tensor cores, fp16 and bf16.
enum class Work : uint8_t { kFp64, kFp32, kFp16, kTensor, kTensorFp64, kTensorTf32, kTensorFp8 };
inline constexpr size_t kWorks = 7;
// As in the option `ceilings`: "fp64", "fp32", "fp16", "tensor", "tensor_fp64", "tensor_tf32", "tensor_fp8".
const char *work_name(Work work);

enum class Traffic : uint8_t { kDram, kL2 };
inline constexpr size_t kTraffics = 2;
const char *traffic_name(Traffic traffic);  // "dram", "l2"

// Per second; 0: not known.
struct Ceilings {
  double work[kWorks] = {};        // operations
  double traffic[kTraffics] = {};  // bytes

  bool any() const;
};

// Operations of each launch of the kernels whose names contain `part`, where no counters say.
struct GivenWork {
  std::string part;
  Work work = Work::kFp32;
  double operations = 0;
};

}  // namespace sonde::workload
