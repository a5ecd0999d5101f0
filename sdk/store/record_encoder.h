// Encodes the records of a chunk: the part of a chunk's payload after the batch table.
//
// Records of equal header (size8, fixed8, space, type) form a shape. The order of shapes is stored as runs. For each
// shape the words that take few values together (name, grid, block, context, ...) become one dictionary of
// combinations and an index for each record; the other words become columns (columns.h). Nothing here needs a
// schema, so spaces and fields that this program does not know are stored as well as its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "store/blocks.h"
#include "store/columns.h"

namespace sonde::store {

class RecordEncoder {
 public:
  // `level`: zstd level.
  explicit RecordEncoder(int level);

  // Appends the encoding (Codec::kColumns) of whole, valid records to `out`.
  void encode(std::span<const uint8_t> records, Bytes &out);

  // Bytes held between calls.
  uint64_t memory() const;

 private:
  struct Shape {
    uint64_t header;
    uint32_t words;
    uint64_t count;     // records
    uint32_t *offsets;  // of its records, bytes; part of offsets_
    bool by_columns() const { return count >= kMinColumnRecords && words <= kMaxColumnWords; }
  };

  void find_shapes(std::span<const uint8_t> records);
  uint32_t shape_of(uint64_t header);
  void encode_columns(const uint8_t *records, const Shape &shape, Bytes &out);
  void choose_static_words(const uint8_t *records, const Shape &shape);
  void build_dictionary(const uint8_t *records, const Shape &shape);
  bool try_dictionary(const uint8_t *records, const Shape &shape, uint64_t limit);
  void encode_dictionary(const uint8_t *records, const Shape &shape, Bytes &out);
  void encode_column(const uint8_t *records, const Shape &shape, uint32_t word, Bytes &out);
  void residuals(const uint8_t *records, const Shape &shape, uint32_t word, const Predictor &predictor);
  Predictor choose(const uint8_t *records, const Shape &shape, uint32_t word);
  uint64_t cost(uint64_t count) const;
  void write_planes(uint64_t count, bool with_constant, Bytes &out);

  BlockWriter blocks_;
  std::vector<Shape> shapes_;
  std::vector<uint32_t> shape_table_;
  std::vector<uint32_t> offsets_;  // of all records, by shape
  Bytes runs_;

  // Of the shape at work.
  std::vector<uint32_t> static_words_;  // sorted; word 0, the header, is not in it
  std::vector<uint32_t> distinct_;      // by word, in the sample
  std::vector<uint16_t> entry_of_;      // by record; empty when there is one entry
  std::vector<uint32_t> entry_record_;  // by entry: its first record
  std::vector<uint32_t> entry_table_;
  uint32_t interval_word_ = 0;  // first word stored against the time, 0: none
  std::vector<uint64_t> residuals_;
  std::vector<uint64_t> last_of_entry_;
  std::vector<uint64_t> sample_table_;
  uint64_t first_ = 0;  // first residual
  Bytes plane_;
};

}  // namespace sonde::store
