#include "code_cache.h"

#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sonde::cuda {

uint64_t code_hash(const void *code, size_t bytes) { return XXH3_64bits(code, bytes); }

bool CodeCache::add(uint64_t hash, const void *code, size_t bytes, uint64_t most_bytes) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (by_hash_.count(hash) != 0) return true;
  if (bytes > most_bytes || kept_bytes_ > most_bytes - bytes) {
    by_hash_.emplace(hash, nullptr);  // seen, not kept
    return false;
  }
  auto made = std::make_shared<Code>();
  made->hash = hash;
  const auto *begin = static_cast<const uint8_t *>(code);
  made->bytes.assign(begin, begin + bytes);
  kept_bytes_ += bytes;
  by_hash_.emplace(hash, made);
  codes_.push_back(std::move(made));
  return true;
}

void CodeCache::alias(uint64_t checksum, uint64_t hash) {
  std::lock_guard<std::mutex> hold(mutex_);
  aliases_[checksum] = hash;
}

bool CodeCache::resolve(uint64_t checksum, uint64_t &hash) const {
  std::lock_guard<std::mutex> hold(mutex_);
  if (const auto alias = aliases_.find(checksum); alias != aliases_.end()) {
    hash = alias->second;
    return true;
  }
  hash = checksum;
  return by_hash_.count(checksum) != 0;
}

std::vector<std::shared_ptr<const Code>> CodeCache::since(size_t first) const {
  std::lock_guard<std::mutex> hold(mutex_);
  if (first >= codes_.size()) return {};
  return {codes_.begin() + static_cast<ptrdiff_t>(first), codes_.end()};
}

std::vector<toolkit::SourceFrame> CodeCache::lines(uint64_t hash, const std::string &function, uint64_t pc) {
  auto known = tables_.find(hash);
  if (known == tables_.end()) {
    std::shared_ptr<const Code> code;
    {
      std::lock_guard<std::mutex> hold(mutex_);
      if (const auto found = by_hash_.find(hash); found != by_hash_.end()) code = found->second;
    }
    if (code == nullptr) return {};  // it may come yet
    std::unique_ptr<toolkit::CubinLines> table;
    std::string error;
    if (auto read = toolkit::CubinLines::read(code->bytes, error)) {
      table = std::make_unique<toolkit::CubinLines>(std::move(*read));
    } else {
      errors_.push_back("no source lines of a code object of " + std::to_string(code->bytes.size()) +
                        " bytes: " + error);
    }
    known = tables_.emplace(hash, std::move(table)).first;
  }
  if (known->second == nullptr) return {};
  return known->second->find(function, pc);
}

std::vector<std::string> CodeCache::take_errors() { return std::exchange(errors_, {}); }

}  // namespace sonde::cuda
