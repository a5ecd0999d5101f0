#include <algorithm>
#include <cstdio>
#include <string>

#include "rules.h"

namespace sonde::memory {

std::string count_of(uint64_t count, const char *thing) {
  const std::string word = thing;
  const char *const ending = count == 1 ? "" : word.ends_with("ch") ? "es" : "s";
  return std::to_string(count) + " " + word + ending;
}

std::string short_number(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.6g", value);
  return buffer;
}

double part_of(uint64_t some, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(some) / static_cast<double>(whole);
}

std::string in_words(std::string_view rule) {
  std::string words(rule);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

Rules::Rules(const Memory &memory, const Host &host, sonde_session_t *session)
    : memory_(memory), objects_(memory.objects()), options_(memory.options()), host_(host), session_(session) {
  for (const auto &[source, process] : objects_.processes()) {
    launches_ += process.launches;
    watched_ += process.watched;
    incomplete_ += process.incomplete;
    transfers_ += process.transfers;
    has_bytes_ = has_bytes_ || process.with_edges + process.with_pages != 0;
    has_pages_ = has_pages_ || process.with_pages != 0;
  }
}

Finding Rules::finding(std::string_view rule) const {
  return Finding(kOrigin, std::string(kOrigin) + "." + std::string(rule));
}

std::string Rules::owner(uint32_t source) const {
  if (objects_.processes().size() < 2) return "";
  const auto id = memory_.process_ids().find(source);
  return " of process " + (id == memory_.process_ids().end() ? std::string("(unnamed)") : std::to_string(id->second));
}

void publish_findings(const Memory &memory, const Host &host, sonde_session_t *session,
                      const std::vector<std::string> &file_errors) {
  PatternRules(memory, host, session).all();
  RunRules(memory, host, session).all(file_errors);
}

}  // namespace sonde::memory
