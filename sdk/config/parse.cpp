#include "config/parse.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <istream>
#include <streambuf>
#include <unordered_map>

namespace sonde::config {

namespace {

// Ends the parser from inside an event; becomes an Error in parse().
struct Refusal {
  Place place;
  std::string text;
};

Place place_of(const YAML::Mark &mark) {
  if (mark.is_null()) return {};
  return {static_cast<uint32_t>(mark.line) + 1, static_cast<uint32_t>(mark.column) + 1};
}

// Builds the tree. A container is on the stack while its events come; it moves into its parent when it ends.
class Builder final : public YAML::EventHandler {
 public:
  Builder(Node &root, std::string_view text) : root_(root), text_(text) {}

  void OnDocumentStart(const YAML::Mark &) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override {
    Node node;
    node.place = place_of(mark);
    add(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                const std::string &value) override {
    Node node;
    node.kind = Kind::kScalar;
    node.place = place_of(mark);
    node.quoted = tag == "!";
    if (!tag.empty() && tag != "?" && tag != "!") refuse_tag(node.place, tag);
    if (node.quoted) check_closed(mark);
    const bool null_word = value == "~" || value == "null" || value == "Null" || value == "NULL";
    if (!node.quoted && (value.empty() || null_word) && !expects_key()) {
      node.kind = Kind::kNull;
    } else {
      node.text = value;
    }
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark &mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refusal{place_of(mark), "this alias refers to a node that contains it"};
    count(found->second.size, place_of(mark));
    Node copy = found->second.node;
    finish(std::move(copy), 0, found->second.size);
  }

  void OnSequenceStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    Node node;
    YAML::anchor_t anchor = 0;
    size_t size = 1;  // nodes of the subtree so far
    bool has_key = false;
    std::unordered_map<std::string, Place> seen;
  };
  struct Anchored {
    Node node;
    size_t size = 0;
  };

  [[noreturn]] static void refuse_tag(Place place, const std::string &tag) {
    throw Refusal{place, fmt::format("the tag '{}' is not supported", tag)};
  }

  // The parser takes a quoted text that the end of the file cuts off; this does not.
  void check_closed(const YAML::Mark &mark) const {
    const auto begin = static_cast<size_t>(mark.pos);
    if (begin >= text_.size() || (text_[begin] != '"' && text_[begin] != '\'')) return;
    for (size_t at = begin + 1; at < text_.size(); ++at) {
      if (text_[at] == text_[begin]) return;
      if (text_[at] == '\\' && text_[begin] == '"') ++at;
    }
    throw Refusal{place_of(mark), "this quoted text has no end"};
  }

  bool expects_key() const {
    return !levels_.empty() && levels_.back().node.kind == Kind::kMap && !levels_.back().has_key;
  }

  void count(size_t nodes, Place place) {
    total_ += nodes;
    if (total_ > kMaxNodes) {
      throw Refusal{place, fmt::format("the tree has more than {} nodes here, aliases expanded", kMaxNodes)};
    }
  }

  void open(Kind kind, const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor) {
    const Place place = place_of(mark);
    if (!tag.empty() && tag != "?" && tag != "!") refuse_tag(place, tag);
    if (expects_key()) throw Refusal{place, "a key must be plain text"};
    if (levels_.size() >= kMaxDepth) throw Refusal{place, fmt::format("nested more than {} deep", kMaxDepth)};
    count(1, place);
    Level level;
    level.node.kind = kind;
    level.node.place = place;
    level.anchor = anchor;
    levels_.push_back(std::move(level));
  }

  void close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    finish(std::move(level.node), level.anchor, level.size);
  }

  void add(Node node, YAML::anchor_t anchor) {
    count(1, node.place);
    finish(std::move(node), anchor, 1);
  }

  // Puts a complete node where it belongs.
  void finish(Node node, YAML::anchor_t anchor, size_t size) {
    if (anchor != 0) anchors_[anchor] = {node, size};
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level &parent = levels_.back();
    parent.size += size;
    if (parent.node.kind == Kind::kList) {
      parent.node.items.push_back(std::move(node));
      return;
    }
    if (parent.has_key) {
      // The parser places an absent value at the next token, which may be lines away.
      if (node.kind == Kind::kNull) node.place = parent.node.key_places.back();
      parent.node.items.push_back(std::move(node));
      parent.has_key = false;
      return;
    }
    if (node.kind != Kind::kScalar) throw Refusal{node.place, "a key must be plain text"};
    if (node.text == "<<" && !node.quoted) throw Refusal{node.place, "merge keys ('<<') are not supported"};
    const auto [earlier, fresh] = parent.seen.emplace(node.text, node.place);
    if (!fresh) {
      throw Refusal{node.place, fmt::format("the key '{}' stands here a second time, first at line {}", node.text,
                                            earlier->second.line)};
    }
    parent.node.keys.push_back(std::move(node.text));
    parent.node.key_places.push_back(node.place);
    parent.has_key = true;
  }

  Node &root_;
  const std::string_view text_;
  std::vector<Level> levels_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  size_t total_ = 0;
};

// Reads from a view without a copy.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char *const begin = const_cast<char *>(text.data());
    setg(begin, begin, begin + text.size());
  }
};

// Offset of the first byte that is not UTF-8, or npos.
size_t find_bad_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xc2 && lead < 0xe0 ? 2
                          : (lead & 0xf0) == 0xe0       ? 3
                          : lead >= 0xf0 && lead < 0xf5 ? 4
                                                        : 0;
    if (length == 0 || at + length > text.size()) return at;
    for (size_t index = 1; index < length; ++index) {
      if ((static_cast<unsigned char>(text[at + index]) & 0xc0) != 0x80) return at;
    }
    at += length;
  }
  return std::string_view::npos;
}

Error refuse(const Document &document, Place place, std::string_view text) {
  return {SONDE_E_PARSE, fmt::format("{}: {}", where(document, place), text)};
}

Place place_in(std::string_view text, size_t offset) {
  Place place{1, 1};
  for (const char character : text.substr(0, offset)) {
    ++place.column;
    if (character == '\n') place = {place.line + 1, 1};
  }
  return place;
}

}  // namespace

Result<std::unique_ptr<Document>> parse(std::string_view text, const std::string &origin) {
  auto document = std::make_unique<Document>(origin);
  if (text.size() > kMaxBytes) {
    return refuse(*document, {},
                  fmt::format("the text has {} bytes; a configuration may have {}", text.size(), kMaxBytes));
  }
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return refuse(*document, place_in(text, nul), "a NUL byte; this is not text");
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (const size_t bad = find_bad_utf8(text); bad != std::string_view::npos) {
    return refuse(*document, place_in(text, bad), "this byte is not UTF-8");
  }
  try {
    ViewBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    Builder builder(document->root, text);
    if (parser.HandleNextDocument(builder)) {
      Node ignored;
      Builder rest(ignored, text);
      if (parser.HandleNextDocument(rest)) return refuse(*document, {}, "holds more than one YAML document");
    }
  } catch (const Refusal &refusal) {
    return refuse(*document, refusal.place, refusal.text);
  } catch (const YAML::Exception &exception) {
    return refuse(*document, place_of(exception.mark), exception.msg);
  }
  adopt(*document);
  return document;
}

Result<std::unique_ptr<Document>> load(const std::string &path) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (file == nullptr) return Error{SONDE_E_IO, fmt::format("{}: cannot open: {}", path, std::strerror(errno))};
  std::string text;
  char block[16384];
  for (size_t got = 0; (got = std::fread(block, 1, sizeof block, file.get())) > 0;) {
    text.append(block, got);
    if (text.size() > kMaxBytes) {
      return Error{SONDE_E_PARSE,
                   fmt::format("{}: larger than the {} bytes a configuration may have", path, kMaxBytes)};
    }
  }
  if (std::ferror(file.get()) != 0) {
    return Error{SONDE_E_IO, fmt::format("{}: cannot read: {}", path, std::strerror(errno))};
  }
  return parse(text, path);
}

}  // namespace sonde::config
