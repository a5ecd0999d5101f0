// Feeding a session from outside its rings: what a replay uses.
//
// Sources are numbered from 1. Records come with string ids of their source, so each source has a string table of
// its own; space numbers must be those of this process already.
#pragma once

#include <sonde/clock.h>
#include <sonde/delivery.h>
#include <sonde/session.h>

#include <cstdint>
#include <string_view>

#include "core/buffer.h"
#include "core/error.h"

namespace sonde::core {

class Session;

struct FedBatch {
  uint32_t source = 0;
  uint64_t stream = 0;
  uint64_t sequence = 0;
  uint64_t position = 0;
  uint64_t watermark = 0;
  uint64_t lost_ring = 0;
  uint64_t lost_overwritten = 0;
  BufferRef buffer;    // records, from its start
  uint64_t bytes = 0;  // of records in it
  sonde_clock_t clock{};
};

class Feed {
 public:
  // `session` must be running; it outlives the feed.
  explicit Feed(sonde_session_t *session);

  // The number of the next source. [control]
  uint32_t add_source();

  // Makes `id` of `source` mean `text` (copied). [control]
  void set_string(uint32_t source, uint32_t id, std::string_view text);

  // A buffer of at least `bytes`; waits for slow subscribers, for ever. [control]
  BufferRef acquire(uint64_t bytes);

  // Checks the records' sizes, finds repairs, and hands the batch to every subscriber, waiting for room in their
  // queues. A malformed record ends the batch there; the rest is counted as SONDE_LOSS_MALFORMED. [control]
  void deliver(FedBatch batch);

  // Adds a row to the session's ledger. [control]
  void lose(const sonde_loss_t &loss);

  // Returns when every subscriber has handled everything delivered so far. [control]
  void drain();

 private:
  Session &session_;
};

}  // namespace sonde::core
