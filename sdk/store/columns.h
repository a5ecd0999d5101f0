// Columns of 8-byte words: how one word of all records of a shape is stored.
//
// A word x of record j becomes a residual against a base that the decoder knows: nothing, the same word of the
// record before, the record's own time (the end of an interval), or, for the time itself, the end of the interval
// before. Where the shape has a dictionary (see record_encoder.h) the residual may in turn be taken against the one
// of the last record with the same entry: a kernel's next launch lasts about as long as its last. Residuals are
// stored as byte planes: all lowest bytes, then all second bytes, and so on; planes of one value cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::store {

enum class Base : uint8_t {
  kNone = 0,         // x itself, unsigned
  kPrevious = 1,     // x of the record before; 0 before the first
  kTime = 2,         // the record's time
  kPreviousEnd = 3,  // of the time only: the word `end_word` of the record before; 0 before the first
};

struct Predictor {
  Base base = Base::kNone;
  bool by_entry = false;  // minus the last residual of the same dictionary entry, 0 before the first
  uint32_t end_word = 0;  // for kPreviousEnd
};

// First byte of a stored column: base in the low bits, then this flag.
inline constexpr uint8_t kByEntryFlag = 0x10;

// A shape is stored by columns when it has at least this many records in the chunk and at most this many words.
inline constexpr uint64_t kMinColumnRecords = 8;
inline constexpr uint32_t kMaxColumnWords = 64;
// Greatest number of dictionary entries.
inline constexpr uint32_t kMaxEntries = 4096;

}  // namespace sonde::store
