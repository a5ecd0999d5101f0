// Reading structs of the interface that another build filled in: theirs may be shorter or longer than ours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace sonde::report {

// What both builds know of `given`; the rest is zero. `given` begins with struct_size.
template <typename Type>
Type copy_known(const Type &given) {
  Type known{};
  uint32_t size = 0;
  std::memcpy(&size, static_cast<const void *>(&given), sizeof(size));
  std::memcpy(static_cast<void *>(&known), &given, std::min<size_t>(size, sizeof(Type)));
  return known;
}

// Element `index` of an array whose elements lie `stride` bytes apart.
template <typename Type>
Type element_at(const Type *array, uint64_t index, uint32_t stride) {
  Type known{};
  const auto *const bytes = reinterpret_cast<const uint8_t *>(array) + index * stride;
  std::memcpy(static_cast<void *>(&known), bytes, std::min<size_t>(stride, sizeof(Type)));
  return known;
}

}  // namespace sonde::report
