#include "store/file_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace sonde::store {
namespace {

// A write past the limit of file sizes sends SIGXFSZ, which would end the program that is measured. Here it becomes
// an error of the write alone.
class FileLimitGuard {
 public:
  FileLimitGuard() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileLimitGuard() {
    if (sigismember(&before_, SIGXFSZ) == 0) {
      const timespec none{};
      while (sigtimedwait(&signal_, nullptr, &none) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  FileLimitGuard(const FileLimitGuard &) = delete;
  FileLimitGuard &operator=(const FileLimitGuard &) = delete;

 private:
  sigset_t signal_;
  sigset_t before_;
};

Error system_error(const std::string &what, const std::string &path, int number) {
  return {SONDE_E_IO, what + " '" + path + "': " + std::strerror(number)};
}

}  // namespace

FileWriter::~FileWriter() { close(); }

void FileWriter::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Result<void> FileWriter::create(const std::string &path, const FileStart &start, bool sync) {
  path_ = path;
  sync_ = sync;
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    if (errno == EEXIST) return Error{SONDE_E_EXISTS, "capture file '" + path + "' exists already"};
    return system_error("cannot make capture file", path, errno);
  }
  Bytes texts;
  write_texts(start.texts, texts);
  Bytes header(padded(sizeof(FileHeader) + texts.size()), 0);
  FileHeader fixed{};
  fixed.magic = kFileMagic;
  fixed.version = kFormatVersion;
  fixed.header_bytes = static_cast<uint32_t>(header.size());
  fixed.process = start.process;
  fixed.parent_process = start.parent_process;
  fixed.start_ns = start.start_ns;
  fixed.memory_bound = start.memory_bound;
  fixed.text_bytes = static_cast<uint32_t>(texts.size());
  std::memcpy(header.data(), &fixed, sizeof fixed);
  std::memcpy(header.data() + sizeof fixed, texts.data(), texts.size());
  fixed.checksum = XXH3_64bits(header.data(), header.size());
  std::memcpy(header.data(), &fixed, sizeof fixed);
  Result<void> written = append(header);
  if (!written) {
    close();
    ::unlink(path.c_str());
  }
  return written;
}

Bytes &FileWriter::begin_chunk() {
  chunk_.assign(sizeof(ChunkHeader), 0);
  return chunk_;
}

Result<void> FileWriter::append(std::span<const uint8_t> bytes) {
  const FileLimitGuard guard;
  uint64_t done = 0;
  while (done < bytes.size()) {
    const ssize_t taken =
        ::pwrite(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset_ + done));
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) {
      const int number = taken == 0 ? ENOSPC : errno;
      // Gives the space of the part back, so that the ledger and the index may still fit.
      while (::ftruncate(descriptor_, static_cast<off_t>(offset_)) < 0 && errno == EINTR) {
      }
      return system_error("cannot write capture file", path_, number);
    }
    done += static_cast<uint64_t>(taken);
  }
  if (sync_ && ::fdatasync(descriptor_) < 0) return system_error("cannot sync capture file", path_, errno);
  offset_ += bytes.size();
  return {};
}

Result<void> FileWriter::seal(ChunkType type, Codec codec, const RecordTotals &totals) {
  ChunkHeader header{};
  header.magic = kChunkMagic;
  header.type = static_cast<uint32_t>(type);
  header.codec = static_cast<uint32_t>(codec);
  header.payload_bytes = chunk_.size() - sizeof header;
  header.record_bytes = totals.bytes;
  header.record_count = totals.count;
  header.number = number_;
  header.payload_checksum = XXH3_64bits(chunk_.data() + sizeof header, header.payload_bytes);
  header.header_checksum = XXH3_64bits(&header, offsetof(ChunkHeader, header_checksum));
  std::memcpy(chunk_.data(), &header, sizeof header);
  chunk_.resize(padded(chunk_.size()), 0);
  const uint64_t begin = offset_;
  if (Result<void> written = append(chunk_); !written) return written;
  ++number_;
  index_.entries.push_back(
      {begin, chunk_.size(), header.type, totals.bytes, totals.count, totals.first_ns, totals.last_ns});
  return {};
}

Result<void> FileWriter::write_records(Codec codec, const RecordTotals &totals) {
  return seal(ChunkType::kRecords, codec, totals);
}

Result<void> FileWriter::write_entries(ChunkType type, std::span<const uint8_t> encoded, uint64_t count,
                                       BlockWriter &blocks) {
  Bytes &chunk = begin_chunk();
  put_varint(chunk, encoded.size());
  blocks.write(chunk, encoded);
  RecordTotals totals;
  totals.count = count;
  return seal(type, Codec::kRows, totals);
}

Result<void> FileWriter::finish(int64_t stop_ns, BlockWriter &blocks) {
  index_.stop_ns = stop_ns;
  Trailer trailer{};
  trailer.magic = kTrailerMagic;
  trailer.index_offset = offset_;
  trailer.checksum = XXH3_64bits(&trailer, offsetof(Trailer, checksum));
  Bytes encoded;
  write_index(index_, encoded);
  Result<void> done = write_entries(ChunkType::kIndex, encoded, index_.entries.size(), blocks);
  if (done) done = append({reinterpret_cast<const uint8_t *>(&trailer), sizeof trailer});
  close();
  return done;
}

}  // namespace sonde::store
