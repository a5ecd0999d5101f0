#include "loader/manifest.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "core/services.h"
#include "loader/entry.h"

namespace sonde::loader {

namespace {

constexpr const char *kTypeNames[] = {"", "bool", "i64", "f64", "text", "texts", "time", "tree"};

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char character : text) {
    if (character == '"' || character == '\\') {
      out += '\\';
      out += character;
    } else if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(character)));
    } else {
      out += character;
    }
  }
  return out + '"';
}

// Releases a configuration at the end of a scope.
class OwnedConfig {
 public:
  explicit OwnedConfig(const sonde_config_service_t &service) : service_(service) {}
  ~OwnedConfig() { service_.release(config_); }
  OwnedConfig(const OwnedConfig &) = delete;
  OwnedConfig &operator=(const OwnedConfig &) = delete;
  sonde_config_t **out() { return &config_; }
  const sonde_config_t *get() const { return config_; }

 private:
  const sonde_config_service_t &service_;
  sonde_config_t *config_ = nullptr;
};

// Getters that remember the first error.
class Reader {
 public:
  Reader(const sonde_config_service_t &service, const sonde_config_t *root) : service_(service), root_(root) {}

  std::string text(const std::string &path, bool needed) {
    const char *out = "";
    note(service_.get_text(root_, path.c_str(), &out), needed);
    return out;
  }
  bool has(const std::string &path) const {
    const sonde_config_t *out = nullptr;
    return service_.child(root_, path.c_str(), &out) == SONDE_OK;
  }
  int64_t integer(const std::string &path) {
    int64_t out = -1;
    note(service_.get_i64(root_, path.c_str(), &out), true);
    return out;
  }
  uint64_t count(const std::string &path) {
    uint64_t out = 0;
    note(service_.count(root_, path.c_str(), &out), false);
    return out;
  }
  const std::string &error() const { return error_; }
  void refuse(std::string text) {
    if (error_.empty()) error_ = std::move(text);
  }

 private:
  void note(sonde_status status, bool needed) {
    if (status == SONDE_OK || (status == SONDE_E_NOT_FOUND && !needed)) return;
    refuse(last_error());
  }

  const sonde_config_service_t &service_;
  const sonde_config_t *root_;
  std::string error_;
};

}  // namespace

Manifest make_manifest(const sonde_plugin_entry_t &entry, uint16_t abi_major, uint16_t abi_minor_required,
                       std::vector<std::string> interfaces) {
  Manifest manifest;
  manifest.id = entry.id;
  manifest.version = entry.version;
  manifest.summary = entry.summary;
  manifest.license = entry.license;
  manifest.abi_major = abi_major;
  manifest.abi_minor_required = abi_minor_required;
  manifest.interfaces = std::move(interfaces);
  for (uint32_t index = 0; index < entry.export_count; ++index) {
    const sonde_export_t &item = entry.exports[index];
    manifest.exports.push_back({item.name, item.signature, item.help});
  }
  for (uint32_t index = 0; index < entry.option_count; ++index) {
    const sonde_option_t &item = entry.options[index];
    manifest.options.push_back({item.name, item.fallback == nullptr ? "" : item.fallback, item.fallback != nullptr,
                                item.help, item.unit, item.choices, item.type});
  }
  return manifest;
}

std::string print_manifest(const Manifest &manifest) {
  std::string out = "# Made from the module by `sonde manifest`.\nsonde_manifest: 1\n";
  out += fmt::format("id: {}\nversion: {}\nsummary: {}\nlicense: {}\n", manifest.id, quoted(manifest.version),
                     quoted(manifest.summary), quoted(manifest.license));
  out += fmt::format("abi: {{major: {}, minor_required: {}}}\n", manifest.abi_major, manifest.abi_minor_required);
  out += "interfaces: [";
  for (size_t index = 0; index < manifest.interfaces.size(); ++index) {
    out += (index == 0 ? "" : ", ") + quoted(manifest.interfaces[index]);
  }
  out += "]\nexports:";
  out += manifest.exports.empty() ? " []\n" : "\n";
  for (const ManifestExport &item : manifest.exports) {
    out += fmt::format("  - name: {}\n    signature: {}\n    help: {}\n", quoted(item.name), quoted(item.signature),
                       quoted(item.help));
  }
  out += "options:";
  out += manifest.options.empty() ? " []\n" : "\n";
  for (const ManifestOption &item : manifest.options) {
    out += fmt::format("  - name: {}\n    type: {}\n", quoted(item.name), kTypeNames[item.type]);
    if (item.has_fallback) out += fmt::format("    default: {}\n", quoted(item.fallback));
    out += fmt::format("    unit: {}\n    choices: {}\n    help: {}\n", quoted(item.unit), quoted(item.choices),
                       quoted(item.help));
  }
  return out;
}

Result<Manifest> read_manifest(const std::string &path) {
  const void *found = nullptr;
  if (const sonde_status status = get_service(SONDE_CONFIG_SERVICE, SONDE_NEED(sonde_config_service_t, child), &found);
      status != SONDE_OK) {
    return Error{status, fmt::format("{}: cannot be read without sonde.config/1", path)};
  }
  const auto &config = *static_cast<const sonde_config_service_t *>(found);
  OwnedConfig tree(config);
  if (const sonde_status status = config.load(path.c_str(), tree.out()); status != SONDE_OK) {
    return Error{status, last_error()};
  }
  Reader reader(config, tree.get());
  if (!reader.has("sonde_manifest")) return Error{SONDE_E_NOT_FOUND, fmt::format("{}: not a manifest", path)};
  if (const int64_t format = reader.integer("sonde_manifest"); format != 1) {
    return Error{SONDE_E_CORRUPT, fmt::format("{}: a manifest of format {}, this host reads 1", path, format)};
  }
  Manifest manifest;
  manifest.id = reader.text("id", true);
  manifest.version = reader.text("version", true);
  manifest.summary = reader.text("summary", false);
  manifest.license = reader.text("license", false);
  const int64_t major = reader.integer("abi.major");
  const int64_t minor = reader.integer("abi.minor_required");
  if (major < 0 || major > UINT16_MAX || minor < 0 || minor > UINT16_MAX) {
    reader.refuse(fmt::format("{}: abi is {}.{}", path, major, minor));
  }
  manifest.abi_major = static_cast<uint16_t>(major);
  manifest.abi_minor_required = static_cast<uint16_t>(minor);
  if (!is_plugin_id(manifest.id)) reader.refuse(fmt::format("{}: '{}' is no plugin id", path, manifest.id));
  for (uint64_t index = 0, count = reader.count("interfaces"); index < count; ++index) {
    manifest.interfaces.push_back(reader.text(fmt::format("interfaces.{}", index), true));
  }
  for (uint64_t index = 0, count = reader.count("exports"); index < count; ++index) {
    const std::string item = fmt::format("exports.{}.", index);
    manifest.exports.push_back(
        {reader.text(item + "name", true), reader.text(item + "signature", true), reader.text(item + "help", false)});
  }
  for (uint64_t index = 0, count = reader.count("options"); index < count; ++index) {
    const std::string item = fmt::format("options.{}.", index);
    ManifestOption option;
    option.name = reader.text(item + "name", true);
    option.has_fallback = reader.has(item + "default");
    if (option.has_fallback) option.fallback = reader.text(item + "default", true);
    option.help = reader.text(item + "help", false);
    option.unit = reader.text(item + "unit", false);
    option.choices = reader.text(item + "choices", false);
    const std::string type = reader.text(item + "type", true);
    for (uint32_t code = SONDE_OPTION_BOOL; code <= SONDE_OPTION_TREE; ++code) {
      if (type == kTypeNames[code]) option.type = code;
    }
    if (option.type == 0)
      reader.refuse(fmt::format("{}: option '{}' has the unknown type '{}'", path, option.name, type));
    manifest.options.push_back(std::move(option));
  }
  if (!reader.error().empty()) return Error{SONDE_E_CORRUPT, reader.error()};
  return manifest;
}

std::string manifest_path(const std::string &module) {
  const std::string_view suffix = ".so";
  std::string path = module;
  if (path.ends_with(suffix)) path.resize(path.size() - suffix.size());
  return path + ".yaml";
}

}  // namespace sonde::loader
