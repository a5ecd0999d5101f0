#include "run/instances.h"

namespace sonde::run {

namespace {

struct Prepared {
  const void *table = nullptr;
  OwnedConfig options;
};

bool declares(const sonde_plugin_entry_t &entry, std::string_view name) {
  for (uint32_t i = 0; i < entry.option_count; ++i) {
    const auto *at = reinterpret_cast<const uint8_t *>(entry.options) + size_t{i} * entry.option_stride;
    if (reinterpret_cast<const sonde_option_t *>(at)->name == name) return true;
  }
  return false;
}

// The options of a wish with `budget` added, as YAML.
std::string with_budget(const sonde_config_service_t &config, const sonde_config_t *options, double budget) {
  std::string text = fmt::format("budget: {}\n", budget);
  uint64_t count = 0;
  if (options != nullptr) config.count(options, "", &count);
  for (uint64_t i = 0; i < count; ++i) {
    const char *key = "";
    const char *value = "";
    if (config.key(options, "", i, &key) != SONDE_OK || config.print(options, key, &value) != SONDE_OK) continue;
    text += fmt::format("{}:\n  ", key);
    for (const char *at = value; *at != '\0'; ++at) text += *at == '\n' ? std::string("\n  ") : std::string(1, *at);
    text += '\n';
  }
  return text;
}

// Loads a plugin, finds its interface and checks its part of the configuration.
Result<Prepared> prepare(const Services &services, const PluginWish &wish, const char *interface, uint32_t size,
                         double budget = 0) {
  const sonde_plugin_entry_t *entry = nullptr;
  if (const sonde_status status = services.plugins->load(wish.id.c_str(), &entry); status != SONDE_OK) {
    return Error{status, fmt::format("{}: {}", wish.where, error_text(status))};
  }
  Prepared prepared;
  if (const sonde_status status = services.plugins->interface(entry->id, interface, size, &prepared.table);
      status != SONDE_OK) {
    return Error{status, fmt::format("{}: {}", wish.where, error_text(status))};
  }
  sonde_config_t *checked = nullptr;
  if (const sonde_status status = services.config->check(wish.options, entry->id, entry->options, entry->option_count,
                                                         entry->option_stride, &checked);
      status != SONDE_OK) {
    return Error{status, error_text(status)};
  }
  prepared.options.reset(checked);
  const sonde_config_t *own = nullptr;
  const bool has_own = wish.options != nullptr && services.config->child(wish.options, "budget", &own) == SONDE_OK;
  if (budget <= 0 || has_own || !declares(*entry, "budget")) return prepared;
  // Checked above as it stands, so that faults name their places; now with what the run adds.
  sonde_config_t *parsed = nullptr;
  sonde_status status =
      services.config->parse(with_budget(*services.config, wish.options, budget).c_str(), wish.where.c_str(), &parsed);
  if (status != SONDE_OK) return Error{status, error_text(status)};
  const OwnedConfig merged(parsed);
  status =
      services.config->check(parsed, entry->id, entry->options, entry->option_count, entry->option_stride, &checked);
  if (status != SONDE_OK) return Error{status, error_text(status)};
  prepared.options.reset(checked);
  return prepared;
}

}  // namespace

void add_failure(const Services &services, sonde_session_t *session, const char *rule, const std::string &message,
                 const std::string &reason) {
  host_table()->log(SONDE_LOG_WARNING, "run", fmt::format("{}: {}", message, reason).c_str());
  if (services.result == nullptr) return;
  sonde_finding_t finding{};
  finding.struct_size = sizeof(finding);
  finding.severity = SONDE_SEVERITY_ERROR;
  finding.verdict = SONDE_VERDICT_UNSUPPORTED;
  finding.origin = "run";
  finding.rule = rule;
  finding.message = message.c_str();
  finding.reason = reason.c_str();
  finding.evidence_stride = sizeof(sonde_evidence_t);
  finding.confidence = 1;
  finding.sampling_scale = 1;
  services.result->add_finding(session, &finding);
}

AnalysisInstance::~AnalysisInstance() {
  if (created_ && table_->destroy != nullptr) table_->destroy(instance_);
}

void AnalysisInstance::fail_in(const char *function, sonde_status status) {
  works_ = false;
  add_failure(services_, session_, "run.analysis_failed", fmt::format("analysis {} failed in {}", label_, function),
              error_text(status));
}

Result<void> AnalysisInstance::create(const PluginWish &wish) {
  label_ = wish.label;
  Result<Prepared> prepared = prepare(services_, wish, SONDE_ANALYSIS_INTERFACE, SONDE_NEED(sonde_analysis_t, destroy));
  if (!prepared) return prepared.error();
  table_ = static_cast<const sonde_analysis_t *>(prepared->table);
  options_ = std::move(prepared->options);
  const sonde_status status = table_->create(session_, options_.get(), &instance_);
  if (status < 0) {
    fail_in("create", status);
  } else {
    created_ = works_ = true;
  }
  return {};
}

void AnalysisInstance::start() {
  if (!works_) return;
  if (const sonde_status status = table_->start(instance_); status < 0) fail_in("start", status);
}

void AnalysisInstance::finish() {
  if (!works_) return;
  if (const sonde_status status = table_->finish(instance_); status < 0) fail_in("finish", status);
}

PortInstance::~PortInstance() {
  if (created_ && table_->destroy != nullptr) table_->destroy(instance_);
}

void PortInstance::fail_in(const char *function, sonde_status status) {
  const std::string reason = error_text(status);
  const std::string message = fmt::format("port {} failed in {}", id_, function);
  add_failure(services_, session_, "run.port_failed", message, reason);
  services_.capture->note(session_, 2, id_.c_str(), fmt::format("{}: {}", message, reason).c_str());
}

Result<void> PortInstance::create(const PluginWish &wish, double budget) {
  id_ = wish.id;
  Result<Prepared> prepared = prepare(services_, wish, SONDE_PORT_INTERFACE, SONDE_NEED(sonde_port_t, entry), budget);
  if (!prepared) return prepared.error();
  table_ = static_cast<const sonde_port_t *>(prepared->table);
  options_ = std::move(prepared->options);
  const sonde_status status = table_->create(session_, options_.get(), &instance_);
  if (status < 0) {
    fail_in("create", status);
  } else {
    created_ = true;
  }
  return {};
}

void PortInstance::start() {
  if (!created_) return;
  const std::lock_guard lock(mutex_);
  const sonde_status status = table_->start(instance_);
  if (status < 0) return fail_in("start", status);
  running_ = true;
}

void PortInstance::demand() {
  const std::lock_guard lock(mutex_);
  if (!running_) return;
  if (const sonde_status status = table_->demand(instance_); status < 0 && status != SONDE_E_UNIMPLEMENTED) {
    fail_in("demand", status);
  }
}

void PortInstance::flush(bool forced) {
  const std::lock_guard lock(mutex_);
  if (!running_) return;
  // A periodic flush that fails is tried again; the last one reports.
  const sonde_status status = table_->flush(instance_, forced ? 1 : 0);
  if (forced && status < 0 && status != SONDE_E_UNIMPLEMENTED) fail_in("flush", status);
}

void PortInstance::stop() {
  const std::lock_guard lock(mutex_);
  if (!running_) return;
  running_ = false;
  if (const sonde_status status = table_->stop(instance_); status < 0) fail_in("stop", status);
}

sonde_status PortInstance::entry(uint32_t which, void *argument) {
  if (!created_) return SONDE_E_UNIMPLEMENTED;
  return table_->entry(which, argument);
}

}  // namespace sonde::run
