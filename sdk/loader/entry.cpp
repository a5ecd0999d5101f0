#include "loader/entry.h"

#include <fmt/format.h>
#include <sonde/reflect.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "core/services.h"
#include "loader/mapped.h"

namespace sonde::loader {

namespace {

// Ends of the members: a table that was cut anywhere else has another layout.
constexpr uint32_t kMemberEnds[] = {
    SONDE_NEED(sonde_plugin_entry_t, version),       SONDE_NEED(sonde_plugin_entry_t, summary),
    SONDE_NEED(sonde_plugin_entry_t, license),       SONDE_NEED(sonde_plugin_entry_t, exports),
    SONDE_NEED(sonde_plugin_entry_t, export_stride), SONDE_NEED(sonde_plugin_entry_t, options),
    SONDE_NEED(sonde_plugin_entry_t, option_stride), SONDE_NEED(sonde_plugin_entry_t, init),
    SONDE_NEED(sonde_plugin_entry_t, shutdown),      SONDE_NEED(sonde_plugin_entry_t, get_interface),
};
constexpr uint32_t kLargestTable = 4096;
constexpr uint32_t kMostExports = 4096;
constexpr size_t kLongestText = 16384;

class Checker {
 public:
  Checker(const std::string &origin, const sonde_plugin_entry_t *entry, bool in_module)
      : origin_(origin), given_(entry), in_module_(in_module) {
    if (in_module) mapped_ = MappedObjects::now();
  }

  Result<std::unique_ptr<Entry>> run() {
    if (given_ == nullptr) return Error{SONDE_E_INVALID, fmt::format("{}: the entry is NULL", origin_)};
    if (!readable(given_, 8)) return fault("the entry does not lie in the module");
    if (Result<void> versions =
            check_versions(origin_, given_->struct_size, given_->abi_major, given_->abi_minor_required);
        !versions) {
      return versions.error();
    }
    if (!readable(given_, given_->struct_size)) {
      return fault(fmt::format("struct_size {} reaches past the module's data", given_->struct_size));
    }
    auto entry = std::make_unique<Entry>();
    sonde_plugin_entry_t &table = entry->table;
    std::memcpy(static_cast<void *>(&table), given_, std::min<size_t>(given_->struct_size, sizeof(table)));
    table.struct_size = sizeof(table);

    need_text(table.id, "id");
    need_text(table.version, "version");
    allow_text(table.summary, "summary");
    allow_text(table.license, "license");
    need_code(table.init, "init");
    need_code(table.shutdown, "shutdown");
    need_code(table.get_interface, "get_interface");
    if (!fault_.empty()) return fault(fault_);
    if (!is_plugin_id(table.id)) {
      return fault(fmt::format("id '{}' is not made of lower case letters, digits, '_' and '.'", shortened(table.id)));
    }
    if (table.version[0] == '\0') return fault("version is empty");
    read_exports(table, entry->exports);
    read_options(table, entry->options);
    if (!fault_.empty()) return fault(fault_);
    table.exports = entry->exports.empty() ? nullptr : entry->exports.data();
    table.export_stride = sizeof(sonde_export_t);
    table.options = entry->options.empty() ? nullptr : entry->options.data();
    table.option_stride = sizeof(sonde_option_t);
    return entry;
  }

 private:
  Error fault(std::string_view text) const {
    return {SONDE_E_CORRUPT, fmt::format("{}: not a valid plugin table: {}", origin_, text)};
  }
  void set_fault(std::string text) {
    if (fault_.empty()) fault_ = std::move(text);
  }
  static std::string shortened(std::string_view text) { return std::string(text.substr(0, 80)); }

  bool readable(const void *address, size_t bytes) const {
    return address != nullptr && (!in_module_ || mapped_.readable(address, bytes));
  }

  void need_text(const char *text, std::string_view field) {
    if (text == nullptr) {
      set_fault(fmt::format("{} is NULL", field));
    } else if (in_module_ && !mapped_.is_text(text, kLongestText)) {
      set_fault(fmt::format("{} does not point to text in a loaded object", field));
    }
  }
  void allow_text(const char *&text, std::string_view field) {
    if (text == nullptr) {
      text = "";
    } else {
      need_text(text, field);
    }
  }
  template <typename Function>
  void need_code(Function *function, std::string_view field) {
    const void *address = nullptr;
    static_assert(sizeof(function) == sizeof(address));
    std::memcpy(&address, &function, sizeof(address));
    if (address != nullptr && in_module_ && !mapped_.executable(address)) {
      set_fault(fmt::format("{} does not point to code", field));
    }
  }

  // Copies `count` elements of `stride` bytes; what is longer than ours is cut, what is shorter stays 0.
  template <typename Element>
  bool copy_elements(const Element *first, uint32_t count, uint32_t stride, uint32_t least, std::string_view field,
                     std::vector<Element> &out) {
    if (count == 0) {
      // A pointer that is none is the mark of another layout even where nothing would be read.
      if (first != nullptr && !readable(first, 1)) {
        set_fault(fmt::format("{} is not NULL and does not lie in a loaded object", field));
      }
      return false;
    }
    if (first == nullptr) return set_fault(fmt::format("{} is NULL, its count {}", field, count)), false;
    if (count > kMostExports) {
      return set_fault(fmt::format("{} {}, more than the {} allowed", count, field, kMostExports)), false;
    }
    if (stride < least || stride > kLargestTable || stride % alignof(Element) != 0) {
      return set_fault(fmt::format("the stride of {} is {}, expected {}", field, stride, sizeof(Element))), false;
    }
    if (!readable(first, size_t{count - 1} * stride + least)) {
      return set_fault(fmt::format("{} do not lie in a loaded object", field)), false;
    }
    out.resize(count);
    for (uint32_t index = 0; index < count; ++index) {
      std::memcpy(static_cast<void *>(&out[index]), reinterpret_cast<const char *>(first) + size_t{index} * stride,
                  std::min<size_t>(stride, sizeof(Element)));
    }
    return true;
  }

  void read_exports(const sonde_plugin_entry_t &table, std::vector<sonde_export_t> &exports) {
    if (!copy_elements(table.exports, table.export_count, table.export_stride, SONDE_NEED(sonde_export_t, function),
                       "exports", exports)) {
      return;
    }
    const void *reflect = nullptr;
    if (get_service(SONDE_REFLECT_SERVICE, SONDE_NEED(sonde_reflect_service_t, prepare), &reflect) != SONDE_OK) {
      reflect = nullptr;
    }
    std::set<std::string> names;
    for (size_t index = 0; index < exports.size(); ++index) {
      sonde_export_t &item = exports[index];
      need_text(item.name, fmt::format("name of export {}", index));
      if (!fault_.empty()) return;
      const std::string field = fmt::format("export {} ({})", index, shortened(item.name));
      need_text(item.signature, field + ": signature");
      allow_text(item.help, field + ": help");
      need_code(item.function, field + ": function");
      if (item.function == nullptr) set_fault(field + ": function is NULL");
      if (!fault_.empty()) return;
      if (item.name[0] == '\0') set_fault(fmt::format("export {} has an empty name", index));
      if (!names.insert(item.name).second) set_fault(field + " is there twice");
      const sonde_signature_t *prepared = nullptr;
      if (reflect != nullptr &&
          static_cast<const sonde_reflect_service_t *>(reflect)->prepare(item.signature, &prepared) != SONDE_OK) {
        set_fault(fmt::format("{}: signature '{}': {}", field, shortened(item.signature), last_error()));
      }
    }
  }

  void read_options(const sonde_plugin_entry_t &table, std::vector<sonde_option_t> &options) {
    if (!copy_elements(table.options, table.option_count, table.option_stride, SONDE_NEED(sonde_option_t, type),
                       "options", options)) {
      return;
    }
    for (size_t index = 0; index < options.size(); ++index) {
      sonde_option_t &item = options[index];
      need_text(item.name, fmt::format("name of option {}", index));
      if (!fault_.empty()) return;
      const std::string field = fmt::format("option {} ({})", index, shortened(item.name));
      if (item.fallback != nullptr) need_text(item.fallback, field + ": fallback");
      allow_text(item.help, field + ": help");
      allow_text(item.unit, field + ": unit");
      allow_text(item.choices, field + ": choices");
      if (item.type < SONDE_OPTION_BOOL || item.type > SONDE_OPTION_TREE) {
        set_fault(fmt::format("{} has the unknown type {}", field, item.type));
      }
      if (!fault_.empty()) return;
    }
  }

  const std::string &origin_;
  const sonde_plugin_entry_t *const given_;
  const bool in_module_;
  MappedObjects mapped_;
  std::string fault_;
};

}  // namespace

bool is_plugin_id(std::string_view id) {
  if (id.empty() || id.size() > 128 || id.front() < 'a' || id.front() > 'z') return false;
  return std::all_of(id.begin(), id.end(), [](char character) {
    return (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9') || character == '_' ||
           character == '.';
  });
}

Result<void> check_versions(const std::string &origin, uint32_t struct_size, uint16_t abi_major,
                            uint16_t abi_minor_required) {
  if (abi_major != SONDE_ABI_MAJOR) {
    return Error{SONDE_E_INCOMPATIBLE,
                 fmt::format("{}: made for major version {} of the binary interface, this host has {}", origin,
                             abi_major, SONDE_ABI_MAJOR)};
  }
  if (abi_minor_required > SONDE_ABI_MINOR) {
    return Error{SONDE_E_TOO_OLD, fmt::format("{}: needs version {}.{} of the binary interface, this host has {}.{}",
                                              origin, abi_major, abi_minor_required, SONDE_ABI_MAJOR, SONDE_ABI_MINOR)};
  }
  const bool known_end =
      std::find(std::begin(kMemberEnds), std::end(kMemberEnds), struct_size) != std::end(kMemberEnds);
  const bool longer = struct_size > sizeof(sonde_plugin_entry_t) && struct_size <= kLargestTable &&
                      struct_size % alignof(sonde_plugin_entry_t) == 0;
  if (!known_end && !longer) {
    return Error{SONDE_E_CORRUPT, fmt::format("{}: not a valid plugin table: struct_size is {}, expected {}", origin,
                                              struct_size, sizeof(sonde_plugin_entry_t))};
  }
  return {};
}

Result<std::unique_ptr<Entry>> check_entry(const std::string &origin, const sonde_plugin_entry_t *entry,
                                           bool in_module) {
  return Checker(origin, entry, in_module).run();
}

}  // namespace sonde::loader
