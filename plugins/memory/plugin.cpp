// The memory analysis as a plugin.
#include <sonde/plugin.h>
#include <sonde/sonde.hpp>

#include <string>
#include <vector>

#include "advice.h"
#include "memory.h"
#include "options.h"
#include "picture.h"
#include "publish.h"

namespace {

using sonde::memory::Memory;
using sonde::memory::Usage;
using sonde::toolkit::ObjectLevel;

class Analysis {
 public:
  Analysis(sonde::Session session, sonde::Config options)
      : session_(std::move(session)),
        memory_(sonde::memory::read_options(options), [this](uint32_t source, sonde_string_t id) {
          const char *text = nullptr;
          const auto &capture = session_.host().service<sonde_capture_service_t>();
          return capture.text(session_.get(), source, id, &text) == SONDE_OK ? text : nullptr;
        }) {}

  void start() {
    subscription_ = session_.subscribe("memory", Memory::interests(memory_.options()),
                                       [this](const sonde::Batch &batch) { memory_.consume(batch.raw()); });
  }

  void finish() {
    subscription_.reset();
    memory_.finish();
    std::vector<std::string> errors;
    const auto note = [&](std::string error) {
      if (!error.empty()) errors.push_back(std::move(error));
    };
    const sonde::memory::Options &options = memory_.options();
    if (!options.svg.empty()) note(sonde::memory::write_file(options.svg, sonde::memory::draw_objects(memory_)));
    if (!options.html.empty()) note(sonde::memory::write_file(options.html, sonde::memory::draw_page(memory_)));
    if (memory_.trace() != nullptr) {
      memory_.trace()->finish(memory_);
      note(memory_.trace()->error());
    }
    sonde::memory::publish_tables(memory_, session_.host(), session_.get());
    sonde::memory::publish_findings(memory_, session_.host(), session_.get(), errors);
  }

  const Memory &memory() const { return memory_; }

 private:
  sonde::Session session_;
  Memory memory_;
  sonde::Subscription subscription_;  // last: it ends before what its handler uses
};

using Plugin = sonde::AnalysisPlugin<Analysis>;

ObjectLevel level_of(uint32_t level) {
  if (level > 1) throw sonde::Failure(SONDE_E_INVALID, "a level is 0 (allocation) or 1 (tensor)");
  return level == 0 ? ObjectLevel::kAllocation : ObjectLevel::kTensor;
}

sonde::memory::Pattern pattern_of(const char *name) {
  for (size_t i = 0; i < sonde::memory::kPatterns; ++i) {
    if (name != nullptr && sonde::memory::kPatternNames[i] == name) return sonde::memory::pattern_at(i);
  }
  throw sonde::Failure(SONDE_E_INVALID, std::string("no pattern ") + (name == nullptr ? "(null)" : name));
}

sonde_status pattern_count(sonde_session_t *session, uint32_t level, const char *pattern, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) {
    *out = analysis.memory().pattern_count(level_of(level), pattern_of(pattern));
  });
}

sonde_status pattern_waste(sonde_session_t *session, uint32_t level, const char *pattern, double *out) {
  return Plugin::with(session, [&](const Analysis &analysis) {
    *out = analysis.memory().pattern_byte_seconds(level_of(level), pattern_of(pattern));
  });
}

sonde_status peak_bytes(sonde_session_t *session, uint32_t level, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.memory().peak_bytes(level_of(level)); });
}

sonde_status needed_peak_bytes(sonde_session_t *session, uint32_t level, uint64_t *out) {
  return Plugin::with(session,
                      [&](const Analysis &analysis) { *out = analysis.memory().needed_peak_bytes(level_of(level)); });
}

sonde_status shared_peak_bytes(sonde_session_t *session, uint32_t level, uint64_t *out) {
  return Plugin::with(session,
                      [&](const Analysis &analysis) { *out = analysis.memory().shared_peak_bytes(level_of(level)); });
}

sonde_status forced_growth_bytes(sonde_session_t *session, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.memory().forced_growth_bytes(); });
}

sonde_status unmatched_frees(sonde_session_t *session, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.memory().unmatched_frees(); });
}

// Calls back once for each object on the caller's thread; an error of the callback ends the list and is returned.
sonde_status worst_objects(sonde_session_t *session, uint32_t level, uint64_t limit, sonde_callback_t callback,
                           void *user, sonde_drop_user_t drop_user) {
  sonde_status answer = SONDE_OK;
  const sonde_status status = Plugin::with(session, [&](const Analysis &analysis) {
    for (const Usage &usage : analysis.memory().worst(level_of(level), limit)) {
      const std::string name = analysis.memory().name_of_object(usage.object);
      const std::string patterns = sonde::memory::pattern_list(usage.patterns);
      const double wasted = usage.wasted() * 1e-9;
      const sonde_value_t arguments[] = {sonde::Cell(name).value(), sonde::Cell(usage.object.bytes).value(),
                                         sonde::Cell(wasted).value(), sonde::Cell(patterns).value()};
      answer = callback(user, arguments, 4, nullptr);
      if (answer < 0) break;
    }
  });
  if (drop_user != nullptr) drop_user(user);
  if (status < 0) return status;
  return answer == SONDE_E_STOP ? SONDE_OK : answer;
}

const sonde_export_t exports[] = {
    SONDE_EXPORT(pattern_count, status, (session, u32, text, out_u64),
                 "objects of a level (0 allocation, 1 tensor) that show a pattern, of those whose life is over"),
    SONDE_EXPORT(pattern_waste, status, (session, u32, text, out_f64),
                 "bytes times seconds that mending a pattern frees at a level"),
    SONDE_EXPORT(peak_bytes, status, (session, u32, out_u64),
                 "most bytes of a level at one time, of any one process and device"),
    SONDE_EXPORT(needed_peak_bytes, status, (session, u32, out_u64),
                 "the same if each object lived from first to last use: the lowest that moving reaches"),
    SONDE_EXPORT(shared_peak_bytes, status, (session, u32, out_u64),
                 "bytes of one piece of memory that holds all objects at fixed offsets; known after the end"),
    SONDE_EXPORT(forced_growth_bytes, status, (session, out_u64),
                 "bytes that allocators took although as many were free, in pieces too small"),
    SONDE_EXPORT(unmatched_frees, status, (session, out_u64), "frees that named no live object"),
    SONDE_EXPORT(worst_objects, status, (session, u32, u64, callback),
                 "calls back with name, bytes, wasted bytes times seconds and patterns of a level's worst objects"),
};

}  // namespace

SONDE_DEFINE_PLUGIN = {
    .struct_size = sizeof(sonde_plugin_entry_t),
    .abi_major = SONDE_ABI_MAJOR,
    .abi_minor_required = 0,
    .id = "memory",
    .version = "0.1.0",
    .summary = "how objects use device memory: lives, peaks, patterns of waste, pools and fragmentation, with findings",
    .license = "Apache-2.0",
    .exports = exports,
    .export_count = sizeof(exports) / sizeof(exports[0]),
    .export_stride = sizeof(sonde_export_t),
    .options = sonde::memory::kOptionSpecs,
    .option_count = sonde::memory::kOptionCount,
    .option_stride = sizeof(sonde_option_t),
    .init = &Plugin::init,
    .shutdown = nullptr,
    .get_interface = &Plugin::get_interface,
};
