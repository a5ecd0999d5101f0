// The tree behind a sonde_config_t: maps, lists and scalars with the place where each was written.
#pragma once

#include <sonde/config.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::config {

struct Document;

// 1-based; 0: not from a text (a default).
struct Place {
  uint32_t line = 0;
  uint32_t column = 0;
};

enum class Kind : uint8_t { kNull, kScalar, kList, kMap };

// "nothing", "text", "a list", "a map": for messages.
const char *kind_name(Kind kind);

}  // namespace sonde::config

// A node. The root of a document is what parse, load and check hand out; views are the nodes below it.
struct sonde_config_t {
  using Node = sonde_config_t;

  sonde::config::Document *document = nullptr;
  sonde::config::Kind kind = sonde::config::Kind::kNull;
  bool quoted = false;  // a scalar in quotes or a block: text whatever it looks like
  sonde::config::Place place;
  std::string text;         // of a scalar
  std::vector<Node> items;  // of a list or a map
  std::vector<std::string> keys;
  std::vector<sonde::config::Place> key_places;

  // Entry of a map, or null.
  const Node *find(std::string_view key) const;

  // Node by dotted path; list elements by index. A key that itself holds dots is found too. Null when absent.
  const Node *at(std::string_view path) const;
};

namespace sonde::config {

using Node = sonde_config_t;

// Owns a tree and the texts handed out for it. Not movable: nodes point to it.
struct Document {
  explicit Document(std::string name) : origin(std::move(name)) { root.document = this; }
  Document(const Document &) = delete;
  Document &operator=(const Document &) = delete;

  std::string origin;  // what messages call it: a path
  Node root;

  // Texts made on demand, kept until the document goes.
  std::mutex mutex;
  std::map<const Node *, std::string> where_texts;
  std::map<const Node *, std::string> print_texts;
};

// Points every node below the root to its document; call it after a tree is complete.
void adopt(Document &document);

// "file:line:column", or "file" for a default.
std::string where(const Node &node);
std::string where(const Document &document, Place place);

}  // namespace sonde::config
