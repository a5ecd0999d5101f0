#include "config/service.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sonde/config.h>

#include <mutex>
#include <unordered_map>

#include "config/check.h"
#include "config/parse.h"
#include "config/print.h"
#include "config/scalar.h"
#include "core/error.h"
#include "core/services.h"

namespace sonde::config {

namespace {

// Documents handed out, by their root. Released ones are gone, so a second release is an error and no crash.
// Never destroyed: a plugin may release a configuration while the process exits.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const Node *, std::unique_ptr<Document>> documents;
};

Registry &registry() {
  static Registry *const instance = new Registry;
  return *instance;
}

sonde_status hand_out(Result<std::unique_ptr<Document>> made, sonde_config_t **out) {
  if (!made) return fail(made.error());
  Node *const root = &(*made)->root;
  Registry &all = registry();
  const std::lock_guard lock(all.mutex);
  all.documents.emplace(root, std::move(*made));
  *out = root;
  return SONDE_OK;
}

sonde_status null_argument(const char *function) {
  return fail(SONDE_E_INVALID, fmt::format("config.{}: an argument is NULL", function));
}

sonde_status parse_text(const char *text, const char *origin, sonde_config_t **out) {
  return at_boundary([&] {
    if (text == nullptr || out == nullptr) return null_argument("parse");
    *out = nullptr;
    return hand_out(parse(text, origin == nullptr ? "configuration" : origin), out);
  });
}

sonde_status load_file(const char *path, sonde_config_t **out) {
  return at_boundary([&] {
    if (path == nullptr || out == nullptr) return null_argument("load");
    *out = nullptr;
    return hand_out(load(path), out);
  });
}

sonde_status check_tree(const sonde_config_t *tree, const char *origin, const sonde_option_t *options, uint32_t count,
                        uint32_t stride, sonde_config_t **out) {
  return at_boundary([&] {
    if (origin == nullptr || out == nullptr) return null_argument("check");
    *out = nullptr;
    return hand_out(check(tree, origin, {options, count, stride}), out);
  });
}

sonde_status release(sonde_config_t *config) {
  return at_boundary([&] {
    if (config == nullptr) return SONDE_OK;
    std::unique_ptr<Document> ended;  // freed outside the lock
    Registry &all = registry();
    const std::lock_guard lock(all.mutex);
    const auto found = all.documents.find(config);
    if (found == all.documents.end()) {
      return fail(SONDE_E_INVALID, "config.release: this is a view, or was released before");
    }
    ended = std::move(found->second);
    all.documents.erase(found);
    return SONDE_OK;
  });
}

// The node at `path`, for a getter.
Result<const Node *> node_at(const sonde_config_t *config, const char *path) {
  if (config == nullptr || path == nullptr) return Error{SONDE_E_INVALID, "config: an argument is NULL"};
  const Node *const node = config->at(path);
  if (node == nullptr) return Error{SONDE_E_NOT_FOUND, fmt::format("{}: there is no '{}'", where(*config), path)};
  return node;
}

template <typename Value, typename Out>
sonde_status get(const sonde_config_t *config, const char *path, Out *out, const char *expected,
                 std::optional<Value> (*read)(std::string_view)) {
  return at_boundary([&] {
    if (out == nullptr) return null_argument("get");
    const Result<const Node *> node = node_at(config, path);
    if (!node) return fail(node.error());
    std::optional<Value> value;
    if ((*node)->kind == Kind::kScalar) value = read((*node)->text);
    if (!value) {
      const std::string found =
          (*node)->kind == Kind::kScalar ? fmt::format("'{}'", (*node)->text) : kind_name((*node)->kind);
      return fail(SONDE_E_TYPE, fmt::format("{}: '{}' is {}; expected {}", where(**node), path, found, expected));
    }
    *out = static_cast<Out>(*value);
    return SONDE_OK;
  });
}

sonde_status get_bool(const sonde_config_t *config, const char *path, uint32_t *out) {
  return get<bool>(config, path, out, "true or false", to_bool);
}

sonde_status get_i64(const sonde_config_t *config, const char *path, int64_t *out) {
  return get<int64_t>(config, path, out, "an integer", to_integer);
}

sonde_status get_f64(const sonde_config_t *config, const char *path, double *out) {
  return get<double>(config, path, out, "a number", to_number);
}

sonde_status get_time(const sonde_config_t *config, const char *path, int64_t *out) {
  return get<int64_t>(config, path, out, "a time (10us, 2.5ms, 1s, or ns)", to_time);
}

sonde_status get_text(const sonde_config_t *config, const char *path, const char **out) {
  return at_boundary([&] {
    if (out == nullptr) return null_argument("get_text");
    const Result<const Node *> node = node_at(config, path);
    if (!node) return fail(node.error());
    if ((*node)->kind != Kind::kScalar) {
      return fail(SONDE_E_TYPE,
                  fmt::format("{}: '{}' is {}; expected text", where(**node), path, kind_name((*node)->kind)));
    }
    *out = (*node)->text.c_str();
    return SONDE_OK;
  });
}

sonde_status count(const sonde_config_t *config, const char *path, uint64_t *out) {
  return at_boundary([&] {
    if (out == nullptr) return null_argument("count");
    const Result<const Node *> node = node_at(config, path);
    if (!node) return fail(node.error());
    *out = (*node)->items.size();
    return SONDE_OK;
  });
}

sonde_status key(const sonde_config_t *config, const char *path, uint64_t index, const char **out) {
  return at_boundary([&] {
    if (out == nullptr) return null_argument("key");
    const Result<const Node *> node = node_at(config, path);
    if (!node) return fail(node.error());
    if ((*node)->kind == Kind::kList || (*node)->kind == Kind::kScalar) {
      return fail(SONDE_E_TYPE,
                  fmt::format("{}: '{}' is {}; expected a map", where(**node), path, kind_name((*node)->kind)));
    }
    if (index >= (*node)->keys.size()) {
      return fail(SONDE_E_RANGE,
                  fmt::format("{}: '{}' has {} entries, not {}", where(**node), path, (*node)->keys.size(), index + 1));
    }
    *out = (*node)->keys[index].c_str();
    return SONDE_OK;
  });
}

sonde_status child(const sonde_config_t *config, const char *path, const sonde_config_t **out) {
  return at_boundary([&] {
    if (out == nullptr) return null_argument("child");
    const Result<const Node *> node = node_at(config, path);
    if (!node) return fail(node.error());
    *out = *node;
    return SONDE_OK;
  });
}

// A text made once for each node and kept with the document.
sonde_status kept_text(const sonde_config_t *config, const char *path, const char **out,
                       std::map<const Node *, std::string> Document::*texts, std::string (*make)(const Node &)) {
  return at_boundary([&] {
    if (out == nullptr) return null_argument("where or print");
    const Result<const Node *> node = node_at(config, path);
    if (!node) return fail(node.error());
    Document &document = *(*node)->document;
    const std::lock_guard lock(document.mutex);
    auto found = (document.*texts).find(*node);
    if (found == (document.*texts).end()) found = (document.*texts).emplace(*node, make(**node)).first;
    *out = found->second.c_str();
    return SONDE_OK;
  });
}

sonde_status where_of(const sonde_config_t *config, const char *path, const char **out) {
  return kept_text(config, path, out, &Document::where_texts, [](const Node &node) { return where(node); });
}

sonde_status print_of(const sonde_config_t *config, const char *path, const char **out) {
  return kept_text(config, path, out, &Document::print_texts, [](const Node &node) { return print(node); });
}

constexpr sonde_config_service_t kService = {
    .struct_size = sizeof(sonde_config_service_t),
    .reserved = 0,
    .parse = parse_text,
    .load = load_file,
    .check = check_tree,
    .release = release,
    .get_bool = get_bool,
    .get_i64 = get_i64,
    .get_f64 = get_f64,
    .get_text = get_text,
    .get_time = get_time,
    .count = count,
    .key = key,
    .child = child,
    .where = where_of,
    .print = print_of,
};

}  // namespace

void install() {
  // A fork takes the lock so that the child finds the registry whole.
  static const int once = (pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                                          [] { registry().mutex.unlock(); }),
                           add_service(SONDE_CONFIG_SERVICE, &kService), 0);
  static_cast<void>(once);
}

size_t live_documents() {
  Registry &all = registry();
  const std::lock_guard lock(all.mutex);
  return all.documents.size();
}

}  // namespace sonde::config
