#include "code_store.h"

#include <algorithm>
#include <cstring>

namespace sonde::toolkit {

bool CodeStore::add(const sonde_record_t *record) {
  if (record->space != SONDE_SPACE_OBJECT || record->type != SONDE_OBJECT_CODE ||
      !SONDE_RECORD_HAS(record, sonde_object_code_t, data)) {
    return false;
  }
  sonde_object_code_t piece;
  std::memcpy(&piece, record, sizeof(piece));
  const uint64_t end = uint64_t{piece.data.offset} + piece.data.count;
  if (piece.data.count == 0 || end > SONDE_RECORD_BYTES(record) || piece.bytes > kMostBytes ||
      piece.offset > piece.bytes || piece.data.count > piece.bytes - piece.offset) {
    return false;
  }
  Object &object = objects_[piece.hash];
  if (!object.pieces.empty() && object.bytes.size() != piece.bytes) return false;
  const uint64_t needed = piece.offset + piece.data.count;
  const auto after = object.pieces.upper_bound(piece.offset);
  if (after != object.pieces.begin()) {
    const auto before = std::prev(after);
    if (before->first == piece.offset && before->second == piece.data.count) return true;  // it is here already
    if (before->first + before->second > piece.offset) return false;
  }
  if (after != object.pieces.end() && after->first < needed) return false;
  if (object.bytes.empty()) object.bytes.resize(piece.bytes);
  std::memcpy(object.bytes.data() + piece.offset, reinterpret_cast<const uint8_t *>(record) + piece.data.offset,
              piece.data.count);
  object.pieces.emplace(piece.offset, piece.data.count);
  object.present += piece.data.count;
  return true;
}

std::span<const uint8_t> CodeStore::find(uint64_t hash) const {
  const auto found = objects_.find(hash);
  if (found == objects_.end() || found->second.present != found->second.bytes.size()) return {};
  return found->second.bytes;
}

uint64_t CodeStore::missing(uint64_t hash) const {
  const auto found = objects_.find(hash);
  if (found == objects_.end() || found->second.pieces.empty()) return UINT64_MAX;
  return found->second.bytes.size() - found->second.present;
}

std::vector<uint64_t> CodeStore::hashes() const {
  std::vector<uint64_t> out;
  for (const auto &[hash, object] : objects_) {
    if (!object.pieces.empty()) out.push_back(hash);
  }
  return out;
}

}  // namespace sonde::toolkit
