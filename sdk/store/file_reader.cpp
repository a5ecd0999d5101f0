#include "store/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace sonde::store {
namespace {

class FileSource : public ByteSource {
 public:
  FileSource(int descriptor, uint64_t size) : descriptor_(descriptor), size_(size) {}
  ~FileSource() override { ::close(descriptor_); }
  FileSource(const FileSource &) = delete;
  FileSource &operator=(const FileSource &) = delete;

  uint64_t size() const override { return size_; }

  bool read(uint64_t offset, std::span<uint8_t> out) const override {
    uint64_t done = 0;
    while (done < out.size()) {
      const ssize_t taken =
          ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
      if (taken < 0 && errno == EINTR) continue;
      if (taken <= 0) return false;
      done += static_cast<uint64_t>(taken);
    }
    return true;
  }

 private:
  const int descriptor_;
  const uint64_t size_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  bool read(uint64_t offset, std::span<uint8_t> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) return false;
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return true;
  }

 private:
  const std::span<const uint8_t> bytes_;
};

template <typename T>
std::span<uint8_t> bytes_of(T &value) {
  return {reinterpret_cast<uint8_t *>(&value), sizeof value};
}

}  // namespace

Result<std::unique_ptr<ByteSource>> open_source(const std::string &path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return Error{errno == ENOENT ? SONDE_E_NOT_FOUND : SONDE_E_IO,
                 "cannot open capture file '" + path + "': " + std::strerror(errno)};
  }
  struct stat status {};
  if (::fstat(descriptor, &status) < 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return Error{SONDE_E_IO, "capture file '" + path + "' is not a regular file"};
  }
  return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(descriptor, static_cast<uint64_t>(status.st_size)));
}

std::unique_ptr<ByteSource> memory_source(std::span<const uint8_t> bytes) {
  return std::make_unique<MemorySource>(bytes);
}

FileReader::FileReader(std::unique_ptr<ByteSource> source, ReadOptions options)
    : source_(std::move(source)), options_(options) {}

Result<std::unique_ptr<FileReader>> FileReader::open(std::unique_ptr<ByteSource> source, ReadOptions options) {
  std::unique_ptr<FileReader> reader(new FileReader(std::move(source), options));
  if (Result<void> read = reader->read_header(); !read) return read.error();
  reader->scan();
  return reader;
}

Result<void> FileReader::read_header() {
  if (!source_->read(0, bytes_of(header_)) || header_.magic != kFileMagic) {
    return Error{SONDE_E_CORRUPT, "not a capture file: it does not begin with the header of one"};
  }
  if (header_.version > kFormatVersion) {
    return Error{SONDE_E_TOO_OLD, "the capture file has format version " + std::to_string(header_.version) +
                                      ", this program reads up to " + std::to_string(kFormatVersion)};
  }
  const Error damaged{SONDE_E_CORRUPT, "the header of the capture file is damaged"};
  if (header_.header_bytes < sizeof(FileHeader) || header_.header_bytes > kMaxHeaderBytes ||
      header_.header_bytes % 8 != 0 || header_.text_bytes > header_.header_bytes - sizeof(FileHeader)) {
    return damaged;
  }
  Bytes whole(header_.header_bytes);
  if (!source_->read(0, whole)) return damaged;
  std::memset(whole.data() + offsetof(FileHeader, checksum), 0, sizeof header_.checksum);
  if (!options_.ignore_checksums && XXH3_64bits(whole.data(), whole.size()) != header_.checksum) return damaged;
  if (!read_texts(std::span(whole).subspan(sizeof(FileHeader), header_.text_bytes), texts_)) return damaged;
  stop_ns_ = header_.start_ns;
  return {};
}

bool FileReader::read_chunk_header(uint64_t offset, ChunkHeader &out) const {
  if (!source_->read(offset, bytes_of(out)) || out.magic != kChunkMagic) return false;
  if (!options_.ignore_checksums && XXH3_64bits(&out, offsetof(ChunkHeader, header_checksum)) != out.header_checksum) {
    return false;
  }
  return out.payload_bytes <= kMaxPayloadBytes && out.record_bytes <= kMaxChunkRecordBytes &&
         out.record_bytes % 8 == 0 &&
         (out.type != static_cast<uint32_t>(ChunkType::kRecords) || out.record_count <= out.record_bytes / 16);
}

bool FileReader::read_trailer(uint64_t offset, Trailer &out) const {
  return source_->read(offset, bytes_of(out)) && out.magic == kTrailerMagic &&
         (options_.ignore_checksums || XXH3_64bits(&out, offsetof(Trailer, checksum)) == out.checksum);
}

// Where reading goes on after a place that makes no sense: the next good chunk header from `from` on, else the
// trailer at the end, else the end.
uint64_t FileReader::find_next(uint64_t from) const {
  const uint64_t size = source_->size();
  const uint64_t chunk = find_chunk(from);
  Trailer trailer{};
  if (chunk == size && size >= from + sizeof trailer && read_trailer(size - sizeof trailer, trailer)) {
    return size - sizeof trailer;
  }
  return chunk;
}

uint64_t FileReader::find_chunk(uint64_t from) const {
  constexpr uint64_t kWindow = 1 << 16;
  constexpr uint64_t kOverlap = sizeof kChunkMagic - 1;
  uint8_t magic[sizeof kChunkMagic];
  std::memcpy(magic, &kChunkMagic, sizeof magic);
  Bytes window(kWindow + kOverlap);
  const uint64_t size = source_->size();
  for (uint64_t begin = from; begin < size; begin += kWindow) {
    const std::span<uint8_t> here(window.data(), std::min<uint64_t>(window.size(), size - begin));
    if (!source_->read(begin, here)) return size;
    for (const uint8_t *at = here.data();;) {
      at = std::search(at, static_cast<const uint8_t *>(here.data() + here.size()), magic, magic + sizeof magic);
      if (at == here.data() + here.size()) break;
      ChunkHeader header{};
      const uint64_t offset = begin + static_cast<uint64_t>(at - here.data());
      if (read_chunk_header(offset, header)) return offset;
      ++at;
    }
  }
  return size;
}

void FileReader::note_damage(Damage damage) {
  if (damage.bytes == 0) return;
  if (!damages_.empty() && damages_.back().offset + damages_.back().bytes == damage.offset) {
    Damage &last = damages_.back();
    last.bytes += damage.bytes;
    last.at_end = damage.at_end;
    last.records =
        last.records == UINT64_MAX || damage.records == UINT64_MAX ? UINT64_MAX : last.records + damage.records;
    return;
  }
  damages_.push_back(damage);
}

void FileReader::scan() {
  const uint64_t size = source_->size();
  uint64_t offset = header_.header_bytes;
  // Where a search for the next chunk begins: behind the payload of the last good one, because the zeros behind it
  // may be among the bytes that are missing.
  uint64_t resume = offset;
  while (offset < size) {
    FoundChunk chunk;
    chunk.offset = offset;
    if (!read_chunk_header(offset, chunk.header)) {
      if (Trailer trailer{}; read_trailer(offset, trailer)) {
        index_offset_ = trailer.index_offset;
        offset += sizeof(Trailer);
        resume = offset;
        continue;
      }
      const uint64_t next = find_next(std::min(resume, offset + 1));
      if (next > offset) note_damage({offset, next - offset, UINT64_MAX, next == size});
      offset = resume = next;
      continue;
    }
    const bool has_records = chunk.header.type == static_cast<uint32_t>(ChunkType::kRecords);
    const uint64_t whole = sizeof(ChunkHeader) + chunk.header.payload_bytes;
    const uint64_t bytes = std::min(padded(whole), size - offset);
    const uint64_t lost_records = has_records ? chunk.header.record_count : 0;
    if (whole > size - offset) {
      // Cut off, unless a chunk begins before its end: then its header is a leftover and the rest is scanned.
      const uint64_t next = find_next(offset + 1);
      note_damage({offset, next - offset, lost_records, next == size});
      offset = resume = next;
      continue;
    }
    FoundChunk looked = chunk;
    if (look_at(chunk, looked)) {
      chunks_.push_back(looked);
    } else {
      // The header is right, so its size is; but where bytes were lost, the next chunk begins earlier.
      ChunkHeader next{};
      Trailer trailer{};
      const bool follows =
          offset + bytes == size || read_chunk_header(offset + bytes, next) || read_trailer(offset + bytes, trailer);
      const uint64_t end = follows ? offset + bytes : find_next(offset + 1);
      note_damage({offset, end - offset, lost_records, false});
      offset = resume = end;
      continue;
    }
    resume = offset + whole;
    offset += bytes;
  }
  complete_ = index_ || index_offset_;
  if (index_) stop_ns_ = index_->stop_ns;
  count_records_in_gaps();
}

// Checks a chunk and takes from it what is wanted of it at once; false when it is damaged.
bool FileReader::look_at(const FoundChunk &chunk, FoundChunk &out) {
  std::span<const uint8_t> encoded;
  switch (static_cast<ChunkType>(chunk.header.type)) {
    case ChunkType::kRecords: {
      if (!read_batches(chunk, table_, encoded)) return false;
      // Without a stamp that could be right it stays beside the chunk before.
      if (!table_.time_range(header_.start_ns, out.first_ns, out.last_ns)) out.first_ns = out.last_ns = stop_ns_;
      for (const StoredBatch &batch : table_.batches) positions_[batch.stream] = batch.position;
      records_ += chunk.header.record_count;
      record_bytes_ += chunk.header.record_bytes;
      stop_ns_ = std::max(stop_ns_, out.last_ns);
      return true;
    }
    case ChunkType::kLedger:
      return read_entries(chunk, encoded) && read_losses(encoded, chunk.header.record_count, ledger_);
    case ChunkType::kIndex: {
      Index index;
      if (!read_entries(chunk, encoded) || !read_index(encoded, chunk.header.record_count, index)) return false;
      index_ = std::move(index);
      return true;
    }
    default:
      return read_payload(chunk, encoded);
  }
}

// With an index it is known which chunks lay in a part that could not be read; behind its begin lay no records.
void FileReader::count_records_in_gaps() {
  for (Damage &damage : damages_) {
    if (damage.records != UINT64_MAX) continue;
    if (index_offset_ && damage.offset >= *index_offset_) damage.records = 0;
    if (!index_) continue;
    uint64_t records = 0;
    for (const IndexEntry &entry : index_->entries) {
      const bool inside = entry.offset < damage.offset + damage.bytes && entry.offset + entry.bytes > damage.offset;
      if (inside && entry.type == static_cast<uint32_t>(ChunkType::kRecords)) records += entry.record_count;
    }
    damage.records = records;
  }
}

bool FileReader::read_payload(const FoundChunk &chunk, std::span<const uint8_t> &out) {
  const uint64_t bytes = chunk.header.payload_bytes;
  const uint64_t begin = chunk.offset + sizeof(ChunkHeader);
  if (begin > source_->size() || bytes > source_->size() - begin) return false;
  if (payload_.size() < bytes) payload_.resize(bytes);
  const std::span<uint8_t> payload(payload_.data(), bytes);
  if (!source_->read(begin, payload)) return false;
  if (!options_.ignore_checksums && XXH3_64bits(payload.data(), bytes) != chunk.header.payload_checksum) return false;
  out = payload;
  return true;
}

bool FileReader::read_entries(const FoundChunk &chunk, std::span<const uint8_t> &out) {
  std::span<const uint8_t> payload;
  if (!read_payload(chunk, payload)) return false;
  ByteReader in(payload);
  const uint64_t bytes = in.varint_up_to(kMaxChunkRecordBytes);
  if (!in.good()) return false;
  if (inside_.size() < bytes) inside_.resize(bytes);
  out = blocks_.read(in, bytes, inside_.data());
  return in.good() && in.at_end();
}

bool FileReader::read_batches(const FoundChunk &chunk, BatchTable &table, std::span<const uint8_t> &encoded) {
  std::span<const uint8_t> payload;
  if (!read_payload(chunk, payload)) return false;
  ByteReader in(payload);
  const std::span<const uint8_t> batches = in.bytes(in.varint());
  if (!in.good()) return false;
  encoded = in.bytes(in.left());
  return read_batch_table(batches, chunk.header.record_bytes, chunk.header.record_count, table);
}

void FileReader::give_up(const FoundChunk &chunk) {
  for (const Damage &damage : damages_) {
    if (damage.offset == chunk.offset) return;
  }
  damages_.push_back(
      {chunk.offset, sizeof(ChunkHeader) + padded(chunk.header.payload_bytes), chunk.header.record_count, false});
}

}  // namespace sonde::store
