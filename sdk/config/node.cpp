#include "config/node.h"

#include <fmt/format.h>

#include <charconv>

using sonde::config::Kind;

const sonde_config_t *sonde_config_t::find(std::string_view key) const {
  if (kind != Kind::kMap) return nullptr;
  for (size_t index = 0; index < keys.size(); ++index) {
    if (keys[index] == key) return &items[index];
  }
  return nullptr;
}

const sonde_config_t *sonde_config_t::at(std::string_view path) const {
  if (path.empty()) return this;
  if (kind == Kind::kList) {
    const size_t dot = path.find('.');
    const std::string_view head = path.substr(0, dot);
    size_t index = 0;
    const auto [end, error] = std::from_chars(head.data(), head.data() + head.size(), index);
    if (error != std::errc() || end != head.data() + head.size() || index >= items.size()) return nullptr;
    return dot == std::string_view::npos ? &items[index] : items[index].at(path.substr(dot + 1));
  }
  if (kind != Kind::kMap) return nullptr;
  // The longest key that the path begins with: keys may hold dots themselves.
  for (size_t length = path.size();;) {
    if (const sonde_config_t *const found = find(path.substr(0, length)); found != nullptr) {
      return length == path.size() ? found : found->at(path.substr(length + 1));
    }
    const size_t dot = path.substr(0, length).rfind('.');
    if (dot == std::string_view::npos) return nullptr;
    length = dot;
  }
}

namespace sonde::config {

namespace {

void adopt(Document &document, Node &node) {
  node.document = &document;
  for (Node &item : node.items) adopt(document, item);
}

}  // namespace

const char *kind_name(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kScalar:
      return "text";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
  }
  return "?";
}

void adopt(Document &document) { adopt(document, document.root); }

std::string where(const Document &document, Place place) {
  if (place.line == 0) return document.origin;
  return fmt::format("{}:{}:{}", document.origin, place.line, place.column);
}

std::string where(const Node &node) { return where(*node.document, node.place); }

}  // namespace sonde::config
