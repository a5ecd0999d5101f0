// What a process that did not end in order had emitted and not written: from the live file beside its capture.
#pragma once

#include <sonde/ledger.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/live.h"

namespace sonde::store {

// A live file as it was left behind.
struct LiveState {
  bool overflow = false;  // streams without a row existed
  uint64_t process = 0;
  uint64_t lost_other = 0;
  std::vector<core::LiveStream> streams;
};

// None when there is no such file or it makes no sense.
std::optional<LiveState> read_live_file(const std::string &path);

// Losses of an unfinished capture. `ledger` is the last one in the file, `positions` say up to where each stream is
// in the file, `bound` is the most that the process may have held (0: unknown).
//   - a stream's emitted bytes past its position are rows of SONDE_LOSS_TAIL, records unknown, bytes exact;
//   - the counters of the live file replace lesser ones of the ledger, which is older;
//   - what cannot be known is one row of stream 0 with unknown records, bounded by `bound` or by nothing
//     (UINT64_MAX).
std::vector<sonde_loss_t> losses_of_unfinished(const std::vector<sonde_loss_t> &ledger,
                                               const std::map<uint64_t, uint64_t> &positions,
                                               const std::optional<LiveState> &live, uint64_t bound);

}  // namespace sonde::store
