#include "config/print.h"

#include <fmt/format.h>

namespace sonde::config {

namespace {

// True for text that YAML gives back unchanged without quotes, in a line and inside [ ].
bool is_plain(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL" || text == "<<") return false;
  if (text.front() == '-' && (text.size() == 1 || text[1] == '-' || text[1] == '.')) return false;
  if (text.front() == '.' || text.front() == '?') return false;
  for (const char character : text) {
    const bool letter = (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
    const bool digit = character >= '0' && character <= '9';
    if (!letter && !digit && std::string_view("_-.+/%").find(character) == std::string_view::npos) return false;
  }
  return text.front() != '%';
}

void append_quoted(std::string &out, std::string_view text) {
  out += '"';
  for (const char character : text) {
    switch (character) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(character)));
        } else {
          out += character;
        }
    }
  }
  out += '"';
}

void append_flow(std::string &out, const Node &node);

bool is_small(const Node &node) {
  if (node.kind == Kind::kMap) return node.items.empty();
  if (node.kind != Kind::kList) return true;
  for (const Node &item : node.items) {
    if (item.kind != Kind::kScalar && item.kind != Kind::kNull && !item.items.empty()) return false;
  }
  return true;
}

void append_flow(std::string &out, const Node &node) {
  switch (node.kind) {
    case Kind::kNull:
      out += '~';
      return;
    case Kind::kScalar:
      out += print_scalar(node.text, node.quoted);
      return;
    case Kind::kMap:
      out += "{}";
      return;
    case Kind::kList:
      out += '[';
      for (size_t index = 0; index < node.items.size(); ++index) {
        if (index != 0) out += ", ";
        append_flow(out, node.items[index]);
      }
      out += ']';
      return;
  }
}

// Lines of `node` at `indent`; the first one continues the current line when `inside_item`.
void append_block(std::string &out, const Node &node, size_t indent, bool inside_item) {
  if (is_small(node)) {
    if (!inside_item) out.append(indent, ' ');
    append_flow(out, node);
    out += '\n';
    return;
  }
  for (size_t index = 0; index < node.items.size(); ++index) {
    if (index != 0 || !inside_item) out.append(indent, ' ');
    const Node &item = node.items[index];
    if (node.kind == Kind::kList) {
      out += "- ";
      append_block(out, item, indent + 2, true);
      continue;
    }
    out += print_scalar(node.keys[index], false);
    out += ':';
    if (is_small(item)) {
      out += ' ';
      append_flow(out, item);
      out += '\n';
    } else {
      out += '\n';
      append_block(out, item, indent + 2, false);
    }
  }
}

}  // namespace

std::string print_scalar(std::string_view text, bool quoted) {
  if (!quoted && is_plain(text)) return std::string(text);
  std::string out;
  append_quoted(out, text);
  return out;
}

std::string print(const Node &node) {
  std::string out;
  append_block(out, node, 0, false);
  return out;
}

}  // namespace sonde::config
