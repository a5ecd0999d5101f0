// Reads a capture file, whole or damaged.
//
// Opening looks at every chunk and its checksum, so that what is missing is known before anything is replayed. After
// a place that makes no sense it goes on at the next chunk header whose checksum is right.
#pragma once

#include <sonde/ledger.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "store/batch_table.h"
#include "store/blocks.h"
#include "store/entries.h"
#include "store/format.h"
#include "store/record_decoder.h"

namespace sonde::store {

// Where the bytes of a file come from.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`; false when not all of it can be read.
  virtual bool read(uint64_t offset, std::span<uint8_t> out) const = 0;
};

// A file on disk. SONDE_E_NOT_FOUND, SONDE_E_IO.
Result<std::unique_ptr<ByteSource>> open_source(const std::string &path);

// Bytes in memory that outlive the source.
std::unique_ptr<ByteSource> memory_source(std::span<const uint8_t> bytes);

// A chunk that was found whole.
struct FoundChunk {
  uint64_t offset = 0;
  ChunkHeader header{};
  int64_t first_ns = 0;  // of its records, ns since 1970
  int64_t last_ns = 0;
};

// A part of the file that could not be read.
struct Damage {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t records = 0;  // UINT64_MAX: unknown
  bool at_end = false;   // the file ends inside a chunk
};

struct ReadOptions {
  bool ignore_checksums = false;  // for fuzzing: lets damage reach the decoders
};

class FileReader {
 public:
  // SONDE_E_CORRUPT when it is no capture file, SONDE_E_TOO_OLD when it is of a later version, SONDE_E_IO.
  static Result<std::unique_ptr<FileReader>> open(std::unique_ptr<ByteSource> source, ReadOptions options = {});

  const FileHeader &header() const { return header_; }
  const FileTexts &texts() const { return texts_; }
  bool complete() const { return complete_; }
  uint64_t file_bytes() const { return source_->size(); }
  int64_t stop_ns() const { return stop_ns_; }  // of the last record when not complete
  uint64_t records() const { return records_; }
  uint64_t record_bytes() const { return record_bytes_; }
  const std::vector<FoundChunk> &chunks() const { return chunks_; }
  const std::vector<Damage> &damages() const { return damages_; }
  const std::vector<sonde_loss_t> &ledger() const { return ledger_; }

  // By stream: the position up to which its records are in the file.
  const std::map<uint64_t, uint64_t> &positions() const { return positions_; }

  // Reads a chunk's payload; it stays valid until the next call. False when it cannot be read.
  bool read_payload(const FoundChunk &chunk, std::span<const uint8_t> &out);

  // Inside of a chunk that is not of type kRecords; valid until the next call. False when it is damaged.
  bool read_entries(const FoundChunk &chunk, std::span<const uint8_t> &out);

  // Parts of a record chunk; `encoded` is valid until the next call. False when they contradict each other.
  bool read_batches(const FoundChunk &chunk, BatchTable &table, std::span<const uint8_t> &encoded);

  // Notes that a chunk that was found whole turned out to be damaged.
  void give_up(const FoundChunk &chunk);

 private:
  FileReader(std::unique_ptr<ByteSource> source, ReadOptions options);

  Result<void> read_header();
  void scan();
  bool read_chunk_header(uint64_t offset, ChunkHeader &out) const;
  bool read_trailer(uint64_t offset, Trailer &out) const;
  uint64_t find_next(uint64_t from) const;
  uint64_t find_chunk(uint64_t from) const;
  bool look_at(const FoundChunk &chunk, FoundChunk &out);
  void count_records_in_gaps();
  void note_damage(Damage damage);

  std::unique_ptr<ByteSource> source_;
  const ReadOptions options_;
  FileHeader header_{};
  FileTexts texts_;
  bool complete_ = false;
  int64_t stop_ns_ = 0;
  uint64_t records_ = 0;
  uint64_t record_bytes_ = 0;
  std::vector<FoundChunk> chunks_;
  std::vector<Damage> damages_;
  std::vector<sonde_loss_t> ledger_;
  std::map<uint64_t, uint64_t> positions_;
  std::optional<Index> index_;
  std::optional<uint64_t> index_offset_;  // from the trailer

  BlockReader blocks_;
  Bytes payload_;
  Bytes inside_;
  BatchTable table_;
};

}  // namespace sonde::store
