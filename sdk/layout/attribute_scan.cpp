// The attributes of a whole module.
#include <algorithm>

#include "layout/attribute.h"
#include "layout/attribute_fields.h"

namespace sonde::layout {

using attribute::is_name_letter;

ModuleAttributes scan_attributes(std::string_view module) {
  ModuleAttributes result;
  size_t line = 0;  // beginning of the line, or behind its leading spaces
  const auto skip_word = [&](size_t at) {
    while (at < module.size() && is_name_letter(module[at])) ++at;
    return at;
  };
  const auto skip_blanks = [&](size_t at) {
    while (at < module.size() && (module[at] == ' ' || module[at] == '\t')) ++at;
    return at;
  };
  for (size_t at = 0; at < module.size();) {
    const char c = module[at];
    if (c == '\n') {
      line = ++at;
    } else if (c == '/' && at + 1 < module.size() && module[at + 1] == '/') {
      at = std::min(module.find('\n', at), module.size());
    } else if (c == '"') {
      for (++at; at < module.size() && module[at] != '"' && module[at] != '\n';) at += module[at] == '\\' ? 2 : 1;
      if (at < module.size() && module[at] == '"') ++at;
    } else if (c != '#') {
      ++at;
    } else {
      // A definition begins its line.
      std::string alias;
      size_t start = at;
      size_t name_end = skip_word(at + 1);
      if (skip_blanks(line) == at && name_end > at + 1) {
        const size_t equals = skip_blanks(name_end);
        const size_t value = equals < module.size() && module[equals] == '=' ? skip_blanks(equals + 1) : equals;
        if (value != equals && value < module.size() && module[value] == '#') {
          alias = module.substr(at + 1, name_end - at - 1);
          start = value;
          name_end = skip_word(start + 1);
        }
      }
      const std::string_view dialect = module.substr(start + 1, name_end - start - 1);
      const bool has_kind = name_end < module.size() && module[name_end] == '.';
      if (!has_kind) {
        // Another name for an alias, or the use of one.
        if (!alias.empty()) {
          const auto other = result.aliases.find(dialect);
          if (other != result.aliases.end()) result.aliases[alias] = other->second;
        }
        at = std::max(name_end, at + 1);
        continue;
      }
      const size_t kind_end = skip_word(name_end + 1);
      if (!attribute::is_layout_dialect(dialect) ||
          attribute::is_memory_space(module.substr(name_end + 1, kind_end - name_end - 1))) {
        at = kind_end;
        continue;
      }
      FoundAttribute found;
      found.offset = start;
      found.alias = alias;
      found.encoding = parse_attribute_at(module.substr(start), result.aliases, found.error, found.length);
      if (found.encoding == nullptr) {
        found.error.offset += start;
        ++result.unparsed;
        at = kind_end;
      } else {
        at = start + found.length;
      }
      if (!alias.empty()) result.aliases[alias] = found.encoding;
      result.found.push_back(std::move(found));
    }
  }
  return result;
}

}  // namespace sonde::layout
