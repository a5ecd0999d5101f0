// From what a launch left in its State to records of the sessions. On the port's threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "port.h"
#include "watcher.h"

namespace sonde::cuda::access {

// Reads one finished launch after the other. Its memory stays with the contexts, so one serves all sessions.
class Readout {
 public:
  explicit Readout(const SanitizerApi &api) : api_(api) {}

  // Reads the launch's results and hands them to the ports; clears the slot and gives it back. `finished`: the launch
  // is over, else only what the host can see without the device is read. `watermark`: no later launch began before.
  void read(Watcher &watcher, LaunchEntry &entry, const std::vector<Port *> &ports, bool finished, uint64_t watermark);

  // A context ended, perhaps the one that its memory is of. [any]
  void forget_memory() { forget_ = true; }

  // Text about the last read that people should know, "" when there is none.
  std::string take_trouble() { return std::exchange(trouble_, {}); }

 private:
  struct Pinned {
    uint8_t *memory = nullptr;
    uint64_t bytes = 0;
  };
  struct Kernels {
    Function count = nullptr;
    Function sum = nullptr;
    Function write = nullptr;
    uint8_t *scratch = nullptr;
    uint64_t scratch_bytes = 0;
  };

  bool copy(Space &space, void *to, const void *from, uint64_t bytes);
  uint8_t *staging(uint64_t bytes);
  void emit_launch(const LaunchEntry &entry, RecordWriter &writer) const;
  void emit_objects(const LaunchEntry &entry, RecordWriter &writer) const;
  void emit_instructions(const LaunchEntry &entry, RecordWriter &writer) const;
  void emit_invalid(Watcher &watcher, const LaunchEntry &entry, RecordWriter &writer) const;
  void read_counters(LaunchEntry &entry, const uint8_t *image);
  void read_pages(LaunchEntry &entry, const std::vector<RecordWriter *> &writers);
  void read_intervals(LaunchEntry &entry, const std::vector<RecordWriter *> &writers);
  Kernels *kernels(Space &space);

  const SanitizerApi &api_;
  std::map<Space *, Kernels> kernels_;
  Pinned pinned_;
  std::atomic<bool> forget_{false};
  std::vector<uint64_t> totals_;  // by position and counter
  std::vector<InstructionCounters> instructions_;
  uint64_t accesses_ = 0;
  uint64_t outside_ = 0;
  uint64_t readable_ = 0;
  uint64_t dropped_ = 0;
  std::string trouble_;
};

// Sorts blocks and calls fn(std::span<const uint32_t>) for each run of neighbours, of `most` at the most.
template <typename Function>
void for_each_run(std::vector<uint32_t> &blocks, size_t most, Function &&fn) {
  std::sort(blocks.begin(), blocks.end());
  for (size_t first = 0; first < blocks.size();) {
    size_t count = 1;
    while (count < most && first + count < blocks.size() && blocks[first + count] == blocks[first] + count) ++count;
    fn(std::span<const uint32_t>(blocks).subspan(first, count));
    first += count;
  }
}

// One block of records (or `bytes` of it, head included) into streams of the ports; settles it in place. `number`: of the
// carrying thread.
void emit_block(const std::vector<Port *> &ports, uint8_t *block, uint64_t bytes, int64_t number, uint64_t watermark);

// A block that could not be read is counted as one record, for how many it held is not known.
void lose_block(const std::vector<Port *> &ports);

}  // namespace sonde::cuda::access
