// The code objects that the process has loaded while somebody sampled: kept once by content.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sonde/toolkit/cubin_lines.h>

namespace sonde::cuda {

struct Code {
  uint64_t hash = 0;
  std::vector<uint8_t> bytes;
};

// XXH3-64 of the bytes, what sonde.object.module calls a code object's hash.
uint64_t code_hash(const void *code, size_t bytes);

class CodeCache {
 public:
  // Keeps a copy if the content is new and fits under `most_bytes`; false when it does not fit. [any]
  bool add(uint64_t hash, const void *code, size_t bytes, uint64_t most_bytes);

  // The vendor's checksum of a code object, where it is not the hash. [any]
  void alias(uint64_t checksum, uint64_t hash);

  // The hash that a checksum of a sample stands for; false when no such code object was seen. [any]
  bool resolve(uint64_t checksum, uint64_t &hash) const;

  // Objects in order of arrival, from the `first`-th on. [any]
  std::vector<std::shared_ptr<const Code>> since(size_t first) const;

  // Source of an instruction; empty when it is not known. Line tables are read at the first question. [any], one
  // thread at a time
  std::vector<toolkit::SourceFrame> lines(uint64_t hash, const std::string &function, uint64_t pc);

  // Why line tables could not be read, one a code object at most; handed out once.
  std::vector<std::string> take_errors();

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Code>> codes_;
  std::map<uint64_t, std::shared_ptr<const Code>> by_hash_;
  std::map<uint64_t, uint64_t> aliases_;
  uint64_t kept_bytes_ = 0;
  std::map<uint64_t, std::unique_ptr<toolkit::CubinLines>> tables_;  // of one thread at a time
  std::vector<std::string> errors_;
};

}  // namespace sonde::cuda
