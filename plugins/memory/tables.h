// What tables have in common: which process a row is of, and times since its begin.
#pragma once

#include <sonde/sonde.hpp>

#include <cstdint>
#include <optional>

#include "publish.h"

namespace sonde::memory {

inline constexpr uint32_t kKey = SONDE_COLUMN_KEY;
inline constexpr uint32_t kHidden = SONDE_COLUMN_HIDDEN;
inline constexpr uint32_t kDown = SONDE_COLUMN_SORT_DOWN;

class Tables {
 public:
  Tables(const Memory &memory, const Host &host, sonde_session_t *session)
      : memory_(memory), host_(host), session_(session), objects_(memory.objects()) {}

 protected:
  Table table(const char *name, const char *title, const char *help) {
    Table result(host_, session_, kOrigin, name, title, help);
    const uint32_t hidden = objects_.processes().size() > 1 ? 0 : kHidden;
    result.u64("process", "1", "process id, empty when the capture does not name it", hidden);
    result.u64("source", "1", "0: this process; in a replay 1 + the file's index", kKey | kHidden);
    return result;
  }
  std::optional<uint64_t> process(uint32_t source) const {
    const auto found = memory_.process_ids().find(source);
    return found == memory_.process_ids().end() ? std::nullopt : std::optional<uint64_t>(found->second);
  }
  static void level_columns(Table &table) {
    table.text("level", "allocation: of the runtime; tensor: cut out of one. Levels lie inside each other", kKey)
        .u64("device", "1", "the runtime's number", kKey);
  }
  int64_t since_begin(uint32_t source, int64_t time_ns) const {
    const auto found = objects_.processes().find(source);
    const int64_t first = found == objects_.processes().end() ? time_ns : found->second.first_ns;
    return first == INT64_MAX ? 0 : time_ns - first;
  }

  const Memory &memory_;
  const Host &host_;
  sonde_session_t *session_;
  const Objects &objects_;
};

// Pools, segments, fragmentation, orders of streams, frees of nothing.
void publish_allocator_tables(const Memory &memory, const Host &host, sonde_session_t *session);

}  // namespace sonde::memory
