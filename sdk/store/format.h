// The parts of a capture file that have a fixed shape. FORMAT.md documents the file to the byte; this is its mirror.
#pragma once

#include <sonde/record.h>

#include <bit>
#include <cstdint>

namespace sonde::store {

static_assert(std::endian::native == std::endian::little, "capture files are written in native, little-endian order");

inline constexpr uint64_t kFileMagic = 0x1a0a0d45444e4f53;     // "SONDE\r\n" and 0x1a: a transfer as text breaks it
inline constexpr uint64_t kChunkMagic = 0x9a4b4e4843444e53;    // "SNDCHNK" and a byte that is no text
inline constexpr uint64_t kTrailerMagic = 0x9a444e4546444e53;  // "SNDFEND" and a byte that is no text
inline constexpr uint32_t kFormatVersion = 1;

// At the start of the file, followed by text_bytes of texts (see FileTexts) and zeros up to a multiple of 8.
struct FileHeader {
  uint64_t magic;
  uint32_t version;       // readers refuse a greater one
  uint32_t header_bytes;  // this struct, texts and zeros; the first chunk lies there
  uint64_t process;
  uint64_t parent_process;
  int64_t start_ns;       // ns since 1970, when the file was made
  uint64_t memory_bound;  // most bytes of records that the process may have held unwritten; 0: unknown
  uint32_t text_bytes;
  uint32_t reserved;
  uint64_t checksum;  // XXH3-64 of the header with this field 0, texts and zeros included
};
static_assert(sizeof(FileHeader) == 64);

inline constexpr uint32_t kMaxHeaderBytes = 1u << 20;

enum class ChunkType : uint32_t {
  kStrings = 1,
  kSchemas = 2,
  kRecords = 3,
  kLedger = 4,
  kIndex = 5,
};

// How the records of a chunk of type kRecords are stored.
enum class Codec : uint32_t {
  kRows = 0,     // as they are
  kColumns = 1,  // by shape and column, zstd
};

// Before each chunk; the payload follows, then zeros up to a multiple of 8.
struct ChunkHeader {
  uint64_t magic;
  uint32_t type;              // ChunkType; readers skip what they do not know
  uint32_t codec;             // Codec for kRecords, otherwise 0
  uint64_t payload_bytes;     // without the zeros
  uint64_t record_bytes;      // of the decoded records; 0 for other types
  uint64_t record_count;      // records; entries for other types
  uint64_t number;            // of the chunk in the file, from 0
  uint64_t payload_checksum;  // XXH3-64
  uint64_t header_checksum;   // XXH3-64 of the 56 bytes before it
};
static_assert(sizeof(ChunkHeader) == 64);

// The last bytes of a complete file.
struct Trailer {
  uint64_t magic;
  uint64_t index_offset;  // of the header of the index chunk
  uint64_t reserved;      // 0
  uint64_t checksum;      // XXH3-64 of the 24 bytes before it
};
static_assert(sizeof(Trailer) == 32);

// Decoded records of one chunk; what claims more is damaged.
inline constexpr uint64_t kMaxChunkRecordBytes = 64u << 20;
// Stored bytes of one chunk; what claims more is damaged.
inline constexpr uint64_t kMaxPayloadBytes = 2 * kMaxChunkRecordBytes;

inline constexpr uint64_t kMinChunkRecordBytes = 64u << 10;
inline constexpr uint64_t kDefaultChunkRecordBytes = 1u << 20;
static_assert(kMaxChunkRecordBytes >= SONDE_RECORD_MAX_BYTES);

constexpr uint64_t padded(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

}  // namespace sonde::store
