// Memory that is given back in the order of one stream while another stream may still use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace sonde::memory {

// The last use of an object on a stream.
struct StreamUse {
  uint64_t stream = 0;
  int64_t time_ns = 0;
  uint32_t name = 0;
};

// What the capture shows of the order of a use and the free behind it.
enum class Ordering : uint8_t {
  kShown,     // the host waited for the stream of the use, or for the context
  kPossible,  // something waited for an event, or one stream is the default one, which waits for blocking streams
  kNotShown,  // synchronisations were captured, and none of them orders the two
  kUnknown,   // no synchronisation was captured
};

struct StreamCase {
  uint64_t object = 0;
  uint32_t source = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t name = 0;  // of the object
  StreamUse use;
  uint64_t free_stream = 0;
  int64_t free_ns = 0;
  Ordering ordering = Ordering::kUnknown;
};

// A stream-ordered free takes effect after the work of its own stream alone (CUDA Runtime API, "Stream Ordered Memory
// Allocator"). What another stream does with the memory must be ordered before it by the program. Records say which
// stream waited for an event, not on which stream it was recorded, so events give "possible" and no more.
class StreamOrder {
 public:
  static constexpr size_t kMostSyncs = 262144;  // of a process
  static constexpr size_t kMostCases = 65536;

  // `kind`: SONDE_SYNC_*; times of the host's wait.
  void sync(uint32_t source, uint32_t kind, uint64_t stream, int64_t begin_ns, int64_t end_ns);
  // A use of a stream other than that of the free.
  void free_elsewhere(const StreamCase &found);
  // A stream-ordered free.
  void note_free() { ++frees_; }
  // Decides the cases.
  void finish();

  uint64_t frees() const { return frees_; }
  const std::vector<StreamCase> &cases() const { return cases_; }  // in the order of the frees
  uint64_t count(Ordering ordering) const;
  uint64_t not_kept() const { return not_kept_; }

 private:
  struct Sync {
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t stream;
    uint32_t kind;
  };
  struct Syncs {
    std::deque<Sync> items;
    bool is_cut = false;
  };

  static Ordering order(const StreamCase &found, const Syncs &syncs);

  uint64_t frees_ = 0;
  uint64_t not_kept_ = 0;
  std::map<uint32_t, Syncs> syncs_;
  std::vector<StreamCase> cases_;
};

const char *name_of(Ordering ordering);

}  // namespace sonde::memory
