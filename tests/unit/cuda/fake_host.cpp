#include "fake_host.h"

#include <unordered_map>

#include <sonde/claim.h>

namespace sonde::test {

namespace {

std::mutex strings_mutex;
std::unordered_map<std::string, sonde_string_t> string_ids;
std::vector<std::string> string_texts = {""};

thread_local std::string error_text;
thread_local uint32_t inside_depth = 0;

// One writer for each thread and session: records are committed one at a time into a small buffer, whose content the
// session takes over when the next one is reserved or the session is looked at.
struct FakeWriter {
  sonde_writer_t writer = {};
  sonde_session_t *session = nullptr;
};

sonde_status writer(sonde_session_t *session, sonde_writer_t **out) {
  thread_local std::map<sonde_session_t *, std::unique_ptr<FakeWriter>> writers;
  auto &made = writers[session];
  if (made == nullptr) {
    static std::atomic<uint64_t> published;
    made = std::make_unique<FakeWriter>();
    made->session = session;
    // No room without a call: every record passes through `reserve`.
    made->writer.published = reinterpret_cast<uint64_t *>(&published);
    made->writer.host = made.get();
  }
  *out = &made->writer;
  return SONDE_OK;
}

void *reserve(sonde_writer_t *out, uint32_t bytes) {
  auto *fake = static_cast<FakeWriter *>(out->host);
  std::lock_guard<std::mutex> hold(fake->session->mutex);
  fake->session->emitted.emplace_back(bytes);
  uint8_t *room = fake->session->emitted.back().data();
  out->cursor = room;
  out->limit = room + bytes;  // so the next record comes here again
  return room;
}

sonde_status emit(sonde_session_t *session, const sonde_record_t *record) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(record);
  std::lock_guard<std::mutex> hold(session->mutex);
  session->emitted.emplace_back(bytes, bytes + SONDE_RECORD_BYTES(record));
  return SONDE_OK;
}

sonde_status demand(sonde_session_t *session, uint32_t space, const uint64_t **out) {
  *out = reinterpret_cast<const uint64_t *>(&session->words[space]);
  return SONDE_OK;
}

sonde_status level(sonde_session_t *session, uint32_t space, uint32_t type, uint32_t *out) {
  *out = (session->words[space] >> type) & 1u ? SONDE_LEVEL_RECORDS : SONDE_LEVEL_NONE;
  return SONDE_OK;
}

sonde_status intern(const char *text, uint64_t bytes, sonde_string_t *out) {
  const std::string key = bytes == UINT64_MAX ? std::string(text) : std::string(text, bytes);
  std::lock_guard<std::mutex> hold(strings_mutex);
  if (key.empty()) {
    *out = 0;
    return SONDE_OK;
  }
  const auto [place, fresh] = string_ids.try_emplace(key, static_cast<sonde_string_t>(string_texts.size()));
  if (fresh) string_texts.push_back(key);
  *out = place->second;
  return SONDE_OK;
}

sonde_status open_stream(sonde_session_t *session, const char *name, uint32_t clock, uint64_t *out) {
  std::lock_guard<std::mutex> hold(session->mutex);
  session->streams.push_back({name, clock, true});
  *out = session->streams.size();
  return SONDE_OK;
}

sonde_status acquire(sonde_session_t *session, uint64_t, uint64_t bytes, uint8_t **out) {
  std::lock_guard<std::mutex> hold(session->mutex);
  if (session->submitted_bytes + bytes > session->room) return SONDE_E_FULL;
  auto buffer = std::make_unique<uint8_t[]>(bytes);
  *out = buffer.get();
  session->acquired[*out] = std::move(buffer);
  return SONDE_OK;
}

sonde_status submit(sonde_session_t *session, uint64_t stream, uint8_t *buffer, uint64_t bytes, uint64_t watermark) {
  std::lock_guard<std::mutex> hold(session->mutex);
  if (stream == 0 || stream > session->streams.size() || !session->streams[stream - 1].open) return SONDE_E_INVALID;
  for (uint64_t at = 0; at < bytes; at += reinterpret_cast<sonde_record_t *>(buffer + at)->size8 * uint64_t{8}) {
    ++session->records;
  }
  if (session->keep) {
    session->batches.emplace_back(buffer, buffer + bytes);
    session->watermarks.push_back(watermark);
  }
  session->submitted_bytes += bytes;
  session->acquired.erase(buffer);
  return SONDE_OK;
}

sonde_status discard(sonde_session_t *session, uint8_t *buffer) {
  std::lock_guard<std::mutex> hold(session->mutex);
  session->acquired.erase(buffer);
  return SONDE_OK;
}

sonde_status close_stream(sonde_session_t *session, uint64_t stream) {
  std::lock_guard<std::mutex> hold(session->mutex);
  session->streams[stream - 1].open = false;
  return SONDE_OK;
}

sonde_status pair_clock(sonde_session_t *session, uint32_t clock, uint64_t stamp, uint64_t reading, uint64_t) {
  std::lock_guard<std::mutex> hold(session->mutex);
  session->pairs.push_back({clock, stamp, reading});
  return SONDE_OK;
}

// One unit of the stamp clock is 1/2 ns.
sonde_status clock(sonde_session_t *, uint32_t id, sonde_clock_t *out) {
  *out = {};
  out->struct_size = sizeof(*out);
  out->id = id;
  out->multiplier = 1;
  out->shift = 1;
  return SONDE_OK;
}

sonde_status lose(sonde_session_t *session, uint64_t, uint32_t cause, uint64_t records, uint64_t) {
  std::lock_guard<std::mutex> hold(session->mutex);
  session->losses[cause] += records;
  return SONDE_OK;
}

sonde_status note(sonde_session_t *session, uint32_t severity, const char *, const char *words) {
  std::lock_guard<std::mutex> hold(session->mutex);
  session->notes.push_back({severity, words});
  return SONDE_OK;
}

void enter() { ++inside_depth; }
void leave() { --inside_depth; }
uint32_t inside() { return inside_depth != 0 ? 1 : 0; }

const sonde_capture_service_t kCapture = [] {
  sonde_capture_service_t table = {};
  table.struct_size = sizeof(table);
  table.writer = writer;
  table.reserve = reserve;
  table.emit = emit;
  table.demand = demand;
  table.level = level;
  table.intern = intern;
  table.open_stream = open_stream;
  table.acquire = acquire;
  table.submit = submit;
  table.discard = discard;
  table.close_stream = close_stream;
  table.pair_clock = pair_clock;
  table.clock = clock;
  table.lose = lose;
  table.note = note;
  table.enter = enter;
  table.leave = leave;
  table.inside = inside;
  return table;
}();

const std::string *value_of(const sonde_config_t *config, const char *path) {
  const auto found = config->values.find(path);
  return found != config->values.end() ? &found->second : nullptr;
}

sonde_status get_bool(const sonde_config_t *config, const char *path, uint32_t *out) {
  const std::string *value = value_of(config, path);
  if (value == nullptr) return SONDE_E_NOT_FOUND;
  *out = *value == "true" ? 1 : 0;
  return SONDE_OK;
}

sonde_status get_i64(const sonde_config_t *config, const char *path, int64_t *out) {
  const std::string *value = value_of(config, path);
  if (value == nullptr) return SONDE_E_NOT_FOUND;
  *out = std::stoll(*value);
  return SONDE_OK;
}

sonde_status get_f64(const sonde_config_t *config, const char *path, double *out) {
  const std::string *value = value_of(config, path);
  if (value == nullptr) return SONDE_E_NOT_FOUND;
  *out = std::stod(*value);
  return SONDE_OK;
}

sonde_status get_text(const sonde_config_t *config, const char *path, const char **out) {
  const std::string *value = value_of(config, path);
  if (value == nullptr) return SONDE_E_NOT_FOUND;
  *out = value->c_str();
  return SONDE_OK;
}

const sonde_config_service_t kConfig = [] {
  sonde_config_service_t table = {};
  table.struct_size = sizeof(table);
  table.get_bool = get_bool;
  table.get_i64 = get_i64;
  table.get_f64 = get_f64;
  table.get_time = get_i64;
  table.get_text = get_text;
  return table;
}();

sonde_status take(const char *resource, const char *mode, const char *holder) {
  fake_claims().calls.push_back(std::string("take ") + resource + " " + mode + " " + holder);
  if (!fake_claims().refuse) return SONDE_OK;
  error_text = "cuda.device is held by cuda_access for patches";
  return SONDE_E_BUSY;
}

sonde_status release(const char *resource, const char *mode) {
  fake_claims().calls.push_back(std::string("release ") + resource + " " + mode);
  return SONDE_OK;
}

const sonde_claim_service_t kClaims = {sizeof(sonde_claim_service_t), 0, take, release};

sonde_status get_service(const char *id, uint32_t min_size, const void **out) {
  *out = nullptr;
  if (std::strcmp(id, SONDE_CAPTURE_SERVICE) == 0 && min_size <= sizeof(kCapture)) *out = &kCapture;
  if (std::strcmp(id, SONDE_CONFIG_SERVICE) == 0 && min_size <= sizeof(kConfig)) *out = &kConfig;
  if (std::strcmp(id, SONDE_CLAIM_SERVICE) == 0 && fake_claims().present) *out = &kClaims;
  return *out != nullptr ? SONDE_OK : SONDE_E_NOT_FOUND;
}

void log(uint32_t, const char *, const char *) {}

sonde_status set_error(sonde_status status, const char *words) {
  error_text = words;
  return status;
}

const char *get_last_error() { return error_text.c_str(); }

const sonde_host_t kHost = {sizeof(sonde_host_t), SONDE_ABI_MAJOR, SONDE_ABI_MINOR, get_service, log, set_error,
                            get_last_error};

}  // namespace

const sonde_host_t *fake_host() { return &kHost; }
const sonde_capture_service_t *fake_capture() { return &kCapture; }

std::string text_of(sonde_string_t id) {
  std::lock_guard<std::mutex> hold(strings_mutex);
  return id < string_texts.size() ? string_texts[id] : "?";
}

std::string last_error() { return error_text; }

FakeClaims &fake_claims() {
  static FakeClaims claims;
  return claims;
}

}  // namespace sonde::test
