#include "reflect/signature.h"

#include <fmt/format.h>

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace sonde::reflect {
namespace {

constexpr uint64_t kMaxText = 1024;
constexpr uint64_t kMaxHandleName = 63;

uint32_t kind_of(char code) {
  switch (code) {
    case 'i':
    case 'q':
      return SONDE_VALUE_I64;
    case 'I':
    case 'Q':
      return SONDE_VALUE_U64;
    case 'd':
      return SONDE_VALUE_F64;
    case 's':
      return SONDE_VALUE_TEXT;
    case 'y':
      return SONDE_VALUE_BYTES;
    case 'L':
      return SONDE_VALUE_I64S;
    case 'D':
      return SONDE_VALUE_F64S;
    case 'h':
      return SONDE_VALUE_HANDLE;
    default:
      return SONDE_VALUE_NONE;
  }
}

// Reads one signature from front to back; the first fault ends it.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::unique_ptr<Signature>> run() {
    if (text_.size() > kMaxText) return error(kMaxText, "the signature is too long");
    auto signature = std::make_unique<Signature>();
    signature->text = text_;
    Parameter result;
    if (Result<void> read = read_result(result); !read) return read.error();
    signature->result = std::move(result);
    if (at_end() || text_[position_] != '(') return error(position_, "expected '('");
    ++position_;
    // 'v' alone stands for no parameters, as in C.
    if (rest().starts_with("v)")) ++position_;
    while (!at_end() && text_[position_] != ')') {
      if (signature->parameters.size() == kMaxParameters) {
        return error(position_, fmt::format("more than {} parameters", kMaxParameters));
      }
      Parameter parameter;
      if (Result<void> read = read_parameter(parameter); !read) return read.error();
      signature->parameters.push_back(std::move(parameter));
    }
    if (at_end()) return error(position_, "expected a parameter or ')'");
    ++position_;
    if (!at_end()) return error(position_, "the signature must end after ')'");
    return signature;
  }

 private:
  bool at_end() const { return position_ >= text_.size(); }
  std::string_view rest() const { return text_.substr(position_); }

  Error error(uint64_t position, std::string_view what) const {
    std::string printable;
    for (const char letter : text_.substr(0, 80)) {
      const bool plain = letter >= ' ' && letter <= '~';
      printable += plain ? std::string(1, letter) : fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
    }
    if (text_.size() > 80) printable += "...";
    return {SONDE_E_PARSE, fmt::format("signature \"{}\", position {}: {}", printable, position + 1, what)};
  }

  Result<void> read_result(Parameter &out) {
    if (at_end()) return error(position_, "the signature is empty; expected a result: one of e v i I q Q d s h");
    const char code = text_[position_];
    if (std::string_view("eviIqQdsh").find(code) == std::string_view::npos) {
      return error(position_, "no result begins so; expected one of e v i I q Q d s h");
    }
    ++position_;
    out.code = code;
    out.kind = kind_of(code);
    return code == 'h' ? read_handle(out) : Result<void>();
  }

  Result<void> read_parameter(Parameter &out) {
    char code = text_[position_];
    if (code == '&') {
      ++position_;
      if (at_end() || std::string_view("qQds").find(text_[position_]) == std::string_view::npos) {
        return error(position_, "expected one of q Q d s after '&'");
      }
      code = text_[position_];
      out.is_out = true;
    } else if (std::string_view("iIqQdsyLDch").find(code) == std::string_view::npos) {
      return error(position_, "no parameter begins so; expected one of i I q Q d s y L D c h & or ')'");
    }
    ++position_;
    out.code = code;
    out.kind = kind_of(code);
    return code == 'h' ? read_handle(out) : Result<void>();
  }

  Result<void> read_handle(Parameter &out) {
    if (at_end()) return error(position_, "expected S, T, C, R or {name} after 'h'");
    const char first = text_[position_];
    if (std::string_view("STCR").find(first) != std::string_view::npos) {
      out.handle = first;
      ++position_;
    } else if (first == '{') {
      const uint64_t begin = position_++;
      while (!at_end() && text_[position_] != '}') {
        const char letter = text_[position_];
        const bool allowed =
            (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_' || letter == '.';
        if (!allowed) return error(position_, "the name of a handle holds a-z, 0-9, '_' and '.' only");
        ++position_;
      }
      if (at_end()) return error(position_, "expected '}'");
      const uint64_t length = position_ - begin - 1;
      if (length == 0) return error(position_, "the name of the handle is empty");
      if (length > kMaxHandleName) return error(begin, fmt::format("a name of more than {} letters", kMaxHandleName));
      ++position_;
      out.handle = text_.substr(begin, position_ - begin);
    } else {
      return error(position_, "expected S, T, C, R or {name} after 'h'");
    }
    out.handle_number = handle_number(out.handle);
    return {};
  }

  std::string_view text_;
  uint64_t position_ = 0;
};

ffi_type *ffi_type_of(char argument) {
  switch (argument) {
    case 'v':
      return &ffi_type_void;
    case 'i':
      return &ffi_type_sint32;
    case 'I':
      return &ffi_type_uint32;
    case 'q':
      return &ffi_type_sint64;
    case 'Q':
      return &ffi_type_uint64;
    case 'd':
      return &ffi_type_double;
    default:
      return &ffi_type_pointer;
  }
}

// Letter of the C type that stands for a scalar, handle or text.
char argument_of(const Parameter &parameter) {
  if (parameter.is_out) return 'p';
  switch (parameter.code) {
    case 'e':
      return 'i';
    case 's':
    case 'h':
      return 'p';
    default:
      return parameter.code;
  }
}

// Derives the C function's shape and libffi's description of it.
Result<void> complete(Signature &signature) {
  std::string arguments;
  for (const Parameter &parameter : signature.parameters) {
    if (parameter.is_out) {
      ++signature.out_count;
    } else {
      ++signature.in_count;
    }
    if (!parameter.is_out && parameter.code == 'c') {
      arguments += "ppp";
    } else if (!parameter.is_out && std::string_view("yLD").find(parameter.code) != std::string_view::npos) {
      arguments += "pQ";
    } else {
      arguments += argument_of(parameter);
    }
  }
  const char result = argument_of(signature.result);
  if (signature.result.code != 'e' && signature.result.code != 'v') ++signature.out_count;
  signature.shape = std::string(1, result) + "(" + arguments + ")";
  signature.trampoline = find_trampoline(signature.shape);
  signature.argument_count = static_cast<uint32_t>(arguments.size());
  for (uint32_t index = 0; index < signature.argument_count; ++index) {
    signature.types[index] = ffi_type_of(arguments[index]);
  }
  if (ffi_prep_cif(&signature.cif, FFI_DEFAULT_ABI, signature.argument_count, ffi_type_of(result), signature.types) !=
      FFI_OK) {
    return Error{SONDE_E_INTERNAL, fmt::format("libffi does not accept the shape {}", signature.shape)};
  }
  return {};
}

struct Cache {
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Signature>> signatures;
};

Cache &cache() {
  static Cache *const kept = new Cache;  // signatures are handed out for the life of the process
  return *kept;
}

}  // namespace

uint64_t handle_number(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash == 0 ? 1 : hash;
}

Result<std::unique_ptr<Signature>> parse(std::string_view text) { return Parser(text).run(); }

Result<const Signature *> prepare(std::string_view text) {
  Cache &known = cache();
  const std::string key(text);
  {
    std::shared_lock lock(known.mutex);
    const auto found = known.signatures.find(key);
    if (found != known.signatures.end()) return found->second.get();
  }
  Result<std::unique_ptr<Signature>> parsed = parse(text);
  if (!parsed) return parsed.error();
  if (Result<void> completed = complete(**parsed); !completed) return completed.error();
  std::unique_lock lock(known.mutex);
  const auto [place, made] = known.signatures.try_emplace(key, std::move(*parsed));
  return place->second.get();
}

}  // namespace sonde::reflect
