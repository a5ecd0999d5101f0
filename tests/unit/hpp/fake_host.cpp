#include "fake_host.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace sonde::testing {
namespace {

FakeHost &host() { return FakeHost::get(); }

const char *orempty(const char *text) { return text == nullptr ? "" : text; }

template <typename T>
sonde_status option(const char *path, T *out, T (*parse)(const std::string &)) {
  const auto it = host().options.find(path);
  if (it == host().options.end()) {
    host().last_error = std::string("no option ") + path;
    return SONDE_E_NOT_FOUND;
  }
  *out = parse(it->second);
  return SONDE_OK;
}

int64_t parse_time(const std::string &text) {
  size_t used = 0;
  const int64_t value = std::stoll(text, &used);
  const std::string unit = text.substr(used);
  if (unit == "us") return value * 1000;
  if (unit == "ms") return value * 1000000;
  if (unit == "s") return value * 1000000000;
  return value;
}

sonde_session_service_t session_service() {
  sonde_session_service_t table{};
  table.struct_size = sizeof(table);
  table.open = [](const sonde_session_options_t *, sonde_session_t **out) {
    *out = FakeHost::session();
    return SONDE_OK;
  };
  table.start = [](sonde_session_t *) { return SONDE_OK; };
  table.flush = [](sonde_session_t *, uint64_t) {
    host().last_error = "the deadline passed";
    return SONDE_E_TIMEOUT;
  };
  table.stop = [](sonde_session_t *, uint64_t) {
    host().end_subscriptions();
    return SONDE_OK;
  };
  table.close = [](sonde_session_t *) { return SONDE_OK; };
  table.status = [](sonde_session_t *, sonde_session_status_t *out) {
    out->records = 42;
    return SONDE_OK;
  };
  table.losses = [](sonde_session_t *, sonde_loss_t *rows, uint64_t capacity, uint64_t *count) {
    *count = 2;
    for (uint64_t i = 0; i < capacity && i < 2; ++i) rows[i] = {i + 1, 10 * (i + 1), 0, SONDE_LOSS_RING_FULL, 0, 0};
    return SONDE_OK;
  };
  return table;
}

sonde_capture_service_t capture_service() {
  sonde_capture_service_t table{};
  table.struct_size = sizeof(table);
  table.writer = [](sonde_session_t *, sonde_writer_t **out) {
    FakeHost &self = host();
    self.ring.assign(1024, 0);
    self.writer = {self.ring.data(), self.ring.data() + self.ring.size(), 0, &self.published, nullptr};
    *out = &self.writer;
    return SONDE_OK;
  };
  table.reserve = [](sonde_writer_t *, uint32_t) -> void * { return nullptr; };
  table.demand = [](sonde_session_t *, uint32_t, const uint64_t **out) {
    *out = &host().demand;
    return SONDE_OK;
  };
  table.intern = [](const char *text, uint64_t bytes, sonde_string_t *out) {
    *out = host().intern(bytes == UINT64_MAX ? std::string_view(text) : std::string_view(text, bytes));
    return SONDE_OK;
  };
  table.text = [](sonde_session_t *, uint32_t, sonde_string_t id, const char **out) {
    if (id >= host().texts.size()) return SONDE_E_NOT_FOUND;
    *out = host().texts[id].c_str();
    return SONDE_OK;
  };
  return table;
}

sonde_delivery_service_t delivery_service() {
  sonde_delivery_service_t table{};
  table.struct_size = sizeof(table);
  table.subscribe = [](sonde_session_t *, const sonde_subscription_t *subscription, uint64_t *out) {
    FakeSubscription added;
    added.name = orempty(subscription->name);
    added.interests.assign(subscription->interests, subscription->interests + subscription->interest_count);
    added.raw = *subscription;
    host().subscriptions.push_back(added);
    *out = host().subscriptions.size();
    return SONDE_OK;
  };
  table.unsubscribe = [](sonde_session_t *, uint64_t id) {
    FakeSubscription &subscription = host().subscriptions.at(id - 1);
    if (subscription.ended) return SONDE_E_NOT_FOUND;
    subscription.ended = true;
    if (subscription.raw.drop_user != nullptr) subscription.raw.drop_user(subscription.raw.user);
    return SONDE_OK;
  };
  table.status = [](sonde_session_t *, uint64_t, sonde_subscription_status_t *out) {
    out->batches = 7;
    return SONDE_OK;
  };
  return table;
}

sonde_config_service_t config_service() {
  sonde_config_service_t table{};
  table.struct_size = sizeof(table);
  table.get_bool = [](const sonde_config_t *, const char *path, uint32_t *out) {
    return option<uint32_t>(path, out, [](const std::string &text) -> uint32_t { return text == "true" ? 1 : 0; });
  };
  table.get_i64 = [](const sonde_config_t *, const char *path, int64_t *out) {
    return option<int64_t>(path, out, [](const std::string &text) -> int64_t { return std::stoll(text); });
  };
  table.get_f64 = [](const sonde_config_t *, const char *path, double *out) {
    return option<double>(path, out, [](const std::string &text) { return std::stod(text); });
  };
  table.get_text = [](const sonde_config_t *, const char *path, const char **out) {
    return option<const char *>(path, out, [](const std::string &text) { return text.c_str(); });
  };
  table.get_time = [](const sonde_config_t *, const char *path, int64_t *out) {
    return option<int64_t>(path, out, parse_time);
  };
  return table;
}

sonde_result_service_t result_service() {
  sonde_result_service_t table{};
  table.struct_size = sizeof(table);
  table.create_table = [](sonde_session_t *, const sonde_table_spec_t *spec, sonde_table_t **out) {
    FakeTable &added = host().tables.emplace_back();
    added.origin = spec->origin;
    added.name = spec->name;
    added.title = spec->title;
    added.help = spec->help;
    for (uint32_t i = 0; i < spec->column_count; ++i) {
      const auto *const column = reinterpret_cast<const sonde_column_spec_t *>(
          reinterpret_cast<const uint8_t *>(spec->columns) + size_t{i} * spec->column_stride);
      added.columns.push_back({column->name, column->unit, column->help, column->kind, column->flags});
    }
    *out = reinterpret_cast<sonde_table_t *>(&added);
    return SONDE_OK;
  };
  table.add_row = [](sonde_table_t *handle, const sonde_value_t *values, uint64_t count) {
    auto &added = *reinterpret_cast<FakeTable *>(handle);
    std::vector<FakeValue> row;
    for (uint64_t i = 0; i < count; ++i) row.push_back(FakeValue::of(values[i]));
    EXPECT_EQ(count, added.columns.size()) << added.name;
    for (size_t i = 0; i < row.size() && i < added.columns.size(); ++i) {
      const bool fits = row[i].kind == SONDE_VALUE_NONE || row[i].kind == added.columns[i].kind ||
                        (row[i].kind == SONDE_VALUE_I64 && added.columns[i].kind == SONDE_VALUE_U64 && row[i].i64 >= 0);
      EXPECT_TRUE(fits) << added.name << "." << added.columns[i].name << " is not of kind " << row[i].kind;
    }
    added.rows.push_back(std::move(row));
    return SONDE_OK;
  };
  table.add_finding = [](sonde_session_t *, const sonde_finding_t *finding) {
    if (host().add_finding_answer != SONDE_OK) {
      host().last_error = "no more findings";
      return host().add_finding_answer;
    }
    FakeFinding &added = host().findings.emplace_back();
    added.origin = orempty(finding->origin);
    added.rule = orempty(finding->rule);
    added.message = orempty(finding->message);
    added.advice = orempty(finding->advice);
    added.reason = orempty(finding->reason);
    added.formula = orempty(finding->formula);
    added.severity = finding->severity;
    added.verdict = finding->verdict;
    added.gain_seconds = finding->gain_seconds;
    added.confidence = finding->confidence;
    added.sampling_scale = finding->sampling_scale;
    for (uint32_t i = 0; i < finding->evidence_count; ++i) {
      const auto *const evidence = reinterpret_cast<const sonde_evidence_t *>(
          reinterpret_cast<const uint8_t *>(finding->evidence) + size_t{i} * finding->evidence_stride);
      added.evidence[evidence->name] = FakeValue::of(evidence->value);
      added.units[evidence->name] = evidence->unit;
    }
    return SONDE_OK;
  };
  return table;
}

sonde_status get_service(const char *id, uint32_t min_size, const void **out) {
  static const sonde_session_service_t session = session_service();
  static const sonde_capture_service_t capture = capture_service();
  static const sonde_delivery_service_t delivery = delivery_service();
  static const sonde_config_service_t config = config_service();
  static const sonde_result_service_t result = result_service();
  const std::map<std::string_view, const void *> services = {{SONDE_SESSION_SERVICE, &session},
                                                             {SONDE_CAPTURE_SERVICE, &capture},
                                                             {SONDE_DELIVERY_SERVICE, &delivery},
                                                             {SONDE_CONFIG_SERVICE, &config},
                                                             {SONDE_RESULT_SERVICE, &result}};
  const auto it = services.find(id);
  *out = nullptr;
  if (it == services.end() || (it->second == &result && !host().has_result_service)) {
    host().last_error = std::string("no service ") + id;
    return SONDE_E_NOT_FOUND;
  }
  if (*static_cast<const uint32_t *>(it->second) < min_size) return SONDE_E_TOO_OLD;
  *out = it->second;
  return SONDE_OK;
}

}  // namespace

FakeValue FakeValue::of(const sonde_value_t &value) {
  FakeValue result;
  result.kind = value.kind;
  switch (value.kind) {
    case SONDE_VALUE_I64:
    case SONDE_VALUE_U64:
    case SONDE_VALUE_BOOL:
      result.i64 = value.as.i64;
      break;
    case SONDE_VALUE_F64:
      result.f64 = value.as.f64;
      break;
    case SONDE_VALUE_TEXT:
      result.text.assign(value.as.text, value.count);
      EXPECT_EQ(value.as.text[value.count], '\0') << "text cells end with NUL";
      break;
    default:
      break;
  }
  return result;
}

std::string FakeValue::str() const {
  switch (kind) {
    case SONDE_VALUE_I64:
      return std::to_string(i64);
    case SONDE_VALUE_U64:
      return std::to_string(static_cast<uint64_t>(i64));
    case SONDE_VALUE_BOOL:
      return i64 != 0 ? "true" : "false";
    case SONDE_VALUE_F64:
      return std::to_string(f64);
    default:
      return text;
  }
}

size_t FakeTable::column(std::string_view wanted) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == wanted) return i;
  }
  ADD_FAILURE() << name << " has no column " << wanted;
  throw std::out_of_range("see the failure above");
}

const FakeValue &FakeTable::at(size_t row, std::string_view name_of_column) const {
  return rows.at(row).at(column(name_of_column));
}

size_t FakeTable::row_where(std::string_view name_of_column, std::string_view key) const {
  const size_t index = column(name_of_column);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i][index].str() == key) return i;
  }
  ADD_FAILURE() << name << " has no row with " << name_of_column << " = " << key;
  throw std::out_of_range("see the failure above");
}

FakeHost &FakeHost::get() {
  static FakeHost host;
  return host;
}

const sonde_host_t *FakeHost::table() {
  static const sonde_host_t table = {
      sizeof(sonde_host_t),
      SONDE_ABI_MAJOR,
      SONDE_ABI_MINOR,
      &get_service,
      [](uint32_t, const char *, const char *) {},
      [](sonde_status status, const char *text) {
        host().last_error = text;
        return status;
      },
      [] { return host().last_error.c_str(); },
  };
  return &table;
}

void FakeHost::reset() {
  end_subscriptions();
  *this = FakeHost();
}

sonde_session_t *FakeHost::session() {
  static char place;
  return reinterpret_cast<sonde_session_t *>(&place);
}

sonde_string_t FakeHost::intern(std::string_view text) {
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i] == text) return static_cast<sonde_string_t>(i);
  }
  texts.emplace_back(text);
  return static_cast<sonde_string_t>(texts.size() - 1);
}

const FakeTable &FakeHost::find_table(std::string_view name) const {
  for (const FakeTable &table : tables) {
    if (table.name == name) return table;
  }
  ADD_FAILURE() << "no table " << name;
  throw std::out_of_range("see the failure above");
}

std::vector<FakeFinding> FakeHost::find(std::string_view rule) const {
  std::vector<FakeFinding> found;
  for (const FakeFinding &finding : findings) {
    if (finding.rule == rule) found.push_back(finding);
  }
  return found;
}

void FakeHost::end_subscriptions() {
  for (FakeSubscription &subscription : subscriptions) {
    if (std::exchange(subscription.ended, true)) continue;
    if (subscription.raw.on_end != nullptr) subscription.raw.on_end(subscription.raw.user);
    if (subscription.raw.drop_user != nullptr) subscription.raw.drop_user(subscription.raw.user);
  }
}

void BatchBuilder::append(const void *record, size_t bytes) {
  const auto *const header = static_cast<const sonde_record_t *>(record);
  last_offset_ = words_.size() * 8;
  words_.resize(words_.size() + bytes / 8);
  std::memcpy(reinterpret_cast<uint8_t *>(words_.data()) + last_offset_, record, bytes);
  spaces_ |= uint64_t{1} << (header->space < 64 ? header->space : 0);
  ++count_;
}

BatchBuilder &BatchBuilder::repaired(uint64_t begin, uint64_t end, uint32_t reason) {
  repairs_.push_back({last_offset_, begin, end, reason, 0});
  return *this;
}

const sonde_batch_t &BatchBuilder::batch() {
  static const sonde_clock_t clock = {sizeof(sonde_clock_t), SONDE_CLOCK_UNIX_NS, 0, 0, 1, 0, 0};
  raw.struct_size = sizeof(raw);
  raw.source = source_;
  raw.stream = stream_;
  raw.data = reinterpret_cast<const uint8_t *>(words_.data());
  raw.bytes = words_.size() * 8;
  raw.count = count_;
  raw.spaces = spaces_;
  raw.clock = &clock;
  raw.repairs = repairs_.data();
  raw.repair_count = repairs_.size();
  raw.session = FakeHost::session();
  return raw;
}

}  // namespace sonde::testing
