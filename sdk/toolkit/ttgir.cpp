#include "ttgir.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "ttgir_locations.h"
#include "ttgir_text.h"

namespace sonde::toolkit::ttgir {
namespace {

using Range = Operation::Range;

bool is_loop(std::string_view name) {
  constexpr std::array<std::string_view, 5> kLoops = {"scf.for", "scf.while", "scf.forall", "scf.parallel",
                                                      "affine.for"};
  return std::find(kLoops.begin(), kLoops.end(), name) != kLoops.end();
}

// Operations printed without their dialect.
bool is_bare_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {"module", "func", "return", "call", "unrealized_conversion_cast"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Words that go on with an operation although they begin a line: "partition0(...) num_warps(4) {".
bool goes_on(std::string_view word) {
  constexpr std::array<std::string_view, 8> kWords = {"else", "do",        "default", "attributes",
                                                      "loc",  "num_warps", "step",    "iter_args"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end() ||
         (word.starts_with("partition") && word.find('.') == std::string_view::npos);
}

}  // namespace

class Reader {
 public:
  explicit Reader(std::string_view text) : cursor_(text), locations_(module_.aliases_, module_.locations_) {
    module_.text_ = text;
    module_.line_begins_.push_back(0);
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') module_.line_begins_.push_back(i + 1);
    }
  }

  bool run() {
    for (;;) {
      cursor_.skip_space();
      if (cursor_.at_end()) break;
      if (!top_level()) return false;
    }
    if (module_.operations_.empty()) return fail("an operation was expected, the text has none");
    finish();
    return true;
  }

  Module take() { return std::move(module_); }
  Error error() const { return {module_.place_of(fault_position_), fault_}; }

 private:
  // What the head of an operation gathers before its regions are read.
  struct Argument {
    std::string_view name;
    uint32_t type = kNone;
    uint32_t initial = kNone;
    std::string_view attributes;
    uint32_t location = kNone;
  };
  struct Head {
    std::vector<std::pair<std::string_view, uint32_t>> results;  // names with their counts
    std::vector<uint32_t> operands, types, result_types;
    std::vector<std::string_view> successors;
    std::vector<Argument> arguments;  // of the next region
    bool wants_initial = false;       // "%x =" was read last
    bool is_after_arrow = false;
  };
  struct Binding {
    uint32_t first = kNone;
    uint32_t count = 1;
  };

  bool fail(std::string text) { return fail_at(cursor_.position(), std::move(text)); }
  bool fail_at(size_t position, std::string text) {
    fault_position_ = position;
    fault_ = std::move(text);
    return false;
  }
  bool skip_balanced() {
    std::string fault;
    return cursor_.balanced(&fault) || fail(fault);
  }

  // --- Names ---

  void bind(std::string_view name, Binding binding) {
    const auto [place, is_new] = names_.try_emplace(name, binding);
    undo_.push_back({name, is_new ? Binding{} : place->second});
    place->second = binding;
  }

  // A name that was used before its definition, as blocks may do it, keeps the value that the use made.
  bool bind_forwarded(std::string_view name, uint32_t defined) {
    const auto place = names_.find(name);
    if (place == names_.end() || module_.values_[place->second.first].is_defined()) return false;
    std::swap(module_.values_[place->second.first], module_.values_[defined]);
    forwarded_.push_back({defined, place->second.first});
    return true;
  }

  void leave_scope(size_t mark) {
    while (undo_.size() > mark) {
      if (undo_.back().second.first == kNone) {
        names_.erase(undo_.back().first);
      } else {
        names_[undo_.back().first] = undo_.back().second;
      }
      undo_.pop_back();
    }
  }

  uint32_t use(std::string_view name, uint32_t number) {
    const auto place = names_.find(name);
    if (place != names_.end() && number < place->second.count) return place->second.first + number;
    const auto index = static_cast<uint32_t>(module_.values_.size());
    module_.values_.push_back({.name = name, .number = number, .attributes = {}});
    if (place == names_.end() && number == 0) bind(name, {index, 1});
    return index;
  }

  // --- Types ---

  // A type begins here; kNone and the cursor unmoved where none does.
  bool type(uint32_t *out) {
    *out = kNone;
    const size_t begin = cursor_.position();
    const bool is_dialect = cursor_.take("!");
    const std::string_view word = cursor_.word();
    if (cursor_.peek() == '<' && (is_dialect || !word.empty() || cursor_.position() == begin)) {
      // "tensor<...>", "!tt.ptr<...>", and "<64x64xf16, ...>", the short form of a memory descriptor.
      if (!skip_balanced()) return false;
    } else if (!is_dialect && read_type(word).kind != TypeKind::kScalar && word != "none") {
      cursor_.move_to(begin);
      return true;
    }
    *out = intern(cursor_.since(begin));
    return true;
  }

  uint32_t intern(std::string_view text) {
    const auto [place, is_new] = types_.try_emplace(text, static_cast<uint32_t>(module_.types_.size()));
    if (is_new) {
      std::string_view meaning = text;
      for (int i = 0; i < 8 && meaning.starts_with('!'); ++i) {
        const auto alias = module_.aliases_.find(meaning);
        if (alias == module_.aliases_.end()) break;
        meaning = alias->second;
      }
      module_.types_.push_back(read_type(meaning));
      module_.types_.back().text = text;
    }
    return place->second;
  }
  uint32_t intern_derived(std::string text) {
    if (const auto known = types_.find(text); known != types_.end()) return known->second;
    module_.derived_.push_back(std::move(text));
    return intern(module_.derived_.back());
  }

  // "T, T -> T", "(T, T) -> (T)", "T to T", "T * T -> T"; stops at what is no type.
  bool type_list(Head &head) {
    for (;;) {
      cursor_.skip_space();
      uint32_t index = kNone;
      const size_t before = cursor_.position();
      if (cursor_.peek() == '(') {
        cursor_.step();
        for (;;) {
          cursor_.skip_space();
          if (cursor_.take(")")) break;
          const size_t inner = cursor_.position();
          if (!type(&index)) return false;
          if (index == kNone) return fail("a type was expected");
          add_type(head, index);
          if (!skip_type_decoration()) return false;
          cursor_.skip_space();
          cursor_.take(",");
          if (cursor_.position() == inner) return fail("a type was expected");
        }
      } else {
        if (!type(&index)) return false;
        if (index == kNone) {
          cursor_.move_to(before);
          return true;
        }
        add_type(head, index);
      }
      const size_t end = cursor_.position();
      if (cursor_.skip_space() && cursor_.peek() != ',' && !cursor_.at("->")) {
        cursor_.move_to(end);
        return true;
      }
      if (cursor_.take(",") || cursor_.take("*")) continue;
      if (cursor_.take("->") || (cursor_.at("to ") && cursor_.take("to"))) {
        head.is_after_arrow = true;
        continue;
      }
      cursor_.move_to(end);
      return true;
    }
  }
  void add_type(Head &head, uint32_t index) { (head.is_after_arrow ? head.result_types : head.types).push_back(index); }
  // Attributes of a function's result: "f32 {tt.divisibility = 16 : i32}".
  bool skip_type_decoration() {
    cursor_.skip_space();
    return cursor_.peek() != '{' || skip_balanced();
  }

  // --- Locations ---

  // "loc(...)" begins here.
  bool location(uint32_t *out) {
    cursor_.take("loc");
    const size_t begin = cursor_.position();
    if (!skip_balanced()) return false;
    const std::string_view text = cursor_.since(begin);
    pending_locations_.push_back(text.substr(1, text.size() - 2));
    *out = static_cast<uint32_t>(pending_locations_.size() - 1);
    return true;
  }

  // --- Top level ---

  bool top_level() {
    const size_t begin = cursor_.position();
    if (cursor_.at("{-#")) {  // resources
      const size_t end = module_.text_.find("#-}", begin);
      if (end == std::string_view::npos) return fail("a \"#-}\" that ends the resources was expected");
      cursor_.move_to(end + 3);
      return true;
    }
    if (cursor_.peek() == '#' || cursor_.peek() == '!') {
      cursor_.step();
      cursor_.value_name();
      const std::string_view name = cursor_.since(begin);
      cursor_.skip_space();
      if (name.size() < 2 || !cursor_.take("=")) return fail("\"#name =\" or \"!name =\" was expected");
      cursor_.skip_space();
      const size_t value = cursor_.position();
      if (!attribute()) return false;
      module_.aliases_.emplace(name, trimmed(cursor_.since(value)));
      return true;
    }
    return operation(kNone, kNone, 0);
  }

  // Everything up to the end of the line that lies in no bracket.
  bool attribute() {
    while (!cursor_.at_end() && cursor_.peek() != '\n') {
      const char c = cursor_.peek();
      std::string_view ignored;
      if (c == '"') {
        if (!cursor_.string(&ignored)) return fail("a string that ends was expected");
      } else if (c == '<' || c == '(' || c == '[' || c == '{') {
        if (!skip_balanced()) return false;
      } else if (c == '/' && cursor_.peek(1) == '/') {
        break;
      } else {
        cursor_.step();
      }
    }
    return true;
  }

  // --- Operations ---

  bool operation(uint32_t parent, uint32_t block, uint32_t depth) {
    const size_t begin = cursor_.position();
    Head head;
    if (cursor_.peek() == '%' && !result_names(head)) return false;
    const size_t name_begin = cursor_.position();
    std::string_view name;
    if (cursor_.peek() == '"') {
      if (!cursor_.string(&name)) return fail("a string that ends was expected");
    } else {
      name = is_letter(cursor_.peek()) ? cursor_.word() : std::string_view();
      if (name.find('.') == std::string_view::npos && !is_bare_name(name)) {
        return fail_at(name_begin, "the name of an operation was expected");
      }
    }

    const auto index = static_cast<uint32_t>(module_.operations_.size());
    module_.operations_.emplace_back();
    {
      Operation &made = module_.operations_.back();
      made.name = name;
      made.place = module_.place_of(begin);
      made.parent = parent;
      made.block = block;
      if (parent != kNone) {
        const Operation &outer = module_.operations_[parent];
        made.function = outer.name.ends_with(".func") ? parent : outer.function;
        made.loop_depth = outer.loop_depth + (is_loop(outer.name) ? 1 : 0);
      }
    }
    if (!rest_of_operation(index, head, depth)) return false;

    Operation &made = module_.operations_[index];
    made.text = cursor_.since(begin);
    made.end = static_cast<uint32_t>(module_.operations_.size());
    made.operands = pooled(head.operands);
    made.types = pooled(head.types);
    made.result_types = pooled(head.result_types);
    made.successors = {static_cast<uint32_t>(module_.labels_.size()), static_cast<uint32_t>(head.successors.size())};
    module_.labels_.insert(module_.labels_.end(), head.successors.begin(), head.successors.end());
    define_results(index, head);
    return true;
  }

  // "%a, %b:2 ="
  bool result_names(Head &head) {
    for (;;) {
      if (!cursor_.take("%")) return fail("a value was expected");
      const std::string_view name = cursor_.value_name();
      uint32_t count = 1;
      if (cursor_.take(":")) {
        const std::string_view digits = cursor_.word();
        const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
        if (fault != std::errc() || end != digits.data() + digits.size() || count == 0 || count > 65536) {
          return fail("a number of results, 1 to 65536, was expected");
        }
      }
      // Each result takes memory, so a short text must not ask for many: no real operation has as many.
      results_named_ += count;
      if (results_named_ > module_.text_.size()) return fail("fewer results were expected");
      if (name.empty()) return fail("a value's name was expected");
      head.results.emplace_back(name, count);
      cursor_.skip_space();
      if (!cursor_.take(",")) break;
      cursor_.skip_space();
    }
    if (!cursor_.take("=")) return fail("'=' was expected");
    cursor_.skip_space();
    return true;
  }

  bool rest_of_operation(uint32_t index, Head &head, uint32_t depth) {
    std::vector<char> brackets;
    for (;;) {
      const size_t before_space = cursor_.position();
      const bool began_line = cursor_.skip_space();
      const char c = cursor_.peek();
      if (brackets.empty() && (cursor_.at_end() || c == '}' || (began_line && !continues()))) {
        cursor_.move_to(before_space);
        return true;
      }
      if (cursor_.at_end()) return fail(std::string("a '") + brackets.back() + "' was expected before the end");
      switch (c) {
        case '%':
          if (!value(head, brackets.size())) return false;
          break;
        case '"': {
          std::string_view ignored;
          if (!cursor_.string(&ignored)) return fail("a string that ends was expected");
          break;
        }
        case '@':
          if (!symbol(index)) return false;
          break;
        case '^':
          if (!successor(head)) return false;
          break;
        case '(':
        case '[':
          if (brackets.size() >= kMostBrackets) return fail("at most 1000 brackets inside each other were expected");
          brackets.push_back(c == '(' ? ')' : ']');
          cursor_.step();
          break;
        case ')':
        case ']':
          if (brackets.empty() || brackets.back() != c) return fail(std::string("no '") + c + "' was expected here");
          brackets.pop_back();
          cursor_.step();
          break;
        case '<': {
          const size_t begin = cursor_.position();
          if (!skip_balanced()) return false;
          const std::string_view text = cursor_.since(begin);
          if (text.starts_with("<{") && text.ends_with("}>")) {
            module_.operations_[index].properties = trimmed(text.substr(2, text.size() - 4));
          }
          break;
        }
        case '{':
          if (is_region()) {
            if (!region(index, head, depth + 1)) return false;
          } else {
            const size_t begin = cursor_.position();
            if (!skip_balanced()) return false;
            const std::string_view text = cursor_.since(begin);
            if (module_.operations_[index].attributes.empty()) {
              module_.operations_[index].attributes = trimmed(text.substr(1, text.size() - 2));
            }
          }
          break;
        case ':':
          cursor_.step();
          if (brackets.empty() && !type_list(head)) return false;
          break;
        case '-':
          cursor_.step();
          if (cursor_.take(">") && brackets.empty()) {
            head.is_after_arrow = true;
            if (!type_list(head)) return false;
            head.is_after_arrow = false;
          }
          break;
        case '#':
        case '!':
          cursor_.step();
          cursor_.value_name();
          if (cursor_.peek() == '<' && !skip_balanced()) return false;
          break;
        default:
          if (is_letter(c)) {
            const size_t word_begin = cursor_.position();
            const std::string_view word = cursor_.word();
            if (word == "loc" && cursor_.peek() == '(') {
              cursor_.move_to(word_begin);
              if (!location(&module_.operations_[index].location)) return false;
            } else if (cursor_.peek() == '<' && !skip_balanced()) {  // dense<0>, array<i32: 1>
              return false;
            }
          } else if (c < ' ' || c > '~' || c == '}') {
            return fail("an operand, attribute or type was expected");
          } else {
            cursor_.step();
          }
      }
    }
  }

  // Whether the next line belongs to the operation at hand.
  bool continues() {
    const char c = cursor_.peek();
    if (is_letter(c)) {
      const size_t begin = cursor_.position();
      const std::string_view word = cursor_.word();
      cursor_.move_to(begin);
      return goes_on(word);
    }
    return c == ':' || c == ',' || c == ')' || c == '(' || c == '[' || c == ']' || c == '<' || c == '=' || c == '*' ||
           (c == '{' && !cursor_.at("{-#")) || cursor_.at("->");
  }

  // '{' begins a region, not a dictionary.
  bool is_region() {
    const size_t begin = cursor_.position();
    cursor_.step();
    const bool is_new_line = cursor_.skip_space();
    bool answer = false;
    std::string_view ignored;
    if (cursor_.peek() == '%' || cursor_.peek() == '^') {
      answer = true;
    } else if (cursor_.peek() == '}') {
      answer = is_new_line;
    } else if (cursor_.peek() == '"') {
      answer = cursor_.string(&ignored) && (cursor_.skip_space(), cursor_.peek() == '(');
    } else if (is_letter(cursor_.peek())) {
      cursor_.value_name();
      cursor_.skip_space();
      const char next = cursor_.peek();
      answer = next != '=' && next != ',' && (next != '}' || is_new_line);
    }
    cursor_.move_to(begin);
    return answer;
  }

  // '%': an operand, or the definition of an argument of the next region.
  bool value(Head &head, size_t brackets) {
    const size_t begin = cursor_.position();
    cursor_.step();
    const std::string_view name = cursor_.value_name();
    if (name.empty()) return fail("a value's name was expected");
    uint32_t number = 0;
    if (cursor_.take("#")) {
      const std::string_view digits = cursor_.word();
      const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
      if (fault != std::errc() || end != digits.data() + digits.size()) return fail("a result's number was expected");
    }
    const size_t behind = cursor_.position();
    cursor_.skip_space();
    if (cursor_.peek() == '=' && cursor_.peek(1) != '=') {
      cursor_.step();
      head.arguments.push_back({.name = name, .attributes = {}});
      head.wants_initial = true;
      return true;
    }
    if (cursor_.peek() == ':' && brackets > 0 && cursor_.peek(1) != ':') {
      cursor_.move_to(begin);
      Argument argument;
      if (!typed_argument(&argument)) return false;
      head.arguments.push_back(argument);
      return true;
    }
    cursor_.move_to(behind);
    const uint32_t used = use(name, number);
    head.operands.push_back(used);
    if (head.wants_initial) head.arguments.back().initial = used;
    head.wants_initial = false;
    return true;
  }

  // "%x: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc("x"(#loc))"
  bool typed_argument(Argument *out) {
    if (!cursor_.take("%")) return fail("an argument was expected");
    out->name = cursor_.value_name();
    cursor_.skip_space();
    if (!cursor_.take(":")) return fail("':' was expected");
    cursor_.skip_space();
    if (!type(&out->type)) return false;
    if (out->type == kNone) return fail("a type was expected");
    cursor_.skip_space();
    if (cursor_.peek() == '{') {
      const size_t begin = cursor_.position();
      if (!skip_balanced()) return false;
      const std::string_view text = cursor_.since(begin);
      out->attributes = trimmed(text.substr(1, text.size() - 2));
      cursor_.skip_space();
    }
    return !cursor_.at("loc(") || location(&out->location);
  }

  bool symbol(uint32_t index) {
    cursor_.step();
    std::string_view name;
    if (cursor_.peek() == '"') {
      if (!cursor_.string(&name)) return fail("a string that ends was expected");
    } else {
      name = cursor_.value_name();
    }
    if (module_.operations_[index].symbol.empty()) module_.operations_[index].symbol = name;
    return true;
  }

  // "^bb1" or "^bb1(%a, %b : i32, f32)"
  bool successor(Head &head) {
    cursor_.step();
    head.successors.push_back(cursor_.value_name());
    if (!cursor_.take("(")) return true;
    for (;;) {
      cursor_.skip_space();
      if (cursor_.take(")")) return true;
      if (cursor_.take(",")) continue;
      if (cursor_.take(":")) {
        Head ignored;
        if (!type_list(ignored)) return false;
        continue;
      }
      if (!cursor_.take("%")) return fail("a value was expected");
      const std::string_view name = cursor_.value_name();
      uint32_t number = 0;
      if (cursor_.take("#")) {
        const std::string_view digits = cursor_.word();
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
      }
      head.operands.push_back(use(name, number));
    }
  }

  // --- Regions ---

  bool region(uint32_t owner, Head &head, uint32_t depth) {
    if (depth > kMostRegions) return fail("at most 200 regions inside each other were expected");
    cursor_.step();
    const size_t scope = undo_.size();
    const uint32_t number = module_.operations_[owner].region_count++;
    uint32_t block = open_block(owner, number, {}, head.arguments);
    head.arguments.clear();
    for (bool is_first = true;; is_first = false) {
      cursor_.skip_space();
      if (cursor_.at_end()) return fail("a '}' that ends the region was expected before the end");
      if (cursor_.take("}")) break;
      if (cursor_.peek() == '^') {
        std::string_view label;
        std::vector<Argument> arguments;
        if (!block_head(&label, &arguments)) return false;
        if (is_first && module_.blocks_[block].argument_count == 0) {
          module_.blocks_[block].label = label;
          add_arguments(block, arguments);
        } else {
          block = open_block(owner, number, label, arguments);
        }
        continue;
      }
      if (!operation(owner, block, depth)) return false;
    }
    leave_scope(scope);
    return true;
  }

  uint32_t open_block(uint32_t owner, uint32_t region, std::string_view label, const std::vector<Argument> &arguments) {
    const auto block = static_cast<uint32_t>(module_.blocks_.size());
    module_.blocks_.push_back({owner, region, label, 0, 0});
    add_arguments(block, arguments);
    return block;
  }

  void add_arguments(uint32_t block, const std::vector<Argument> &arguments) {
    module_.blocks_[block].first_argument = static_cast<uint32_t>(module_.values_.size());
    module_.blocks_[block].argument_count = static_cast<uint32_t>(arguments.size());
    const uint32_t owner = module_.blocks_[block].operation;
    const uint32_t first = module_.blocks_[block].first_argument;
    for (uint32_t number = 0; number < arguments.size(); ++number) {
      const Argument &argument = arguments[number];
      uint32_t type = argument.type;
      if (type == kNone && argument.initial != kNone) type = module_.values_[argument.initial].type;
      module_.values_.push_back(
          {argument.name, type, owner, number, block, argument.initial, argument.attributes, argument.location});
    }
    for (uint32_t number = 0; number < arguments.size(); ++number) bind(arguments[number].name, {first + number, 1});
  }

  // "^bb0(%a: f32 loc(...), %b: f32):"
  bool block_head(std::string_view *label, std::vector<Argument> *arguments) {
    cursor_.step();
    *label = cursor_.value_name();
    cursor_.skip_space();
    if (cursor_.take("(")) {
      for (;;) {
        cursor_.skip_space();
        if (cursor_.take(")")) break;
        if (!arguments->empty()) {
          if (!cursor_.take(",")) return fail("',' or ')' was expected");
          cursor_.skip_space();
        }
        Argument argument;
        if (!typed_argument(&argument)) return false;
        arguments->push_back(argument);
      }
      cursor_.skip_space();
    }
    return cursor_.take(":") || fail("':' after the block's label was expected");
  }

  // --- Results ---

  void define_results(uint32_t index, const Head &head) {
    const auto first = static_cast<uint32_t>(module_.values_.size());
    uint32_t number = 0;
    for (const auto &[name, count] : head.results) {
      const auto start = static_cast<uint32_t>(module_.values_.size());
      for (uint32_t i = 0; i < count; ++i, ++number) {
        const uint32_t type = result_type(module_.operations_[index], head, number);
        module_.values_.push_back({.name = name, .type = type, .operation = index, .number = number, .attributes = {}});
      }
      if (count != 1 || !bind_forwarded(name, start)) bind(name, {start, count});
    }
    std::vector<uint32_t> results(number);
    for (uint32_t i = 0; i < number; ++i) results[i] = first + i;
    for (const auto &[replaced, kept] : forwarded_) {
      std::replace(results.begin(), results.end(), replaced, kept);
    }
    forwarded_.clear();
    module_.operations_[index].results = pooled(results);
  }

  // Where no "->" says it, by the rule of the operation: most have one type for operands and results.
  uint32_t result_type(const Operation &operation, const Head &head, uint32_t number) {
    if (number < head.result_types.size()) return head.result_types[number];
    if (head.types.empty()) return operation.name == "arith.constant" ? intern("i1") : kNone;
    const std::string_view name = operation.name;
    const uint32_t first = head.types.front();
    if (name == "tt.addptr") return first;
    if (name == "tt.load") {
      const Type type = module_.types_[first];
      if (type.kind == TypeKind::kPointer) return intern(type.pointee);
      return type.kind == TypeKind::kTensor ? with_element(type, type.pointee) : kNone;
    }
    if (name == "arith.cmpi" || name == "arith.cmpf") {
      const Type type = module_.types_[first];
      return type.kind == TypeKind::kTensor ? with_element(type, "i1") : intern("i1");
    }
    return number < head.types.size() && head.types.size() > 1 && name != "arith.select" ? head.types[number]
                                                                                         : head.types.back();
  }

  uint32_t with_element(const Type &type, std::string_view element) {
    std::string text = "tensor<";
    for (const int64_t size : type.shape) text += (size < 0 ? "?" : std::to_string(size)) + "x";
    text += element;
    if (!type.encoding.empty()) text.append(", ").append(type.encoding);
    return intern_derived(text + ">");
  }

  Range pooled(const std::vector<uint32_t> &items) {
    const Range range{static_cast<uint32_t>(module_.pool_.size()), static_cast<uint32_t>(items.size())};
    module_.pool_.insert(module_.pool_.end(), items.begin(), items.end());
    return range;
  }

  // --- The end ---

  void finish() {
    // Aliases may stand behind their use, so locations are looked up when all is read.
    std::vector<uint32_t> resolved(pending_locations_.size());
    for (size_t i = 0; i < resolved.size(); ++i) resolved[i] = locations_.resolve(pending_locations_[i]);
    for (Operation &operation : module_.operations_) {
      if (operation.location != kNone) operation.location = resolved[operation.location];
    }
    for (Value &value : module_.values_) {
      if (value.location != kNone) value.location = resolved[value.location];
    }
    // Users, grouped by value.
    std::vector<uint32_t> &begins = module_.use_begins_;
    begins.assign(module_.values_.size() + 1, 0);
    for (const Operation &operation : module_.operations_) {
      for (const uint32_t value : module_.operands(operation)) ++begins[value + 1];
    }
    for (size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    module_.uses_.resize(begins.back());
    std::vector<uint32_t> next(begins.begin(), begins.end() - 1);
    for (uint32_t index = 0; index < module_.operations_.size(); ++index) {
      for (const uint32_t value : module_.operands(module_.operations_[index])) module_.uses_[next[value]++] = index;
    }
  }

  Module module_;
  Cursor cursor_{""};
  LocationTable locations_;
  std::unordered_map<std::string_view, Binding> names_;
  std::vector<std::pair<std::string_view, Binding>> undo_;  // what a name meant before
  std::vector<std::pair<uint32_t, uint32_t>> forwarded_;    // values that were used before their definition
  std::unordered_map<std::string_view, uint32_t> types_;
  std::vector<std::string_view> pending_locations_;
  uint64_t results_named_ = 0;
  size_t fault_position_ = 0;
  std::string fault_;
};

std::optional<Module> Module::read(std::string_view text, Error *error) {
  Reader reader(text);
  if (reader.run()) return reader.take();
  if (error != nullptr) *error = reader.error();
  return std::nullopt;
}

}  // namespace sonde::toolkit::ttgir
