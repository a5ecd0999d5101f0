#include "instructions.h"

namespace sonde::workload {

void UnitSums::add(const sonde_access_instruction_t &record) {
  const bool is_shared = record.memory == kSharedMemory;
  threads += record.threads;
  warps += record.warps;
  bytes += record.bytes;
  units += is_shared ? record.wavefronts : record.sectors;
  least_units += is_shared ? record.least_wavefronts : record.least_sectors;
}

void Instructions::add(const LaunchFacts &launch, const sonde_access_instruction_t &record) {
  if (record.memory != kGlobalMemory && record.memory != kSharedMemory) return;
  KernelUnits &kernel = kernels_.get(launch.kernel);
  if (kernel.last_launch != launch.launch) {
    kernel.last_launch = launch.launch;
    ++kernel.launches;
  }
  (record.memory == kSharedMemory ? kernel.shared : kernel.global).add(record);
  const bool is_inside = launch.function_begin != 0 && record.pc >= launch.function_begin;
  const InstructionKey key{launch.kernel, is_inside ? record.pc - launch.function_begin : record.pc, record.memory,
                           record.access, record.size};
  auto it = instructions_.find(key);
  if (it == instructions_.end()) {
    if (instructions_.size() >= static_cast<size_t>(options_->instruction_limit)) {
      ++left_out_;
      return;
    }
    it = instructions_.try_emplace(key).first;
  }
  it->second.add(record);
}

}  // namespace sonde::workload
