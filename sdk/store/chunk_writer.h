// Turns batches into the chunks of a capture file: gathers records, writes the strings and schemas that they need
// before them, encodes, and counts what the file did not take.
//
// Not thread-safe; the recording's own thread uses it.
#pragma once

#include <sonde/delivery.h>
#include <sonde/ledger.h>
#include <sonde/schema.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "store/batch_table.h"
#include "store/blocks.h"
#include "store/file_writer.h"
#include "store/record_encoder.h"

namespace sonde::store {

struct ChunkWriterOptions {
  std::string path;
  uint64_t chunk_bytes = kDefaultChunkRecordBytes;
  uint64_t file_limit = 0;  // 0: none
  int level = 3;
  bool sync = false;
  FileStart start;
};

// What the writer asks of its session.
struct ChunkWriterHooks {
  std::function<std::vector<sonde_loss_t>()> ledger;                            // rows that belong into the file
  std::function<void(uint64_t stream, uint64_t records, uint64_t bytes)> lose;  // SONDE_LOSS_DISK
  std::function<void(const Error &)> fail;                                      // a write failed; may be called often
};

class ChunkWriter {
 public:
  ChunkWriter(ChunkWriterOptions options, ChunkWriterHooks hooks);

  // Takes a batch; seals chunks as they fill, uncompressed when `spill`.
  void add(const sonde_batch_t &batch, bool spill);

  // Seals the chunk begun, if there is one and the file is wanted: it is made at the first record that is an event
  // of the program and not the session's own opening.
  void seal(bool spill);

  // True when a chunk is begun that seal() would write.
  bool started() const { return has_events_ && !table_.batches.empty(); }

  // Seals, writes ledger and index, closes. Nothing to do when no file was made.
  Result<void> finish(int64_t stop_ns);

  bool has_file() const { return file_.is_open(); }

  // Bytes held.
  uint64_t memory() const;

 private:
  struct StreamState {
    uint64_t next_sequence = 0;         // expected from the session
    uint64_t next_stored_sequence = 0;  // of the file
    uint64_t watermark = 0;             // last promise
  };

  void add_piece(const sonde_batch_t &batch, StreamState &stream, const StoredBatch &piece, const uint8_t *data);
  bool continues(const StoredBatch &last, const StoredBatch &piece) const;
  Result<void> write_chunk(bool spill);
  Result<void> write_strings();
  Result<void> write_schemas();
  Result<void> write_ledger(bool always);

  const ChunkWriterOptions options_;
  const ChunkWriterHooks hooks_;
  const uint64_t capacity_;  // record bytes of a chunk
  FileWriter file_;
  BlockWriter blocks_;
  RecordEncoder encoder_;

  bool has_events_ = false;
  Bytes rows_;
  BatchTable table_;
  uint64_t spaces_ = 0;  // as sonde_batch_t.spaces, of the chunk begun
  std::unordered_map<uint64_t, StreamState> streams_;

  uint32_t next_string_ = 1;
  std::array<const sonde_schema_t *, SONDE_SPACE_COUNT> schemas_{};  // written
  std::vector<sonde_loss_t> ledger_;                                 // written
  Bytes scratch_;
};

}  // namespace sonde::store
