#include "store/replay.h"

#include <sonde/capture.h>
#include <sonde/spaces/session.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/feed.h"
#include "core/services.h"
#include "core/session.h"

namespace sonde::store {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kMaxStringId = 1u << 26;  // the string table of a process has no more

// Rows are decoded straight into the buffer that subscribers read where a chunk holds one batch; otherwise they are
// decoded here and each batch is copied to a buffer of its own.
class SourceReplay {
 public:
  SourceReplay(Capture::Source &source, core::Feed &feed, core::Session &session, uint64_t largest_batch)
      : reader_(*source.reader),
        feed_(feed),
        session_(session),
        number_(feed.add_source()),
        path_(source.path),
        largest_batch_(largest_batch) {
    if (!reader_.damages().empty()) keep_unknown_spaces();
    advance();
  }

  const std::string &boot() const { return reader_.texts().boot; }
  uint32_t number() const { return number_; }
  bool done() const { return next_ == reader_.chunks().size(); }
  int64_t next_ns() const { return reader_.chunks()[next_].first_ns; }

  // Delivers the next record chunk; the number of its records.
  uint64_t deliver_next() {
    const FoundChunk &chunk = reader_.chunks()[next_];
    if (!deliver(chunk)) reader_.give_up(chunk);
    ++next_;
    advance();
    return chunk.header.record_count;
  }

 private:
  // Goes to the next record chunk and takes what lies before it.
  void advance() {
    for (; next_ < reader_.chunks().size(); ++next_) {
      const FoundChunk &chunk = reader_.chunks()[next_];
      switch (static_cast<ChunkType>(chunk.header.type)) {
        case ChunkType::kRecords:
          return;
        case ChunkType::kStrings:
          take_strings(chunk);
          break;
        case ChunkType::kSchemas:
          take_schemas(chunk);
          break;
        default:
          break;
      }
    }
  }

  void take_strings(const FoundChunk &chunk) {
    std::span<const uint8_t> encoded;
    std::vector<StringEntry> entries;
    if (!reader_.read_entries(chunk, encoded) || !read_strings(encoded, chunk.header.record_count, entries)) {
      reader_.give_up(chunk);
      return;
    }
    // A gap comes from a damaged chunk of strings, so it is no wider than the file allows.
    const uint64_t greatest =
        std::min<uint64_t>(kMaxStringId, known_strings_ + entries.size() + reader_.file_bytes() * 16);
    for (const StringEntry &entry : entries) {
      if (entry.id > greatest) break;
      feed_.set_string(number_, entry.id, entry.text);
      known_strings_ = std::max<uint64_t>(known_strings_, entry.id);
    }
  }

  void take_schemas(const FoundChunk &chunk) {
    std::span<const uint8_t> encoded;
    std::vector<StoredSchema> schemas;
    if (!reader_.read_entries(chunk, encoded) || !read_schemas(encoded, chunk.header.record_count, schemas)) {
      reader_.give_up(chunk);
      return;
    }
    for (const StoredSchema &stored : schemas) spaces_.set(stored.space, number_of(stored.schema()));
  }

  // The number of a space in this process. Fields that contradict those known here would be read wrongly by who
  // knows the name, so such a space comes under a name of its own.
  uint32_t number_of(const sonde_schema_t &schema) {
    const auto &capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
    uint32_t here = 0;
    if (capture.register_space(&schema, &here) == SONDE_OK) return here;
    const std::string reason = last_error();
    for (int attempt = 1; attempt <= 8; ++attempt) {
      const std::string name = fmt::format("{}.conflict{}", schema.space, attempt);
      sonde_schema_t renamed = schema;
      renamed.space = name.c_str();
      if (capture.register_space(&renamed, &here) == SONDE_OK) {
        capture.note(
            session_.handle(), 1, "store",
            fmt::format("records of space '{}' in '{}' come as '{}': {}", schema.space, path_, name, reason).c_str());
        return here;
      }
    }
    return unknown_space();
  }

  // A space without record types that anybody could ask for.
  static uint32_t unknown_space() {
    sonde_schema_t schema{};
    schema.struct_size = sizeof schema;
    schema.space = "sonde.unknown";
    schema.help = "records of a capture whose schema could not be read";
    schema.type_stride = sizeof(sonde_record_type_t);
    uint32_t here = 0;
    const auto &capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
    return capture.register_space(&schema, &here) == SONDE_OK ? here : SONDE_SPACE_COUNT - 1;
  }

  // Numbers from 64 on mean nothing without the schema that names them, and a damaged file may have lost it.
  void keep_unknown_spaces() {
    const uint32_t unknown = unknown_space();
    for (uint32_t space = SONDE_SPACE_FIRST_DYNAMIC; space < SONDE_SPACE_COUNT; ++space) spaces_.set(space, unknown);
  }

  bool deliver(const FoundChunk &chunk) {
    std::span<const uint8_t> encoded;
    if (!reader_.read_batches(chunk, table_, encoded)) return false;
    if (table_.batches.empty()) return true;
    const uint64_t bytes = chunk.header.record_bytes;
    const bool straight = table_.batches.size() == 1 && bytes <= largest_batch_;
    core::BufferRef buffer;
    if (straight) {
      buffer = feed_.acquire(bytes);
      if (!buffer) return false;
      if (!decode(chunk, encoded, {buffer.data(), bytes})) return false;
      hand_on(table_.batches[0], std::move(buffer), bytes, true);
      return true;
    }
    if (rows_.size() < bytes) rows_.resize(bytes);
    if (!decode(chunk, encoded, {rows_.data(), bytes})) return false;
    const uint8_t *at = rows_.data();
    for (const StoredBatch &batch : table_.batches) {
      if (!deliver_copy(batch, at)) return false;
      at += batch.bytes;
    }
    return true;
  }

  bool decode(const FoundChunk &chunk, std::span<const uint8_t> encoded, std::span<uint8_t> rows) {
    switch (static_cast<Codec>(chunk.header.codec)) {
      case Codec::kRows:
        return RecordDecoder::decode_rows(encoded, spaces_, rows, chunk.header.record_count);
      case Codec::kColumns:
        return decoder_.decode_columns(encoded, spaces_, rows, chunk.header.record_count);
    }
    return false;
  }

  // In pieces where the session's memory cap is too small for the batch as it was.
  bool deliver_copy(const StoredBatch &batch, const uint8_t *rows) {
    for (uint64_t done = 0; done < batch.bytes;) {
      uint64_t piece = batch.bytes - done;
      if (piece > largest_batch_) {
        piece = 0;
        for (;;) {
          uint16_t size8 = 0;
          std::memcpy(&size8, rows + done + piece, sizeof size8);
          const uint64_t next = piece + size8 * 8u;
          // A size that cannot be is left to the feed, which refuses the record and counts the rest.
          if (size8 < 2 || next > batch.bytes - done) piece = batch.bytes - done;
          if (size8 < 2 || next > batch.bytes - done || (piece != 0 && next > largest_batch_)) break;
          piece = next;
        }
      }
      core::BufferRef buffer = feed_.acquire(piece);
      if (!buffer) return false;
      std::memcpy(buffer.data(), rows + done, piece);
      done += piece;
      StoredBatch part = batch;
      part.position = batch.position - (batch.bytes - done);
      if (done != piece) part.lost_ring = part.lost_overwritten = 0;
      if (done != batch.bytes) part.watermark = 0;
      hand_on(part, std::move(buffer), piece, done == piece);
    }
    return true;
  }

  void hand_on(const StoredBatch &batch, core::BufferRef buffer, uint64_t bytes, bool first_part) {
    uint64_t &extra = extra_batches_[batch.stream];
    if (!first_part) ++extra;
    core::FedBatch fed;
    fed.source = number_;
    fed.stream = batch.stream;
    fed.sequence = batch.sequence + extra;
    fed.position = batch.position;
    fed.watermark = batch.watermark;
    fed.lost_ring = batch.lost_ring;
    fed.lost_overwritten = batch.lost_overwritten;
    fed.buffer = std::move(buffer);
    fed.bytes = bytes;
    fed.clock = table_.clocks[batch.clock];
    feed_.deliver(std::move(fed));
  }

  FileReader &reader_;
  core::Feed &feed_;
  core::Session &session_;
  const uint32_t number_;
  const std::string path_;
  const uint64_t largest_batch_;
  size_t next_ = 0;
  uint64_t known_strings_ = 0;
  SpaceMap spaces_;
  BatchTable table_;
  RecordDecoder decoder_;
  Bytes rows_;
  std::unordered_map<uint64_t, uint64_t> extra_batches_;  // by stream: pieces made beyond those in the file
};

// Calls the user's function about ten times a second.
class ProgressReport {
 public:
  ProgressReport(const Progress &progress, uint64_t total) : progress_(progress), total_(total) {}

  Result<void> report(uint64_t done, bool last) {
    if (!progress_) return {};
    const Clock::time_point now = Clock::now();
    if (!last && now - reported_ < std::chrono::milliseconds(100)) return {};
    reported_ = now;
    const sonde_status status = progress_(done, total_);
    if (status < 0) return Error{status, "the replay was ended by its progress function"};
    return {};
  }

 private:
  const Progress &progress_;
  const uint64_t total_;
  Clock::time_point reported_ = Clock::now();
};

}  // namespace

Result<void> replay(Capture &capture, sonde_session_t *handle, const Progress &progress) {
  core::Session *const session = core::find_session(handle);
  if (session == nullptr) return Error{SONDE_E_INVALID, last_error()};
  if (session->state() != SONDE_STATE_RUNNING) {
    return Error{SONDE_E_STATE, "a replay needs a session that is running"};
  }
  core::Feed feed(handle);
  // A batch must fit the cap several times over, or the feed would wait for ever. Buffers are powers of two.
  const uint64_t largest =
      std::max<uint64_t>(std::bit_floor(session->pool().cap()) / 8, 4096) - core::Buffer::kHeaderBytes;

  std::vector<std::unique_ptr<SourceReplay>> sources;
  std::vector<uint32_t> numbers;
  uint64_t total = 0;
  {
    const std::lock_guard lock(capture.mutex());
    for (Capture::Source &source : capture.sources()) {
      if (source.reader == nullptr) {
        numbers.push_back(feed.add_source());
        continue;
      }
      total += source.reader->records();
      sources.push_back(std::make_unique<SourceReplay>(source, feed, *session, largest));
      numbers.push_back(sources.back()->number());
    }

    ProgressReport report(progress, total);
    uint64_t done = 0;
    for (;;) {
      // The first source that is not done names the boot; of that boot the earliest chunk is next.
      SourceReplay *next = nullptr;
      for (const std::unique_ptr<SourceReplay> &source : sources) {
        if (source->done()) continue;
        if (next == nullptr || (source->boot() == next->boot() && source->next_ns() < next->next_ns())) {
          next = source.get();
        }
      }
      if (next == nullptr) break;
      done += next->deliver_next();
      if (Result<void> reported = report.report(done, false); !reported) return reported;
    }
    feed.drain();
    if (Result<void> reported = report.report(done, true); !reported) return reported;
  }

  // Last, because the replay itself may have found chunks that cannot be decoded.
  for (size_t index = 0; index < numbers.size(); ++index) {
    for (sonde_loss_t row : capture.losses_of(index)) {
      row.source = numbers[index];
      feed.lose(row);
    }
  }
  return {};
}

}  // namespace sonde::store
