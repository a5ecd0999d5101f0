// A trace for ui.perfetto.dev and chrome://tracing: one track an object, one a stream, and the level over time.
#pragma once

#include <sonde/toolkit/memory_history.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "options.h"

namespace sonde::memory {

class Memory;

// Operations are written as they come, objects at the end, so its size in memory does not grow. A file that cannot be
// written is no reason to stop: error() says what happened.
class TraceFile {
 public:
  using Names = std::function<std::string(uint32_t name)>;

  TraceFile(const std::string &path, const Options &options);

  void operation(const toolkit::MemoryOperation &operation, const Names &names);
  // Writes the objects of `memory`, and closes the file.
  void finish(const Memory &memory);

  uint64_t operations() const { return operations_; }
  uint64_t not_written() const { return not_written_; }
  // "" when all is well.
  const std::string &error() const { return error_; }

 private:
  struct Waiting {  // for the next operation of its stream, which ends it
    double at = 0;
    std::string event;  // all but its length
  };

  void event(const std::string &json);
  void write_waiting(const Waiting &waiting, double next);
  double place(int64_t time_ns, uint64_t operation);
  void objects(const Memory &memory);

  std::string path_;
  bool time_axis_;
  uint64_t limit_;
  std::ofstream file_;
  bool is_first_ = true;
  bool has_origin_ = false;
  int64_t origin_ns_ = 0;
  uint64_t operations_ = 0;
  uint64_t not_written_ = 0;
  std::string error_;
  std::map<std::tuple<uint32_t, uint64_t>, Waiting> waiting_;  // source, stream
};

// Text between quotation marks of JSON.
std::string json_escape(const std::string &text);

}  // namespace sonde::memory
