// Code objects put together again from the pieces that a capture holds (records sonde.object.code).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <sonde/spaces/object.h>

namespace sonde::toolkit {

class CodeStore {
 public:
  // Pieces of one code object beyond this size are refused: no compiler makes larger ones, and a damaged file may ask
  // for anything.
  static constexpr uint64_t kMostBytes = uint64_t{1} << 30;

  // Takes a record of the type SONDE_OBJECT_CODE, whole. False when its fields contradict each other or an earlier
  // piece; what was there before stays.
  bool add(const sonde_record_t *record);

  // The whole object, empty while a piece is missing. Valid until the next add.
  std::span<const uint8_t> find(uint64_t hash) const;

  // Bytes of an object that have not come yet; UINT64_MAX when no piece has.
  uint64_t missing(uint64_t hash) const;

  std::vector<uint64_t> hashes() const;

 private:
  struct Object {
    std::vector<uint8_t> bytes;
    std::map<uint64_t, uint64_t> pieces;  // offset -> bytes, not overlapping
    uint64_t present = 0;
  };
  std::map<uint64_t, Object> objects_;
};

}  // namespace sonde::toolkit
