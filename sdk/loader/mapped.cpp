#include "loader/mapped.h"

#include <link.h>

#include <algorithm>
#include <cstring>

namespace sonde::loader {

namespace {

void append_ranges(const dl_phdr_info &info, std::vector<MappedRange> &ranges) {
  for (uint16_t index = 0; index < info.dlpi_phnum; ++index) {
    const ElfW(Phdr) &segment = info.dlpi_phdr[index];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
    const uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    ranges.push_back({begin, begin + segment.p_memsz, (segment.p_flags & PF_X) != 0});
  }
}

struct ObjectSearch {
  uintptr_t address;
  std::vector<MappedRange> ranges;
};

}  // namespace

MappedObjects MappedObjects::now() {
  MappedObjects objects;
  ::dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *user) {
        append_ranges(*info, *static_cast<std::vector<MappedRange> *>(user));
        return 0;
      },
      &objects.ranges_);
  std::sort(objects.ranges_.begin(), objects.ranges_.end(),
            [](const MappedRange &left, const MappedRange &right) { return left.begin < right.begin; });
  return objects;
}

std::vector<MappedRange> MappedObjects::of_object(const void *address) {
  ObjectSearch search{reinterpret_cast<uintptr_t>(address), {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *user) {
        auto &wanted = *static_cast<ObjectSearch *>(user);
        std::vector<MappedRange> ranges;
        append_ranges(*info, ranges);
        for (const MappedRange &range : ranges) {
          if (wanted.address < range.begin || wanted.address >= range.end) continue;
          wanted.ranges = std::move(ranges);
          return 1;
        }
        return 0;
      },
      &search);
  return search.ranges;
}

const MappedRange *MappedObjects::find(const void *address) const {
  const auto value = reinterpret_cast<uintptr_t>(address);
  auto after = std::upper_bound(ranges_.begin(), ranges_.end(), value,
                                [](uintptr_t wanted, const MappedRange &range) { return wanted < range.begin; });
  if (after == ranges_.begin()) return nullptr;
  --after;
  return value < after->end ? &*after : nullptr;
}

bool MappedObjects::readable(const void *address, size_t bytes) const {
  const MappedRange *const range = find(address);
  return range != nullptr && range->end - reinterpret_cast<uintptr_t>(address) >= bytes;
}

bool MappedObjects::executable(const void *address) const {
  const MappedRange *const range = find(address);
  return range != nullptr && range->executable;
}

bool MappedObjects::is_text(const char *text, size_t most) const {
  const MappedRange *const range = find(text);
  if (range == nullptr) return false;
  const size_t room = std::min(most, range->end - reinterpret_cast<uintptr_t>(text));
  return std::memchr(text, '\0', room) != nullptr;
}

}  // namespace sonde::loader
