// Arbitrary bytes as packed warp accesses (first byte even) or device events. Nothing outside them is read, and a walk
// that is not damaged ends at their end.
#include <cstdint>
#include <cstdlib>
#include <span>

#include <sonde/toolkit/warp_records.h>

using sonde::toolkit::DeviceEvents;
using sonde::toolkit::WarpAccess;
using sonde::toolkit::WarpRecords;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  volatile uint64_t sum = 0;
  if (data[0] % 2 == 0) {
    WarpRecords records(bytes);
    WarpAccess access;
    while (records.next(access)) {
      access.for_each_lane([&](uint32_t lane, uint64_t address) {
        if (access.address(lane) != address) std::abort();
        for (const uint8_t byte : access.value(lane)) sum = sum + byte;
      });
    }
    if (records.damaged() != (records.unread() != 0)) std::abort();
  } else {
    DeviceEvents events(bytes);
    sonde_device_event_t event;
    while (events.next(event)) sum = sum + event.a;
    if (events.damaged() != (events.unread() != 0)) std::abort();
  }
  return 0;
}
