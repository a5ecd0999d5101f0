// From a CUPTI activity buffer to Sonde's records.
//
// The decoder keeps names and the correlation counter between buffers and nothing else: no table of launches or
// graphs, so its memory does not grow with replays. Times are passed on as they are (the core repairs them beside the
// raw value), names stay mangled, kinds that nobody asked for are skipped and counted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <sonde/capture.h>

#include "cupti_api.h"
#include "names.h"

namespace sonde::cuda {

// Record types that a session wants, by built-in space.
struct Wants {
  std::array<uint64_t, SONDE_SPACE_FRAMEWORK + 1> types = {};  // bit t of types[s]: type t of space s

  bool has(uint32_t space, uint32_t type) const { return (types[space] >> type) & 1u; }
  void add(uint32_t space, uint32_t type) { types[space] |= uint64_t{1} << type; }
  bool any() const {
    for (const uint64_t bits : types) {
      if (bits != 0) return true;
    }
    return false;
  }
  bool operator==(const Wants &) const = default;
};

// Where decoded records go: runs of memory that the subclass provides one after the other.
class RecordOutput {
 public:
  virtual ~RecordOutput() = default;

  // Room for one record, valid until the next call; null when it is lost, which the subclass has counted.
  void *reserve(uint32_t bytes) {
    if (static_cast<size_t>(limit_ - cursor_) < bytes && !refill(bytes)) return nullptr;
    void *const room = cursor_;
    cursor_ += bytes;
    return room;
  }

 protected:
  // Provides a run of at least `bytes`, after taking care of what lies before cursor_; false: the record is lost.
  virtual bool refill(uint32_t bytes) = 0;

  uint8_t *cursor_ = nullptr;
  uint8_t *limit_ = nullptr;
};

struct DecodeCounts {
  uint64_t records = 0;    // written, or lost by the output
  uint64_t unwanted = 0;   // of a known kind that this session does not want
  uint64_t unknown = 0;    // of a kind that Sonde does not decode
  uint64_t malformed = 0;  // cut off by the buffer's end, or not walkable
  uint32_t unknown_kind = 0;
};

// One thread at a time.
class Decoder {
 public:
  // `api` gives the version, the walk over a buffer and the names of calls; it must outlive the decoder.
  Decoder(const CuptiApi *api, const sonde_capture_service_t *capture);

  // Decodes `valid_bytes` of `buffer` into `out`. `now` stamps objects, for which CUPTI gives no time.
  DecodeCounts decode(uint8_t *buffer, size_t valid_bytes, const Wants &wants, uint64_t now, RecordOutput &out);

  size_t names() const { return names_.size(); }

 private:
  struct Pass;

  sonde_string_t function_name(uint32_t domain, uint32_t callback);
  sonde_string_t intern(const char *text);

  const CuptiApi *api_;
  const sonde_capture_service_t *capture_;
  NameCache names_;
  CorrelationWidener correlations_;
  std::vector<sonde_string_t> functions_[3];  // by domain, then callback id; 0: not asked yet
  sonde_string_t runtime_domain_ = 0;
  sonde_string_t driver_domain_ = 0;
  sonde_string_t overhead_domain_ = 0;
  sonde_string_t cuda_ = 0;
};

// Least bytes of a record of `kind` that Sonde reads in CUPTI `version`; 0: a kind that it does not decode.
uint32_t needed_bytes(uint32_t kind, uint32_t version);

// Name of a call without the decoration that CUPTI's tables add: "cudaLaunchKernel_ptsz_v7000" is cudaLaunchKernel.
std::string plain_function_name(const char *name, bool runtime);

}  // namespace sonde::cuda
