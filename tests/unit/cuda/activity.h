// Synthetic CUPTI activity records and buffers.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "cupti_types.h"

namespace sonde::test {

// Bytes of a record of `kind` as the library of `version` lays it out; 0: unknown here. The sizes are those of the
// headers of CUDA 13.0, which carry the older forms too; tests/abi/cupti compares them.
constexpr uint32_t record_bytes(uint32_t kind, uint32_t version) {
  using namespace sonde::cuda;
  switch (kind) {
    case kind::kConcurrentKernel:
    case kind::kKernel:
      return version >= kCupti13_0 ? 216 : version >= kCupti12_0 ? 208 : version >= kCupti11_8 ? 200 : 176;
    case kind::kMemcpy:
      return version >= kCupti12_8 ? 96 : version >= kCupti11_8 ? 88 : 80;
    case kind::kMemcpyPeer:
      return version >= kCupti11_8 ? 96 : 88;
    case kind::kMemset:
      return version >= kCupti11_8 ? 88 : 80;
    case kind::kSynchronization:
      return version >= kCupti12_8 ? 56 : 40;
    case kind::kMemory:
      return version >= kCupti13_0 ? 128 : 120;
    case kind::kMemoryPool:
      return version >= kCupti13_0 ? 80 : 72;
    case kind::kRuntime:
    case kind::kDriver:
      return 40;
    case kind::kOverhead:
      return version >= kCupti12_8 ? 56 : 40;
    case kind::kDevice:
      return version >= kCupti12_8 ? 184 : 176;
    case kind::kContext:
      return version >= kCupti13_0 ? 32 : version >= kCupti12_8 ? 24 : 16;
    case kind::kStream:
      return 24;
    case kind::kModule:
      return 24;
    case kind::kFunction:
      return 32;
    case kind::kGraphTrace:
      return version >= kCupti12_8 ? 56 : 48;
    case kind::kDeviceGraphTrace:
      return 56;
    case kind::kUnifiedMemoryCounter:
      return version >= kCupti12_8 ? 104 : 64;
    case 39:
      return 24;  // external correlation, which Sonde never asks for
    default:
      return 0;
  }
}

// Records one after the other, each as long as `version` makes it.
class ActivityBuffer {
 public:
  explicit ActivityBuffer(uint32_t version) : version_(version) {}

  // Appends `record` and returns where it lies. Bytes that the struct does not cover are 0xEE, which no field may show.
  template <typename Record>
  void add(const Record &record) {
    const uint32_t bytes = record_bytes(record.kind, version_);
    const size_t at = words_.size();
    words_.resize(at + bytes / 8, 0xEEEEEEEEEEEEEEEEu);
    std::memcpy(&words_[at], &record, std::min<size_t>(sizeof(record), bytes));
  }

  uint8_t *data() { return reinterpret_cast<uint8_t *>(words_.data()); }
  size_t size() const { return words_.size() * 8; }
  void cut(size_t bytes) { words_.resize(bytes / 8); }

 private:
  uint32_t version_;
  std::vector<uint64_t> words_;
};

// Walks a buffer as cuptiActivityGetNextRecord does.
inline sonde::cuda::CuptiResult next_record(uint32_t version, uint8_t *buffer, size_t valid_bytes,
                                            sonde::cuda::ActivityHeader **record) {
  using namespace sonde::cuda;
  uint8_t *next = buffer;
  if (*record != nullptr) {
    const uint32_t bytes = record_bytes((*record)->kind, version);
    if (bytes == 0) return kCuptiInvalidKind;
    next = reinterpret_cast<uint8_t *>(*record) + bytes;
  }
  if (next >= buffer + valid_bytes) return kCuptiMaxLimitReached;
  *record = reinterpret_cast<ActivityHeader *>(next);
  return kCuptiSuccess;
}

inline sonde::cuda::KernelActivity kernel(uint64_t start, uint64_t end, uint32_t correlation, const char *name) {
  sonde::cuda::KernelActivity record = {};
  record.kind = sonde::cuda::kind::kConcurrentKernel;
  record.start = start;
  record.end = end;
  record.correlation = correlation;
  record.name = name;
  return record;
}

}  // namespace sonde::test
