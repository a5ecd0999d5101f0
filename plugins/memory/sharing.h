// Which objects could share memory, and how little would do for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "options.h"
#include "usage.h"

namespace sonde::memory {

// `later` could take over the memory of `earlier`, which is used for the last time before `later` is used at all.
struct SharedPair {
  uint64_t later = 0;  // ids of objects
  uint64_t earlier = 0;
  uint64_t bytes = 0;    // that one of them need not have had
  double byte_ns = 0;    // while both were allocated
  uint64_t at_peak = 0;  // bytes, where both lived at the peak
  bool is_across_streams = false;
  Use last_of_earlier;
  Use first_of_later;
  toolkit::MemoryObject later_object;
};

struct SharingResult {
  std::vector<SharedPair> pairs;  // most bytes times time first
  uint64_t objects = 0;           // that were packed
  uint64_t left_out = 0;          // used objects smaller than those
  uint64_t left_out_largest = 0;  // bytes of the largest of them
  uint64_t bound = 0;             // needed at one time: no packing takes less
  uint64_t slots = 0;             // allocations that several objects use one after another
  uint64_t slots_bytes = 0;       // of all of these together
  uint64_t offsets_bytes = 0;     // one piece of memory with an offset for each object
};

// Keeps the largest used objects, as little of each as it takes. Memory: 200 bytes for each of the limit.
class Sharing {
 public:
  explicit Sharing(size_t limit) : limit_(limit) {}
  void add(const Usage &usage, const Options &options);
  // Packs needs from first to last use. Pairs: in the order of first uses each object takes the memory of one whose last use
  // is over, that was still allocated when the object was, of equal size or within reuse_tolerance; the one that is
  // freed last. Each is taken once, so that chains a, b, c arise. O(n log n), packing O(n^2).
  SharingResult finish(const Options &options, uint64_t peak_sequence) const;

 private:
  struct Candidate {
    uint64_t id = 0;
    uint64_t bytes = 0;
    uint64_t begin = 0, end = 0;  // sequences
    int64_t begin_ns = 0, end_ns = 0;
    bool may_pair = false;
    uint64_t address = 0;
    uint32_t name = 0, call_path = 0;
    Use first, last;
  };
  static bool is_larger(const Candidate &a, const Candidate &b);
  void find_pairs(const Options &options, uint64_t peak_sequence, SharingResult &result) const;

  size_t limit_;
  uint64_t left_out_ = 0;
  uint64_t left_out_largest_ = 0;
  std::vector<Candidate> heap_;  // its front is the smallest
};

}  // namespace sonde::memory
