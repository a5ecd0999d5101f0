// Records of what the stand-in does: those that the port cuda_access would emit, into the session of `sonde record`.
#pragma once

#include <sonde/spaces/access.h>
#include <sonde/spaces/access_packed.h>
#include <sonde/spaces/device.h>
#include <sonde/spaces/memory.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace standin {

inline constexpr uint32_t kDeviceMemory = SONDE_MEMORY_DEVICE;
inline constexpr uint32_t kManagedMemory = SONDE_MEMORY_MANAGED;

struct Transfer {
  uint64_t source = 0, target = 0;
  uint64_t width = 0, rows = 0, source_pitch = 0, target_pitch = 0;
  uint64_t stream = 0;
  uint32_t value = 0;
  bool is_from_device = false, is_to_device = false, is_set = false, is_async = false;
};

// Without a session it does nothing. One thread.
class Recorder {
 public:
  void allocated(uint64_t address, uint64_t bytes, uint32_t kind, uint64_t pool, uint64_t stream);
  void freed(uint64_t address, uint64_t pool, uint64_t stream);
  void transferred(const Transfer &transfer);
  // `kind`: SONDE_SYNC_*.
  void synchronised(uint32_t kind, uint64_t stream, uint64_t event);

  void begin_launch(const void *kernel, uint64_t stream, uint32_t grid, uint32_t block);
  void begin_thread(uint32_t block, uint32_t thread);
  void access(uint64_t pc, uint64_t address, uint32_t bytes, bool is_write);
  void end_block() { flush_warp(); }
  void end_launch();

 private:
  static constexpr uint64_t kPageBytes = 4096;
  // `access` of an instruction.
  static constexpr uint32_t kRead = 1, kWrite = 2;

  struct Object {
    uint64_t bytes = 0, ordinal = 0;
    uint32_t kind = 0;
    uint64_t reads = 0, writes = 0, read_bytes = 0, write_bytes = 0;
    std::vector<uint8_t> touched = {};  // a byte each: kRead, kWrite
    std::vector<uint64_t> page_counts = {};
  };
  // Of one lane; occurrences of one instruction are matched in order.
  struct LaneAccess {
    uint64_t pc, address;
    uint32_t occurrence, lane, bytes;
    bool is_write, is_shared;
  };

  sonde::Session *session();
  Object *find(uint64_t address);
  void emit(const void *fixed, size_t fixed_bytes, const std::vector<uint8_t> &variable);
  void emit_object(uint64_t address, const Object &object);
  void emit_pages(uint64_t address, const Object &object);
  void emit_intervals(uint64_t address, const Object &object, uint32_t kind);
  void emit_instructions();
  void emit_warps();
  void flush_warp();
  void warp_access(const LaneAccess *lanes, size_t count);

  bool tried_ = false;
  std::optional<sonde::Session> session_;
  std::map<uint64_t, Object> live_;
  uint64_t last_begin_ = 0;
  Object *last_ = nullptr;  // of live_; valid within a launch
  uint64_t ordinals_ = 0;

  bool in_launch_ = false;
  sonde_access_launch_t launch_ = {};
  uint64_t launches_ = 0;
  uint32_t block_ = 0, warp_ = 0, lane_ = 0;
  std::vector<LaneAccess> lanes_;                                // of the warp that runs
  std::unordered_map<uint64_t, uint32_t> occurrences_;           // of the thread that runs, by instruction
  std::map<uint64_t, sonde_access_instruction_t> instructions_;  // by program counter
  std::vector<uint8_t> warps_;
  uint64_t warp_count_ = 0;
};

Recorder &recorder();

}  // namespace standin
