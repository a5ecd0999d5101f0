// Writing and reading of small encoded values: little-endian words, varints (7 bits a byte, low bits first), texts.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace sonde::store {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t zigzag(uint64_t difference) {
  return (difference << 1) ^ static_cast<uint64_t>(static_cast<int64_t>(difference) >> 63);
}
constexpr uint64_t unzigzag(uint64_t value) { return (value >> 1) ^ (0 - (value & 1)); }

template <typename T>
void put(Bytes &out, T value) {
  const auto *const bytes = reinterpret_cast<const uint8_t *>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

inline void put_bytes(Bytes &out, const void *data, size_t bytes) {
  const auto *const begin = static_cast<const uint8_t *>(data);
  out.insert(out.end(), begin, begin + bytes);
}

inline void put_varint(Bytes &out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<uint8_t>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<uint8_t>(value));
}

inline void put_text(Bytes &out, std::string_view text) {
  put_varint(out, text.size());
  put_bytes(out, text.data(), text.size());
}

// Reads from bytes that may be damaged: past the end every read gives zero and `good()` turns false for ever.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const uint8_t> bytes) : cursor_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool good() const { return good_; }
  bool at_end() const { return cursor_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - cursor_); }

  template <typename T>
  T get() {
    T value{};
    if (left() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, cursor_, sizeof(T));
    cursor_ += sizeof(T);
    return value;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (cursor_ == end_) break;
      const uint8_t byte = *cursor_++;
      if (shift == 63 && byte > 1) break;
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    fail();
    return 0;
  }

  // A varint that must not exceed `greatest`.
  uint64_t varint_up_to(uint64_t greatest) {
    const uint64_t value = varint();
    if (value <= greatest) return value;
    fail();
    return 0;
  }

  std::span<const uint8_t> bytes(uint64_t count) {
    if (left() < count) {
      fail();
      return {};
    }
    const std::span<const uint8_t> taken(cursor_, static_cast<size_t>(count));
    cursor_ += count;
    return taken;
  }

  std::string_view text() {
    const std::span<const uint8_t> taken = bytes(varint());
    return {reinterpret_cast<const char *>(taken.data()), taken.size()};
  }

  void fail() {
    good_ = false;
    cursor_ = end_;
  }

 private:
  const uint8_t *cursor_ = nullptr;
  const uint8_t *end_ = nullptr;
  bool good_ = true;
};

}  // namespace sonde::store
