// Interned strings of several sources under one numbering.
#pragma once

#include <sonde/record.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sonde::toolkit {

// Numbers texts from 0, which is "". The same text gives the same number.
class Interner {
 public:
  Interner() { intern(""); }

  uint32_t intern(std::string_view text);
  const std::string &text(uint32_t id) const { return texts_[id]; }
  size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // a deque keeps its elements in place, so the views below stay valid
  std::unordered_map<std::string_view, uint32_t> ids_;
};

// Ids of records are scoped by their source; this turns (source, id) into one number for each text.
class SourceStrings {
 public:
  // fetch(source, id) returns the text, or null when it is not known (yet).
  using Fetch = std::function<const char *(uint32_t source, sonde_string_t id)>;

  explicit SourceStrings(Fetch fetch) : fetch_(std::move(fetch)) {}

  // 0 for an id whose text is not known; asked again next time.
  uint32_t resolve(uint32_t source, sonde_string_t id);
  uint32_t intern(std::string_view text) { return interner_.intern(text); }
  const std::string &text(uint32_t resolved) const { return interner_.text(resolved); }

 private:
  Fetch fetch_;
  Interner interner_;
  std::vector<std::unordered_map<sonde_string_t, uint32_t>> known_;  // by source
};

}  // namespace sonde::toolkit
