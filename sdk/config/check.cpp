#include "config/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "config/parse.h"
#include "config/scalar.h"

namespace sonde::config {

namespace {

constexpr size_t kMaxFaults = 40;

const char *type_name(uint32_t type) {
  switch (type) {
    case SONDE_OPTION_BOOL:
      return "true or false";
    case SONDE_OPTION_I64:
      return "an integer";
    case SONDE_OPTION_F64:
      return "a number";
    case SONDE_OPTION_TEXT:
      return "text";
    case SONDE_OPTION_TEXTS:
      return "a list of text";
    case SONDE_OPTION_TIME:
      return "a time (10us, 2.5ms, 1s, or ns)";
    case SONDE_OPTION_TREE:
      return "a tree";
    default:
      return "?";
  }
}

bool is_option_name(std::string_view name) {
  bool start = true;
  for (const char character : name) {
    if (character == '.') {
      if (start) return false;
      start = true;
      continue;
    }
    const bool lower = character >= 'a' && character <= 'z';
    const bool other = (character >= '0' && character <= '9') || character == '_';
    if (!lower && (start || !other)) return false;
    start = false;
  }
  return !start;
}

template <typename Value>
struct Range {
  std::optional<Value> least;
  std::optional<Value> greatest;
};

// "min..max" with either end left out; nothing when it is not a range of that type.
template <typename Value, typename Read>
std::optional<Range<Value>> to_range(std::string_view text, Read read) {
  Range<Value> range;
  if (text.empty()) return range;
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::string_view ends[2] = {text.substr(0, dots), text.substr(dots + 2)};
  if (!ends[0].empty() && !(range.least = read(ends[0]))) return std::nullopt;
  if (!ends[1].empty() && !(range.greatest = read(ends[1]))) return std::nullopt;
  return range;
}

std::vector<std::string> words_of(std::string_view choices) {
  std::vector<std::string> words;
  while (true) {
    const size_t bar = choices.find('|');
    words.emplace_back(choices.substr(0, bar));
    if (bar == std::string_view::npos) return words;
    choices.remove_prefix(bar + 1);
  }
}

std::string shortened(std::string_view text) {
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return std::string(text);
  return fmt::format("{}...", text.substr(0, kMost));
}

// Value of one option, from the tree or from its default. Faults are appended as "what is wrong".
class Reader {
 public:
  explicit Reader(const sonde_option_t &option) : option_(option) {}

  // The typed node, or the text of the fault.
  Result<Node> read(const Node &given) const {
    const std::string_view choices = option_.choices;
    switch (option_.type) {
      case SONDE_OPTION_TREE:
        return given;
      case SONDE_OPTION_TEXTS:
        return read_texts(given);
      case SONDE_OPTION_TEXT:
        return read_text(given);
      case SONDE_OPTION_BOOL:
        return read_scalar<bool>(given, "", to_bool, [](bool value) { return value ? "true" : "false"; });
      case SONDE_OPTION_I64:
        return read_scalar<int64_t>(given, choices, to_integer, [](int64_t value) { return std::to_string(value); });
      case SONDE_OPTION_TIME:
        return read_scalar<int64_t>(given, choices, to_time, [](int64_t value) { return std::to_string(value); });
      case SONDE_OPTION_F64:
        return read_scalar<double>(given, choices, to_number, from_number);
      default:
        return fault(fmt::format("has the unknown type {}", option_.type));
    }
  }

 private:
  static Error fault(std::string text) { return {SONDE_E_INVALID, std::move(text)}; }

  Error wrong_type(const Node &given) const {
    if (given.kind == Kind::kNull) return fault(fmt::format("has no value; expected {}", type_name(option_.type)));
    const std::string found =
        given.kind == Kind::kScalar ? fmt::format("'{}'", shortened(given.text)) : kind_name(given.kind);
    return fault(fmt::format("is {}; expected {}", found, type_name(option_.type)));
  }

  template <typename Value, typename Read, typename Write>
  Result<Node> read_scalar(const Node &given, std::string_view choices, Read read, Write write) const {
    if (given.kind != Kind::kScalar) return wrong_type(given);
    const std::optional<Value> value = read(given.text);
    if (!value) return wrong_type(given);
    const auto range = to_range<Value>(choices, read);
    if (!range) return fault(fmt::format("has the declared range '{}', which is none", choices));
    if ((range->least && *value < *range->least) || (range->greatest && *value > *range->greatest)) {
      return fault(
          fmt::format("is {}, outside {}{}{}", given.text, choices, *option_.unit == '\0' ? "" : " ", option_.unit));
    }
    Node node = given;
    node.text = write(*value);
    node.quoted = false;
    return node;
  }

  Result<Node> read_text(const Node &given) const {
    if (given.kind != Kind::kScalar) return wrong_type(given);
    if (*option_.choices != '\0') {
      const std::vector<std::string> words = words_of(option_.choices);
      if (std::find(words.begin(), words.end(), given.text) == words.end()) {
        const std::string near = nearest(given.text, words);
        return fault(fmt::format("is '{}'; expected one of {}{}", shortened(given.text), fmt::join(words, ", "),
                                 near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
      }
    }
    return given;
  }

  Result<Node> read_texts(const Node &given) const {
    if (given.kind != Kind::kList) return wrong_type(given);
    for (const Node &item : given.items) {
      if (item.kind != Kind::kScalar) {
        return fault(
            fmt::format("holds {} at {}; expected {}", kind_name(item.kind), where(item), type_name(option_.type)));
      }
    }
    return given;
  }

  const sonde_option_t &option_;
};

// The default as a node; text that needs no YAML is taken as it is.
Result<Node> read_fallback(const std::string &origin, const sonde_option_t &option) {
  Result<std::unique_ptr<Document>> parsed =
      parse(option.fallback, fmt::format("{}: default of {}", origin, option.name));
  if (!parsed) return parsed.error();
  Node node = std::move((*parsed)->root);
  const auto clear = [](auto &&self, Node &cleared) -> void {
    cleared.place = {};
    cleared.document = nullptr;
    for (Node &item : cleared.items) self(self, item);
  };
  clear(clear, node);
  if (node.kind == Kind::kNull && option.type == SONDE_OPTION_TEXT) node.kind = Kind::kScalar;
  if (node.kind == Kind::kNull && option.type == SONDE_OPTION_TEXTS) node.kind = Kind::kList;
  return Reader(option).read(node);
}

class Checker {
 public:
  Checker(const Node *tree, const std::string &origin, const Options &options)
      : tree_(tree), origin_(origin), options_(options) {
    for (uint32_t index = 0; index < options.count; ++index) names_.emplace_back(options[index].name);
    given_.resize(options.count);
  }

  Result<std::unique_ptr<Document>> run() {
    if (tree_ != nullptr && tree_->kind != Kind::kNull) {
      if (tree_->kind != Kind::kMap) {
        return Error{SONDE_E_INVALID, fmt::format("{}: {} takes a map of options, this is {}", where(*tree_), origin_,
                                                  kind_name(tree_->kind))};
      }
      walk(*tree_, "");
    }
    auto document = std::make_unique<Document>(tree_ == nullptr ? origin_ : tree_->document->origin);
    document->root.kind = Kind::kMap;
    if (tree_ != nullptr) document->root.place = tree_->place;
    for (uint32_t index = 0; index < options_.count; ++index) add(*document, index);
    if (!faults_.empty()) return Error{SONDE_E_INVALID, message()};
    adopt(*document);
    return document;
  }

 private:
  // Assigns the entries of a map to options; `prefix` is the dotted name so far, with its last dot.
  void walk(const Node &map, const std::string &prefix) {
    for (size_t index = 0; index < map.items.size(); ++index) {
      const std::string name = prefix + map.keys[index];
      const Node &item = map.items[index];
      const auto found = std::find(names_.begin(), names_.end(), name);
      const std::string place = where(*map.document, map.key_places[index]);
      if (found != names_.end()) {
        const Node *&slot = given_[static_cast<size_t>(found - names_.begin())];
        if (slot != nullptr) {
          fault(fmt::format("{}: '{}' of {} is given a second time, first at {}", place, name, origin_, where(*slot)));
        }
        slot = &item;
        continue;
      }
      const std::string below = name + ".";
      const bool nests = std::any_of(names_.begin(), names_.end(),
                                     [&](const std::string &option) { return option.starts_with(below); });
      if (nests && item.kind == Kind::kMap) {
        walk(item, below);
      } else if (nests && item.kind == Kind::kNull) {
        continue;  // "idle:" with nothing below it
      } else if (nests) {
        fault(fmt::format("{}: '{}' of {} is {}; expected a map", where(item), name, origin_, kind_name(item.kind)));
      } else {
        unknown(place, name);
      }
    }
  }

  void unknown(const std::string &place, const std::string &name) {
    const std::string near = nearest(name, names_);
    std::string hint;
    if (!near.empty()) {
      hint = fmt::format("; did you mean '{}'?", near);
    } else if (names_.empty()) {
      hint = "; it takes none";
    } else if (names_.size() <= 12) {
      hint = fmt::format("; there are {}", fmt::join(names_, ", "));
    }
    fault(fmt::format("{}: unknown option '{}' of {}{}", place, name, origin_, hint));
  }

  void add(Document &document, uint32_t index) {
    const sonde_option_t &option = options_[index];
    const Node *const given = given_[index];
    if (given == nullptr && option.fallback == nullptr) {
      const std::string place = tree_ == nullptr ? origin_ : where(*tree_);
      fault(fmt::format("{}: option '{}' of {} must be given ({})", place, option.name, origin_, option.help));
      return;
    }
    Result<Node> value = given == nullptr ? read_fallback(origin_, option) : Reader(option).read(*given);
    if (!value) {
      const std::string place = given == nullptr ? origin_ : where(*given);
      fault(fmt::format("{}: option '{}' of {} {}", place, option.name, origin_, value.error().text));
      return;
    }
    place_node(document.root, option.name, std::move(*value));
  }

  // Nests by the dots of `name`.
  static void place_node(Node &map, std::string_view name, Node value) {
    const size_t dot = name.find('.');
    const std::string head(name.substr(0, dot));
    auto found = std::find(map.keys.begin(), map.keys.end(), head);
    if (found == map.keys.end()) {
      map.keys.push_back(head);
      map.key_places.emplace_back();
      map.items.emplace_back();
      map.items.back().kind = Kind::kMap;
      found = map.keys.end() - 1;
    }
    Node &slot = map.items[static_cast<size_t>(found - map.keys.begin())];
    if (dot == std::string_view::npos) {
      slot = std::move(value);
    } else {
      place_node(slot, name.substr(dot + 1), std::move(value));
    }
  }

  void fault(std::string text) {
    if (faults_.size() < kMaxFaults) faults_.push_back(std::move(text));
    ++fault_count_;
  }

  std::string message() const {
    std::string text = fmt::format("{}", fmt::join(faults_, "\n"));
    if (fault_count_ > faults_.size()) text += fmt::format("\nand {} more faults", fault_count_ - faults_.size());
    return text;
  }

  const Node *const tree_;
  const std::string &origin_;
  const Options options_;
  std::vector<std::string> names_;
  std::vector<const Node *> given_;  // for each option, what the tree says
  std::vector<std::string> faults_;
  size_t fault_count_ = 0;
};

// Edits (insert, delete, replace, swap of neighbours) between two words.
size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<size_t> before(right.size() + 1), last(right.size() + 1), row(right.size() + 1);
  for (size_t column = 0; column <= right.size(); ++column) last[column] = column;
  for (size_t line = 1; line <= left.size(); ++line) {
    row[0] = line;
    for (size_t column = 1; column <= right.size(); ++column) {
      const size_t same = left[line - 1] == right[column - 1] ? 0 : 1;
      row[column] = std::min({last[column] + 1, row[column - 1] + 1, last[column - 1] + same});
      if (line > 1 && column > 1 && left[line - 1] == right[column - 2] && left[line - 2] == right[column - 1]) {
        row[column] = std::min(row[column], before[column - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[right.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string> &candidates) {
  if (word.size() > 128) return "";
  std::string best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string &candidate : candidates) {
    if (candidate.size() > 128) continue;
    size_t distance = edit_distance(word, candidate);
    // "threshold" for "idle.threshold": the last part alone.
    const size_t dot = candidate.rfind('.');
    if (dot != std::string::npos && candidate.substr(dot + 1) == word) distance = std::min<size_t>(distance, 1);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string check_declaration(const std::string &origin, const Options &options) {
  if (options.count == 0) return "";
  if (options.first == nullptr) return fmt::format("{}: {} options declared, the table is NULL", origin, options.count);
  if (options.stride < sizeof(sonde_option_t) || options.stride % alignof(sonde_option_t) != 0) {
    return fmt::format("{}: the stride of the options is {}; expected {} or more", origin, options.stride,
                       sizeof(sonde_option_t));
  }
  std::vector<std::string> faults;
  std::set<std::string> names;
  for (uint32_t index = 0; index < options.count; ++index) {
    const sonde_option_t &option = options[index];
    const auto fault = [&](std::string_view text) {
      faults.push_back(fmt::format("{}: option {} ({}) {}", origin, index,
                                   option.name == nullptr ? "without name" : option.name, text));
    };
    if (option.name == nullptr || !is_option_name(option.name)) {
      fault("needs a name of lower case letters, digits, '_' and '.'");
      continue;
    }
    if (!names.insert(option.name).second) fault("is declared twice");
    if (option.help == nullptr || option.unit == nullptr || option.choices == nullptr) {
      fault("has NULL for help, unit or choices; \"\" means none");
      continue;
    }
    if (option.type < SONDE_OPTION_BOOL || option.type > SONDE_OPTION_TREE) {
      fault(fmt::format("has the unknown type {}", option.type));
      continue;
    }
    const bool range_ok = (option.type == SONDE_OPTION_I64 && to_range<int64_t>(option.choices, to_integer)) ||
                          (option.type == SONDE_OPTION_TIME && to_range<int64_t>(option.choices, to_time)) ||
                          (option.type == SONDE_OPTION_F64 && to_range<double>(option.choices, to_number)) ||
                          option.type == SONDE_OPTION_TEXT || *option.choices == '\0';
    if (!range_ok) {
      fault(fmt::format("has choices '{}' that do not fit its type", option.choices));
      continue;
    }
    if (option.fallback != nullptr) {
      if (Result<Node> value = read_fallback(origin, option); !value) {
        fault(fmt::format("has a bad default: {}", value.error().text));
      }
    }
  }
  for (const std::string &name : names) {
    const auto after = names.lower_bound(name + ".");
    if (after != names.end() && after->starts_with(name + ".")) {
      faults.push_back(fmt::format("{}: option '{}' is both a value and the parent of '{}'", origin, name, *after));
    }
  }
  return fmt::format("{}", fmt::join(faults, "\n"));
}

Result<std::unique_ptr<Document>> check(const Node *tree, const std::string &origin, const Options &options) {
  if (const std::string faults = check_declaration(origin, options); !faults.empty()) {
    return Error{SONDE_E_INVALID, faults};
  }
  return Checker(tree, origin, options).run();
}

}  // namespace sonde::config
