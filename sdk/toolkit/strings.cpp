#include <sonde/toolkit/strings.h>

namespace sonde::toolkit {

uint32_t Interner::intern(std::string_view text) {
  const auto it = ids_.find(text);
  if (it != ids_.end()) return it->second;
  const auto id = static_cast<uint32_t>(texts_.size());
  ids_.emplace(texts_.emplace_back(text), id);
  return id;
}

uint32_t SourceStrings::resolve(uint32_t source, sonde_string_t id) {
  if (id == 0) return 0;
  if (source >= known_.size()) known_.resize(source + 1);
  auto &known = known_[source];
  const auto it = known.find(id);
  if (it != known.end()) return it->second;
  const char *const text = fetch_(source, id);
  if (text == nullptr) return 0;
  return known.emplace(id, interner_.intern(text)).first->second;
}

}  // namespace sonde::toolkit
