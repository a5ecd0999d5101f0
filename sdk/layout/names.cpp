#include "layout/names.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace sonde::layout {
namespace {

struct Table {
  std::mutex mutex;
  std::deque<std::string> texts;  // by id; a deque never moves what it holds
  std::unordered_map<std::string_view, DimName> ids;

  Table() {
    for (const char *const text : {"", "register", "lane", "warp", "block", "offset", "vector", "bank", "segment",
                                   "reps", "row", "col", "partition", "addr", "message", ""}) {
      add(text);
    }
    for (uint32_t index = 0; index < dim::kNumbered; ++index) add("dim" + std::to_string(index));
  }

  DimName add(std::string text) {
    const auto id = static_cast<DimName>(texts.size());
    texts.push_back(std::move(text));
    if (!texts.back().empty()) ids.emplace(texts.back(), id);
    return id;
  }
};

Table &table() {
  static Table *const instance = new Table;
  return *instance;
}

}  // namespace

DimName intern_dim(std::string_view name) {
  if (name.empty()) return 0;
  Table &all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = all.ids.find(name);
  return found != all.ids.end() ? found->second : all.add(std::string(name));
}

std::string_view dim_text(DimName name) {
  Table &all = table();
  const std::lock_guard lock(all.mutex);
  return name != 0 && name < all.texts.size() && !all.texts[name].empty() ? std::string_view(all.texts[name]) : "?";
}

}  // namespace sonde::layout
