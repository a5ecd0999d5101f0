// The analysis `uvm` as a plugin.
#include <sonde/plugin.h>
#include <sonde/sonde.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <sonde/toolkit/memory_history.h>
#include <sonde/toolkit/paging_plan.h>

#include "fit.h"
#include "options.h"
#include "plan_text.h"
#include "publish.h"
#include "workload_file.h"

namespace {

using namespace sonde::uvm;

constexpr char kPort[] = "cuda_paging";
constexpr uint64_t kUnlimited = UINT64_MAX;

struct ConfigRelease {
  const sonde_config_service_t *service;
  void operator()(sonde_config_t *config) const { service->release(config); }
};
using OwnedConfig = std::unique_ptr<sonde_config_t, ConfigRelease>;

OwnedConfig load(const sonde::Host &host, const std::string &path) {
  const auto &service = host.service<sonde_config_service_t>();
  sonde_config_t *loaded = nullptr;
  host.check(service.load(path.c_str(), &loaded));
  return {loaded, ConfigRelease{&service}};
}

// Parameters of a file; throws Failure for what is none.
PagingParameters read_parameters(const sonde::Host &host, const std::string &path) {
  const auto &service = host.service<sonde_config_service_t>();
  const OwnedConfig tree = load(host, path);
  PagingParameters parameters;
  uint64_t count = 0;
  host.check(service.count(tree.get(), "parameters", &count));
  for (uint64_t index = 0; index < count; ++index) {
    const char *name = "";
    double value = 0;
    host.check(service.key(tree.get(), "parameters", index, &name));
    host.check(service.get_f64(tree.get(), (std::string("parameters.") + name).c_str(), &value));
    if (!set_parameter(parameters, name, value)) {
      throw sonde::Failure(SONDE_E_INVALID, path + ": '" + name + "' is no parameter, or its value is out of range");
    }
  }
  if (count == 0) throw sonde::Failure(SONDE_E_INVALID, path + ": there are no 'parameters'");
  parameters.source = "of " + path;
  return parameters;
}

sonde::toolkit::PagingPlan read_plan_file(const sonde::Host &host, const std::string &path) {
  const auto &service = host.service<sonde_config_service_t>();
  const OwnedConfig tree = load(host, path);
  const sonde_config_t *part = nullptr;
  if (service.child(tree.get(), "ports.cuda_paging.plan", &part) != SONDE_OK) part = tree.get();
  sonde::toolkit::PagingPlan plan;
  std::string error;
  if (!sonde::toolkit::read_paging_plan(service, part, plan, error)) throw sonde::Failure(SONDE_E_INVALID, error);
  return plan;
}

class Analysis {
 public:
  Analysis(sonde::Session session, sonde::Config config)
      : session_(std::move(session)),
        options_(read_options(config)),
        profile_(options_.profile, [this](uint32_t name) -> const std::string & { return history_->text(name); }) {
    history_ = std::make_unique<sonde::toolkit::MemoryHistory>(
        sonde::toolkit::MemoryHistoryOptions{},
        [this](uint32_t source, sonde_string_t id) { return text_of(source, id); }, profile_);
  }

  void start() {
    std::vector<sonde_interest_t> interests;
    if (!options_.is_applied) {
      interests = Profile::interests();
      interests.push_back(sonde::only(SONDE_SPACE_OBJECT, {SONDE_OBJECT_DEVICE}));
    } else {
      interests.push_back(sonde::only(SONDE_SPACE_MEMORY, {SONDE_MEMORY_ADVISE, SONDE_MEMORY_PREFETCH}));
    }
    interests.push_back(sonde::only(SONDE_SPACE_SESSION, {SONDE_SESSION_START, SONDE_SESSION_NOTE}));
    subscription_ = session_.subscribe("uvm", interests, [this](const sonde::Batch &batch) { consume(batch); });
  }

  void finish() {
    subscription_.reset();
    if (!options_.is_applied) {
      history_->finish();
      profile_.finish();
    }
    Results results{options_, profile_, history_->counts(), parameters_, {}, false, nullptr, {}, {}, {}, {}, applied_};
    if (!options_.is_applied) plan(results);
    publish_tables(results, session_.host(), session_.get());
    publish_findings(results, session_.host(), session_.get());
    if (results.outcome) outcome_ = std::move(results.outcome);
  }

  const Options &options() const { return options_; }
  const PagingParameters &parameters() const { return parameters_; }
  const Trace *trace() const { return profile_.traces().empty() ? nullptr : &profile_.traces().front(); }
  const Outcome *outcome() const { return outcome_ ? &*outcome_ : nullptr; }
  const std::string &plan_text() const { return plan_text_; }

 private:
  const char *text_of(uint32_t source, sonde_string_t id) const {
    const char *text = nullptr;
    const auto &capture = session_.host().service<sonde_capture_service_t>();
    return capture.text(session_.get(), source, id, &text) == SONDE_OK ? text : nullptr;
  }

  void consume(const sonde::Batch &batch) {
    const sonde_batch_t &raw = batch.raw();
    if (!options_.is_applied) {
      history_->consume(raw);
      profile_.consume(raw);
    }
    constexpr uint64_t kRare = uint64_t{1} << SONDE_SPACE_SESSION | uint64_t{1} << SONDE_SPACE_OBJECT;
    if ((raw.spaces & kRare) == 0 && !options_.is_applied) return;
    for (const sonde::Record record : batch) take(raw.source, record);
  }

  void take(uint32_t source, const sonde::Record &record) {
    if (record.is(SONDE_SPACE_SESSION, SONDE_SESSION_START)) {
      sonde_session_start_t storage;
      const char *const program = text_of(source, record.as<sonde_session_start_t>(storage).program);
      if (program != nullptr) programs_[source] = program;
    } else if (record.is(SONDE_SPACE_OBJECT, SONDE_OBJECT_DEVICE)) {
      sonde_object_device_t storage;
      const auto &device = record.as<sonde_object_device_t>(storage);
      memory_of_device_[device.device] = device.memory_bytes;
    } else if (record.is(SONDE_SPACE_SESSION, SONDE_SESSION_NOTE)) {
      sonde_session_note_t storage;
      const auto &note = record.as<sonde_session_note_t>(storage);
      const char *const origin = text_of(source, note.origin);
      const char *const text = text_of(source, note.text);
      if (origin == nullptr || text == nullptr || std::string_view(origin) != kPort) return;
      if (note.severity == 3) {
        applied_.no_data = text;
      } else {
        (note.severity == 0 ? applied_.notes : applied_.warnings).emplace_back(text);
      }
    } else if (options_.is_applied && (record.is(SONDE_SPACE_MEMORY, SONDE_MEMORY_PREFETCH) ||
                                       record.is(SONDE_SPACE_MEMORY, SONDE_MEMORY_ADVISE))) {
      sonde_memory_advise_t storage;
      const auto &one = record.as<sonde_memory_advise_t>(storage);
      if (record.is(SONDE_SPACE_MEMORY, SONDE_MEMORY_ADVISE)) {
        ++applied_.advice;
      } else if (one.device < 0) {
        ++applied_.evictions;
        applied_.evicted_bytes += one.bytes;
      } else {
        ++applied_.prefetches;
        applied_.prefetched_bytes += one.bytes;
      }
    }
  }

  void plan(Results &results) {
    if (!options_.calibration.empty()) {
      try {
        parameters_ = read_parameters(session_.host(), options_.calibration);
        results.is_calibrated = true;
      } catch (const sonde::Failure &failure) {
        results.parameters_error = failure.what();
      }
    }
    if (profile_.traces().empty()) return;
    const Trace &trace = profile_.traces().front();
    results.trace = &trace;
    if (const auto found = programs_.find(trace.source); found != programs_.end()) program_ = found->second;
    std::optional<sonde::toolkit::PagingPlan> given;
    if (!options_.predict.empty()) {
      try {
        given = read_plan_file(session_.host(), options_.predict);
      } catch (const sonde::Failure &failure) {
        results.predict_error = failure.what();
      }
    }
    results.outcome =
        plan_and_predict(trace, parameters_, capacity_of(trace.device), options_, given ? &*given : nullptr);
    const Outcome &outcome = *results.outcome;
    if (outcome.chosen == Chosen::kNothing) return;
    plan_text_ =
        plan_file_text(plan_of(trace, outcome.plan.schedule), "Program: " + program_ + "\n" + remarks_of(results));
    // What is planned for memory that is not managed cannot be applied.
    if (options_.plan.empty() || profile_.counts().is_all_memory) return;
    if (write_plan_file(options_.plan, plan_text_, options_.overwrite, results.plan_error)) {
      results.plan_path = options_.plan;
    }
  }

  uint64_t capacity_of(uint32_t device) const {
    if (options_.capacity != 0) return options_.capacity;
    const auto found = memory_of_device_.find(device);
    if (found == memory_of_device_.end() || found->second <= options_.reserve) return kUnlimited;
    return found->second - options_.reserve;
  }

  sonde::Session session_;
  Options options_;
  std::unique_ptr<sonde::toolkit::MemoryHistory> history_;
  Profile profile_;
  PagingParameters parameters_;
  Applied applied_;
  std::map<uint32_t, std::string> programs_;
  std::map<uint32_t, uint64_t> memory_of_device_;
  std::string program_;
  std::string plan_text_;
  std::optional<Outcome> outcome_;
  sonde::Subscription subscription_;  // last: it ends before what its handler uses
};

using Plugin = sonde::AnalysisPlugin<Analysis>;

const Outcome &outcome_of(const Analysis &analysis) {
  if (analysis.outcome() == nullptr) {
    throw sonde::Failure(SONDE_E_NOT_FOUND, "there is no plan: the run has not ended, or no touches are known");
  }
  return *analysis.outcome();
}

sonde_status plan_text(sonde_session_t *session, const char **out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.plan_text().c_str(); });
}

sonde_status touched_bytes(sonde_session_t *session, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = outcome_of(analysis).footprint; });
}

sonde_status predicted_without(sonde_session_t *session, int64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = outcome_of(analysis).none.total_ns; });
}

sonde_status predicted_with(sonde_session_t *session, int64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = outcome_of(analysis).chosen_result().total_ns; });
}

// Simulates again, with plans made for another capacity; 0: unlimited. Calls back with the names of the cases and ns.
sonde_status predict_capacity(sonde_session_t *session, uint64_t capacity, sonde_callback_t callback, void *user,
                              sonde_drop_user_t drop_user) {
  sonde_status answer = SONDE_OK;
  const sonde_status status = Plugin::with(session, [&](const Analysis &analysis) {
    (void)outcome_of(analysis);
    const Prediction row = predict(*analysis.trace(), analysis.parameters(), capacity == 0 ? kUnlimited : capacity,
                                   analysis.options(), nullptr);
    const std::pair<const char *, int64_t> cases[] = {{"no_prefetch", row.none_ns},
                                                      {"each_launch", row.each_launch_ns},
                                                      {"object_plan", row.object_ns},
                                                      {"plan", row.tensor_ns},
                                                      {"optimum", row.optimum_ns.value_or(0)}};
    for (const auto &[name, ns] : cases) {
      const sonde_value_t arguments[] = {sonde::Cell(name).value(), sonde::Cell(ns).value(),
                                         sonde::Cell(row.is_extrapolated).value()};
      answer = callback(user, arguments, 3, nullptr);
      if (answer < 0) break;
    }
  });
  if (drop_user != nullptr) drop_user(user);
  if (status < 0) return status;
  return answer == SONDE_E_STOP ? SONDE_OK : answer;
}

template <typename Body>
sonde_status without_session(Body &&body) {
  return sonde::guarded(Plugin::host(), [&] { body(sonde::Host(Plugin::host())); });
}

// A workload written by hand. `calibration` may be "": the defaults.
sonde_status simulate_file(const char *workload, const char *calibration, uint64_t capacity, int64_t *out) {
  return without_session([&](const sonde::Host &host) {
    PagingParameters parameters;
    if (*calibration != '\0') parameters = read_parameters(host, calibration);
    const OwnedConfig tree = load(host, workload);
    HandWorkload hand;
    std::string error;
    if (!read_workload(host.service<sonde_config_service_t>(), tree.get(), hand, error)) {
      throw sonde::Failure(SONDE_E_INVALID, error);
    }
    *out = simulate(hand.trace, parameters, capacity == 0 ? kUnlimited : capacity, hand.schedule).total_ns;
  });
}

// Parameters from a file of measurements, as YAML for the option `calibration`.
sonde_status fit(const char *file, const char **out) {
  thread_local std::string text;
  return without_session([&](const sonde::Host &host) {
    const auto &service = host.service<sonde_config_service_t>();
    const OwnedConfig tree = load(host, file);
    Measurements measurements;
    uint64_t count = 0;
    host.check(service.count(tree.get(), "measurements", &count));
    for (uint64_t index = 0; index < count; ++index) {
      const char *name = "";
      host.check(service.key(tree.get(), "measurements", index, &name));
      host.check(service.get_f64(tree.get(), (std::string("measurements.") + name).c_str(), &measurements[name]));
    }
    const char *card = "";
    (void)service.get_text(tree.get(), "card", &card);
    const Fit made = fit_parameters(measurements);
    if (!made.error.empty()) throw sonde::Failure(SONDE_E_INVALID, std::string(file) + ": " + made.error);
    text = fit_text(made, card);
    *out = text.c_str();
  });
}

const sonde_export_t exports[] = {
    SONDE_EXPORT(plan_text, status, (session, out_text), "the plan as YAML; empty where none is made"),
    SONDE_EXPORT(touched_bytes, status, (session, out_u64), "bytes of pages that any launch touches"),
    SONDE_EXPORT(predicted_without, status, (session, out_i64), "simulated time without prefetching, ns"),
    SONDE_EXPORT(predicted_with, status, (session, out_i64), "simulated time with the plan, ns"),
    SONDE_EXPORT(predict_capacity, status, (session, u64, callback),
                 "simulates at a capacity (0: unlimited); calls back with case, ns and whether it is extrapolated"),
    SONDE_EXPORT(
        simulate_file, status, (text, text, u64, out_i64),
        "simulated ns of a workload written by hand: its file, parameters' file or \"\", capacity (0: unlimited)"),
    SONDE_EXPORT(fit, status, (text, out_text), "the simulator's parameters from a file of measurements, as YAML"),
};

}  // namespace

SONDE_DEFINE_PLUGIN = {
    .struct_size = sizeof(sonde_plugin_entry_t),
    .abi_major = SONDE_ABI_MAJOR,
    .abi_minor_required = 0,
    .id = "uvm",
    .version = "0.1.0",
    .summary = "plans prefetches, evictions and advice of managed memory, and predicts what they save",
    .license = "Apache-2.0",
    .exports = exports,
    .export_count = sizeof(exports) / sizeof(exports[0]),
    .export_stride = sizeof(sonde_export_t),
    .options = kOptionSpecs,
    .option_count = kOptionCount,
    .option_stride = sizeof(sonde_option_t),
    .init = &Plugin::init,
    .shutdown = nullptr,
    .get_interface = &Plugin::get_interface,
};
