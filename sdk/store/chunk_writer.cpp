#include "store/chunk_writer.h"

#include <sonde/spaces/session.h>

#include <algorithm>
#include <bitset>
#include <cstring>
#include <utility>

#include "core/buffer.h"
#include "core/spaces.h"
#include "core/strings.h"

namespace sonde::store {
namespace {

const sonde_record_t &record_at(const uint8_t *at) { return *reinterpret_cast<const sonde_record_t *>(at); }

// A session opens with records of its own; a capture file is made for what the program does, and for what a reader
// must know of a run without events.
bool is_event(const sonde_record_t &record) {
  if (record.space != SONDE_SPACE_SESSION) return true;
  if (record.type == SONDE_SESSION_LOSS) return true;
  return record.type == SONDE_SESSION_NOTE && SONDE_RECORD_HAS(&record, sonde_session_note_t, severity) &&
         reinterpret_cast<const sonde_session_note_t &>(record).severity >= 2;
}

bool has_event(const sonde_batch_t &batch) {
  if (batch.spaces != uint64_t{1} << SONDE_SPACE_SESSION) return true;
  for (const sonde_record_t *record = sonde_batch_next(&batch, nullptr); record != nullptr;
       record = sonde_batch_next(&batch, record)) {
    if (is_event(*record)) return true;
  }
  return false;
}

}  // namespace

ChunkWriter::ChunkWriter(ChunkWriterOptions options, ChunkWriterHooks hooks)
    : options_(std::move(options)),
      hooks_(std::move(hooks)),
      // A replay decodes a chunk into one buffer; less its header it fits a power of two.
      capacity_(std::clamp(options_.chunk_bytes, kMinChunkRecordBytes, kMaxChunkRecordBytes) -
                core::Buffer::kHeaderBytes),
      blocks_(options_.level),
      encoder_(options_.level) {
  rows_.reserve(capacity_);
}

bool ChunkWriter::continues(const StoredBatch &last, const StoredBatch &piece) const {
  return last.stream == piece.stream && last.clock == piece.clock && last.sequence + 1 == piece.sequence &&
         last.position + piece.bytes == piece.position && piece.lost_ring == 0 && piece.lost_overwritten == 0;
}

void ChunkWriter::add_piece(const sonde_batch_t &batch, StreamState &stream, const StoredBatch &made,
                            const uint8_t *data) {
  StoredBatch piece = made;
  piece.clock = table_.clock_index(*batch.clock);
  piece.sequence = stream.next_stored_sequence;
  if (piece.watermark != 0) stream.watermark = piece.watermark;
  piece.watermark = stream.watermark;
  put_bytes(rows_, data, piece.bytes);
  spaces_ |= batch.spaces;
  if (!table_.batches.empty() && continues(table_.batches.back(), piece)) {
    StoredBatch &last = table_.batches.back();
    last.position = piece.position;
    last.bytes += piece.bytes;
    last.count += piece.count;
    last.first_time = std::min(last.first_time, piece.first_time);
    last.last_time = std::max(last.last_time, piece.last_time);
    last.watermark = piece.watermark;
    return;
  }
  ++stream.next_stored_sequence;
  table_.batches.push_back(piece);
}

void ChunkWriter::add(const sonde_batch_t &batch, bool spill) {
  if (batch.count == 0) return;
  has_events_ = has_events_ || has_event(batch);
  StreamState &stream = streams_[batch.stream];
  if (batch.sequence > stream.next_sequence) stream.next_stored_sequence += batch.sequence - stream.next_sequence;
  stream.next_sequence = batch.sequence + 1;

  uint64_t done = 0;
  while (done < batch.bytes) {
    StoredBatch piece;
    piece.stream = batch.stream;
    if (done == 0) {
      piece.lost_ring = batch.lost_ring;
      piece.lost_overwritten = batch.lost_overwritten;
    }
    const uint8_t *const data = batch.data + done;
    if (done == 0 && rows_.size() + batch.bytes <= capacity_) {
      piece.bytes = batch.bytes;
      piece.count = batch.count;
      piece.first_time = batch.first_time;
      piece.last_time = batch.last_time;
    } else {
      piece.first_time = UINT64_MAX;
      while (done + piece.bytes < batch.bytes) {
        const sonde_record_t &record = record_at(data + piece.bytes);
        const uint64_t bytes = SONDE_RECORD_BYTES(&record);
        // A single record larger than a chunk becomes a chunk of its own.
        const uint64_t held = rows_.size() + piece.bytes;
        if (held != 0 && held + bytes > capacity_) break;
        piece.bytes += bytes;
        ++piece.count;
        piece.first_time = std::min(piece.first_time, record.time);
        piece.last_time = std::max(piece.last_time, record.time);
      }
    }
    if (piece.count != 0) {
      done += piece.bytes;
      piece.position = batch.position - (batch.bytes - done);
      if (done == batch.bytes) piece.watermark = batch.watermark;
      add_piece(batch, stream, piece, data);
    }
    if (done < batch.bytes) {
      has_events_ = true;  // a full chunk is written whatever it holds: memory is bounded
      seal(spill);
    }
  }
}

void ChunkWriter::seal(bool spill) {
  if (!started()) return;
  Result<void> written = write_chunk(spill);
  if (!written) {
    for (const StoredBatch &batch : table_.batches) hooks_.lose(batch.stream, batch.count, batch.bytes);
    hooks_.fail(written.error());
  }
  rows_.clear();
  table_.clear();
  spaces_ = 0;
}

Result<void> ChunkWriter::write_chunk(bool spill) {
  if (!file_.is_open()) {
    if (Result<void> made = file_.create(options_.path, options_.start, options_.sync); !made) return made;
  }
  if (options_.file_limit != 0 && file_.bytes() >= options_.file_limit) {
    return Error{SONDE_E_FULL, "capture file '" + options_.path + "' has reached its limit of " +
                                   std::to_string(options_.file_limit) + " bytes"};
  }
  if (Result<void> written = write_strings(); !written) return written;
  if (Result<void> written = write_schemas(); !written) return written;
  if (Result<void> written = write_ledger(false); !written) return written;

  RecordTotals totals;
  totals.bytes = rows_.size();
  for (const StoredBatch &batch : table_.batches) totals.count += batch.count;
  if (!table_.time_range(options_.start.start_ns, totals.first_ns, totals.last_ns)) {
    totals.first_ns = totals.last_ns = options_.start.start_ns;
  }
  scratch_.clear();
  write_batch_table(table_, scratch_);
  Bytes &chunk = file_.begin_chunk();
  put_varint(chunk, scratch_.size());
  put_bytes(chunk, scratch_.data(), scratch_.size());
  if (spill) {
    put_bytes(chunk, rows_.data(), rows_.size());
  } else {
    encoder_.encode(rows_, chunk);
  }
  if (options_.file_limit != 0 && file_.bytes() + file_.pending_bytes() > options_.file_limit) {
    return Error{SONDE_E_FULL, "capture file '" + options_.path + "' has no room below its limit of " +
                                   std::to_string(options_.file_limit) + " bytes"};
  }
  return file_.write_records(spill ? Codec::kRows : Codec::kColumns, totals);
}

// Every string interned before now is older than any record that refers to it.
Result<void> ChunkWriter::write_strings() {
  const uint32_t end = core::strings().size();
  while (next_string_ < end) {
    scratch_.clear();
    put_varint(scratch_, next_string_);
    uint32_t id = next_string_;
    for (; id < end && scratch_.size() < capacity_; ++id) put_text(scratch_, core::strings().view(id));
    if (Result<void> written = file_.write_entries(ChunkType::kStrings, scratch_, id - next_string_, blocks_);
        !written) {
      return written;
    }
    next_string_ = id;
  }
  return {};
}

Result<void> ChunkWriter::write_schemas() {
  scratch_.clear();
  auto now = schemas_;
  uint64_t count = 0;
  std::bitset<SONDE_SPACE_COUNT> used(spaces_ & ~uint64_t{1});
  if ((spaces_ & 1) != 0) {
    for (uint64_t at = 0; at < rows_.size(); at += SONDE_RECORD_BYTES(&record_at(rows_.data() + at))) {
      used.set(record_at(rows_.data() + at).space);
    }
  }
  for (uint32_t space = 1; space < SONDE_SPACE_COUNT; ++space) {
    if (!used[space]) continue;
    now[space] = core::space_schema(space);
    // An extension makes a new schema, so the pointer tells whether this one is in the file.
    if (now[space] == nullptr || now[space] == schemas_[space]) continue;
    write_schema(space, *now[space], scratch_);
    ++count;
  }
  if (count == 0) return {};
  Result<void> written = file_.write_entries(ChunkType::kSchemas, scratch_, count, blocks_);
  if (written) schemas_ = now;
  return written;
}

Result<void> ChunkWriter::write_ledger(bool always) {
  std::vector<sonde_loss_t> rows = hooks_.ledger();
  const auto same = [](const sonde_loss_t &a, const sonde_loss_t &b) {
    return a.stream == b.stream && a.cause == b.cause && a.records == b.records && a.bytes == b.bytes;
  };
  if (!always && std::equal(rows.begin(), rows.end(), ledger_.begin(), ledger_.end(), same)) return {};
  scratch_.clear();
  write_losses(rows, scratch_);
  Result<void> written = file_.write_entries(ChunkType::kLedger, scratch_, rows.size(), blocks_);
  if (written) ledger_ = std::move(rows);
  return written;
}

Result<void> ChunkWriter::finish(int64_t stop_ns) {
  seal(false);
  if (!file_.is_open()) return {};
  // Each part may fit where the one before did not; the first failure is reported.
  Result<void> first = write_ledger(true);
  const Result<void> last = file_.finish(stop_ns, blocks_);
  return first ? last : first;
}

uint64_t ChunkWriter::memory() const {
  return rows_.capacity() + scratch_.capacity() + blocks_.memory() + encoder_.memory() + file_.memory();
}

}  // namespace sonde::store
