#include "store/standalone_writer.h"

#include <sonde/record.h>
#include <sonde/schema.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "store/writer_checks.h"

namespace sonde::store {
namespace {

std::string text_of(const char *text) {
  constexpr size_t kMostText = 1 << 16;  // the header is read as a whole
  return text == nullptr ? std::string() : std::string(text, ::strnlen(text, kMostText));
}

}  // namespace

Result<std::unique_ptr<StandaloneWriter>> StandaloneWriter::create(const std::string &path,
                                                                   const sonde_source_info_t &source,
                                                                   const sonde_writer_options_t &options) {
  if (Result<void> good = check_writer_options(options); !good) return good.error();
  if (Result<void> good = check_new_file(path); !good) return good.error();
  ChunkWriterOptions writing;
  writing.path = path;
  writing.chunk_bytes = options.chunk_bytes == 0 ? kDefaultChunkRecordBytes : options.chunk_bytes;
  writing.file_limit = options.file_limit;
  writing.level = options.level == 0 ? 3 : options.level;
  writing.sync = options.sync != 0;
  writing.start.process = source.process;
  writing.start.parent_process = source.parent_process;
  writing.start.start_ns = source.start_ns;
  writing.start.texts.host = text_of(source.host);
  writing.start.texts.program = text_of(source.program);
  writing.start.texts.command = text_of(source.command);
  writing.start.texts.boot = text_of(source.boot);

  std::unique_ptr<StandaloneWriter> made(new StandaloneWriter);
  StandaloneWriter *const self = made.get();
  ChunkWriterHooks hooks;
  hooks.ledger = [self] { return self->ledger_; };
  hooks.lose = [self](uint64_t stream, uint64_t records, uint64_t bytes) {
    sonde_loss_t row{};
    row.stream = stream;
    row.cause = SONDE_LOSS_DISK;
    row.records = records;
    row.bytes = bytes;
    self->lose(row);
  };
  hooks.fail = [self](const Error &error) {
    if (!self->failure_) self->failure_ = error;
  };
  made->writer_ = std::make_unique<ChunkWriter>(std::move(writing), std::move(hooks));
  return made;
}

Result<void> StandaloneWriter::append(const sonde_batch_t &given) {
  if (given.bytes == 0) return {};
  if (given.data == nullptr || given.clock == nullptr) {
    return Error{SONDE_E_INVALID, "append: data or clock of the batch is NULL"};
  }
  if (reinterpret_cast<uintptr_t>(given.data) % alignof(sonde_record_t) != 0) {
    return Error{SONDE_E_INVALID, "append: records must be aligned to 8 bytes"};
  }
  Stream &stream = streams_[given.stream];
  if (stream.last_sequence && given.sequence <= *stream.last_sequence) {
    return Error{SONDE_E_INVALID, fmt::format("append: stream {} goes from sequence {} to {}, expected a greater one",
                                              given.stream, *stream.last_sequence, given.sequence)};
  }
  sonde_batch_t batch = given;
  batch.count = 0;
  batch.spaces = 0;
  batch.first_time = UINT64_MAX;
  batch.last_time = 0;
  for (uint64_t at = 0; at < batch.bytes;) {
    const uint64_t left = batch.bytes - at;
    const auto &record = *reinterpret_cast<const sonde_record_t *>(batch.data + at);
    if (left < sizeof record || record.size8 < 2 || record.fixed8 < 2 || record.fixed8 > record.size8 ||
        SONDE_RECORD_BYTES(&record) > left) {
      return Error{SONDE_E_INVALID,
                   fmt::format("append: the record at byte {} of {} contradicts itself: {} words, of "
                               "which {} fixed",
                               at, batch.bytes, left < 8 ? 0 : record.size8, left < 8 ? 0 : record.fixed8)};
    }
    if (record.space == 0 || record.space >= SONDE_SPACE_COUNT || record.type == 0 || record.type >= SONDE_TYPE_COUNT) {
      return Error{SONDE_E_INVALID, fmt::format("append: the record at byte {} has space {} and type {}", at,
                                                record.space, record.type)};
    }
    ++batch.count;
    batch.spaces |= uint64_t{1} << (record.space < 64 ? record.space : 0);
    batch.first_time = std::min(batch.first_time, record.time);
    batch.last_time = std::max(batch.last_time, record.time);
    at += SONDE_RECORD_BYTES(&record);
  }
  stream.position += batch.bytes;
  stream.last_sequence = batch.sequence;
  batch.position = stream.position;
  writer_->add(batch, false);
  return take_failure();
}

void StandaloneWriter::lose(const sonde_loss_t &given) {
  sonde_loss_t row = given;
  row.source = 0;
  row.subscriber = 0;
  const auto place = std::lower_bound(ledger_.begin(), ledger_.end(), row, [](const auto &left, const auto &right) {
    return std::tie(left.stream, left.cause) < std::tie(right.stream, right.cause);
  });
  if (place == ledger_.end() || place->stream != row.stream || place->cause != row.cause) {
    ledger_.insert(place, row);
    return;
  }
  // UINT64_MAX records: unknown, and stays so.
  place->records = place->records > UINT64_MAX - row.records ? UINT64_MAX : place->records + row.records;
  place->bytes = place->bytes > UINT64_MAX - row.bytes ? UINT64_MAX : place->bytes + row.bytes;
}

Result<void> StandaloneWriter::take_failure() {
  if (!failure_) return {};
  return *std::exchange(failure_, std::nullopt);
}

Result<void> StandaloneWriter::complete(int64_t stop_ns) {
  const Result<void> finished = writer_->finish(stop_ns);
  const Result<void> written = take_failure();
  return written ? finished : written;
}

}  // namespace sonde::store
