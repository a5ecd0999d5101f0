// Writes a capture file chunk by chunk. A chunk is either in the file as a whole or not at all: when the disk does
// not take it, the file is cut back to where the chunk began.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "store/blocks.h"
#include "store/bytes.h"
#include "store/entries.h"
#include "store/format.h"

namespace sonde::store {

struct FileStart {
  uint64_t process = 0;
  uint64_t parent_process = 0;
  int64_t start_ns = 0;
  uint64_t memory_bound = 0;
  FileTexts texts;
};

// What a record chunk's header and index entry say of it.
struct RecordTotals {
  uint64_t bytes = 0;
  uint64_t count = 0;
  int64_t first_ns = 0;
  int64_t last_ns = 0;
};

class FileWriter {
 public:
  FileWriter() = default;
  ~FileWriter();
  FileWriter(const FileWriter &) = delete;
  FileWriter &operator=(const FileWriter &) = delete;

  // Makes the file. SONDE_E_EXISTS, SONDE_E_IO.
  Result<void> create(const std::string &path, const FileStart &start, bool sync);

  bool is_open() const { return descriptor_ >= 0; }
  uint64_t bytes() const { return offset_; }

  // Begins a chunk: the payload is appended to the result, which lies behind room for the chunk's header.
  Bytes &begin_chunk();

  // Bytes held.
  uint64_t memory() const { return chunk_.capacity() + index_.entries.capacity() * sizeof(IndexEntry); }

  // Bytes that the chunk begun will take.
  uint64_t pending_bytes() const { return padded(chunk_.size()); }

  // Writes the chunk begun. SONDE_E_IO: it is not in the file.
  Result<void> write_records(Codec codec, const RecordTotals &totals);

  // A chunk of another type with `count` entries, from what is inside its block.
  Result<void> write_entries(ChunkType type, std::span<const uint8_t> encoded, uint64_t count, BlockWriter &blocks);

  // Writes index and trailer and closes.
  Result<void> finish(int64_t stop_ns, BlockWriter &blocks);

 private:
  Result<void> seal(ChunkType type, Codec codec, const RecordTotals &totals);
  Result<void> append(std::span<const uint8_t> bytes);
  void close();

  std::string path_;
  int descriptor_ = -1;
  bool sync_ = false;
  uint64_t offset_ = 0;
  uint64_t number_ = 0;
  Bytes chunk_;
  Index index_;
};

}  // namespace sonde::store
