// Questions to a module that was read.
#include <algorithm>

#include "ttgir.h"

namespace sonde::toolkit::ttgir {

std::span<const std::string_view> Module::successors(const Operation &operation) const {
  return std::span<const std::string_view>(labels_).subspan(operation.successors.first, operation.successors.count);
}

std::span<const uint32_t> Module::users(uint32_t value) const {
  return std::span<const uint32_t>(uses_).subspan(use_begins_[value], use_begins_[value + 1] - use_begins_[value]);
}

const Type *Module::type_of(uint32_t value) const {
  const uint32_t type = values_[value].type;
  return type == kNone ? nullptr : &types_[type];
}

const Operation *Module::definition(uint32_t value) const {
  const Value &what = values_[value];
  return what.is_defined() && !what.is_argument() ? &operations_[what.operation] : nullptr;
}

std::string_view Module::alias(std::string_view name) const {
  const auto place = aliases_.find(name);
  return place == aliases_.end() ? std::string_view() : place->second;
}

Location Module::location_of(const Operation &operation, std::string_view file) const {
  Location known;
  uint32_t index = operation.location;
  for (uint32_t frame = 0; index != kNone && frame <= kMostFrames; ++frame) {
    const Location &location = locations_[index];
    if (location.line != 0 && location.file == file) return location;
    if (location.line != 0 && known.line == 0) known = location;
    index = location.caller;
  }
  if (known.line == 0 && operation.location != kNone) return locations_[operation.location];
  return known;
}

std::string Module::call_path(const Operation &operation) const {
  std::string path;
  uint32_t index = operation.location;
  if (index == kNone || locations_[index].caller == kNone) return path;
  for (uint32_t frame = 0; index != kNone && frame <= kMostFrames; ++frame) {
    const Location &location = locations_[index];
    if (location.line != 0) {
      path += path.empty() ? "" : " < ";
      path += std::string(location.file) + ":" + std::to_string(location.line) + ":" + std::to_string(location.column);
    }
    index = location.caller;
  }
  return path;
}

Place Module::place_of(size_t offset) const {
  const auto next = std::upper_bound(line_begins_.begin(), line_begins_.end(), offset);
  const auto line = static_cast<size_t>(next - line_begins_.begin());
  return {static_cast<uint32_t>(line), static_cast<uint32_t>(offset - line_begins_[line - 1] + 1)};
}

}  // namespace sonde::toolkit::ttgir
