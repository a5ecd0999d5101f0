// Arbitrary bytes as a capture file. The first byte chooses what they are:
//   even: a whole file, its checksums as they are or, with bit 1, taken as right;
//   odd: an encoded chunk of records for the decoder alone.
// Nothing may crash, read outside, or hold memory that the bounds of the format do not allow.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "store/file_reader.h"
#include "store/format.h"
#include "store/tail.h"

namespace sonde::store {
namespace {

void read_file(std::span<const uint8_t> bytes, bool ignore_checksums) {
  Result<std::unique_ptr<FileReader>> opened = FileReader::open(memory_source(bytes), {ignore_checksums});
  if (!opened) return;
  FileReader &reader = **opened;
  RecordDecoder decoder;
  SpaceMap spaces;
  spaces.set(64, 65);
  BatchTable table;
  std::vector<StringEntry> strings;
  std::vector<StoredSchema> schemas;
  uint64_t decoded = 0;
  uint64_t counted = reader.header().header_bytes;
  for (const FoundChunk &chunk : reader.chunks()) {
    counted += sizeof(ChunkHeader) + chunk.header.payload_bytes;
    std::span<const uint8_t> encoded;
    switch (static_cast<ChunkType>(chunk.header.type)) {
      case ChunkType::kStrings:
        if (reader.read_entries(chunk, encoded)) read_strings(encoded, chunk.header.record_count, strings);
        break;
      case ChunkType::kSchemas:
        if (reader.read_entries(chunk, encoded)) read_schemas(encoded, chunk.header.record_count, schemas);
        break;
      case ChunkType::kRecords: {
        // What a few bytes may unpack to is bounded a chunk; bound it for the whole input as well.
        decoded += chunk.header.record_bytes;
        if (decoded > (8u << 20)) return;
        if (!reader.read_batches(chunk, table, encoded)) std::abort();  // it was read when the file was opened
        std::vector<uint8_t> rows(chunk.header.record_bytes);
        const uint64_t count = chunk.header.record_count;
        if (chunk.header.codec == static_cast<uint32_t>(Codec::kColumns)) {
          decoder.decode_columns(encoded, spaces, rows, count);
        } else {
          RecordDecoder::decode_rows(encoded, spaces, rows, count);
        }
        break;
      }
      default:
        break;
    }
  }
  for (const Damage &damage : reader.damages()) counted += damage.bytes;
  if (counted > bytes.size()) std::abort();
  losses_of_unfinished(reader.ledger(), reader.positions(), std::nullopt, 0);
}

void decode(std::span<const uint8_t> bytes) {
  if (bytes.size() < 4) return;
  uint16_t words = 0;
  uint16_t count = 0;
  std::memcpy(&words, bytes.data(), sizeof words);
  std::memcpy(&count, bytes.data() + 2, sizeof count);
  std::vector<uint8_t> rows(size_t{words} * 8);
  RecordDecoder decoder;
  const SpaceMap spaces;
  if (!decoder.decode_columns(bytes.subspan(4), spaces, rows, count)) return;
  // What the decoder accepts is whole records, so it is accepted as rows too.
  std::vector<uint8_t> again(rows.size());
  if (!RecordDecoder::decode_rows(rows, spaces, again, count)) std::abort();
}

}  // namespace
}  // namespace sonde::store

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> bytes(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    sonde::store::read_file(bytes, (data[0] & 2) != 0);
  } else {
    sonde::store::decode(bytes);
  }
  return 0;
}
