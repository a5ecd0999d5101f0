// Which addresses belong to loaded objects: so that the pointers of a plugin's table can be judged before they are
// followed. A table of another layout puts numbers where pointers should be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sonde::loader {

struct MappedRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool executable = false;
};

class MappedObjects {
 public:
  // Readable segments of every loaded object, now. [any]
  static MappedObjects now();

  // Readable segments of the object that `address` lies in.
  static std::vector<MappedRange> of_object(const void *address);

  bool readable(const void *address, size_t bytes) const;
  bool executable(const void *address) const;

  // A NUL-terminated text of at most `most` bytes.
  bool is_text(const char *text, size_t most) const;

 private:
  const MappedRange *find(const void *address) const;
  std::vector<MappedRange> ranges_;  // sorted
};

}  // namespace sonde::loader
