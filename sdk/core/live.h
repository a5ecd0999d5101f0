// The .live file: ring heads and loss counters in a shared mapping, so that what a killed process had emitted and not
// written can still be counted.
//
// The file is a LiveHeader followed by `capacity` LiveStream rows. Rows are used in order and never reused; a thread
// past the last row keeps its head in plain memory and sets `overflow`. All integers are little-endian.
#pragma once

#include <cstdint>

namespace sonde::core {

inline constexpr uint64_t kLiveMagic = 0x0045564c44534f53;  // "SOSDLVE\0"
inline constexpr uint32_t kLiveVersion = 1;

struct LiveHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t capacity;  // rows
  uint32_t used;      // rows in use
  uint32_t overflow;  // 1: streams without a row exist, so the loss is a lower bound
  uint64_t process;
  uint64_t lost_other;  // records lost without a stream (port buffers refused, ...)
  uint64_t reserved[3];
};

struct LiveStream {
  uint64_t stream;     // id in the capture; 0: unused
  uint64_t published;  // bytes emitted by the stream's thread, or submitted by a port
  uint64_t delivered;  // bytes taken out of the ring
  uint64_t lost_full;  // records dropped: ring full
  uint64_t lost_big;   // records dropped: too big
  uint64_t lost_overwritten;
  uint64_t lost_vendor;
  uint64_t reserved;
};

static_assert(sizeof(LiveHeader) == 64 && sizeof(LiveStream) == 64);

}  // namespace sonde::core
