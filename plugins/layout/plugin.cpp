// The layout lint as a plugin.
#include <sonde/plugin.h>
#include <sonde/sonde.hpp>

#include "lint.h"
#include "options.h"
#include "publish.h"

namespace {

using sonde::layout_lint::Lint;

class Analysis {
 public:
  Analysis(sonde::Session session, sonde::Config options)
      : session_(std::move(session)),
        lint_(session_.host(), sonde::layout_lint::read_options(session_.host(), options)) {}

  // Files do not change with the events of a session: they are looked at first, so that a script may ask at any time.
  void start() { lint_.run(); }

  void finish() {
    sonde::layout_lint::publish_tables(lint_, session_.host(), session_.get());
    sonde::layout_lint::publish_findings(lint_, session_.host(), session_.get());
  }

  const Lint &lint() const { return lint_; }

 private:
  sonde::Session session_;
  Lint lint_;
};

using Plugin = sonde::AnalysisPlugin<Analysis>;

sonde_status sites(sonde_session_t *session, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.lint().sites(); });
}

sonde_status unparsed(sonde_session_t *session, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.lint().unparsed(); });
}

sonde_status unsupported(sonde_session_t *session, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.lint().unsupported(); });
}

// Calls back once for each site on the caller's thread; an error of the callback ends the list and is returned.
sonde_status each_site(sonde_session_t *session, sonde_callback_t callback, void *user, sonde_drop_user_t drop_user) {
  sonde_status answer = SONDE_OK;
  const sonde_status status = Plugin::with(session, [&](const Analysis &analysis) {
    for (const sonde::layout_lint::FileResult &file : analysis.lint().files()) {
      for (const sonde::layout_lint::Site &site : file.sites) {
        const uint64_t conflicts = site.store_conflicts.value_or(0) + site.load_conflicts.value_or(0);
        const sonde_value_t arguments[] = {
            sonde::Cell(site.kernel).value(), sonde::Cell(site.file).value(),
            sonde::Cell(site.line).value(),   sonde::Cell(site.operation).value(),
            sonde::Cell(site.plan).value(),   sonde::Cell(site.shared_bytes.value_or(0)).value(),
            sonde::Cell(conflicts).value(),   sonde::Cell(uint64_t{site.issues.size()}).value()};
        answer = callback(user, arguments, 8, nullptr);
        if (answer < 0) return;
      }
    }
  });
  if (drop_user != nullptr) drop_user(user);
  if (status < 0) return status;
  return answer == SONDE_E_STOP ? SONDE_OK : answer;
}

const sonde_export_t exports[] = {
    SONDE_EXPORT(sites, status, (session, out_u64), "operations that move data, over all files"),
    SONDE_EXPORT(unparsed, status, (session, out_u64), "files and encodings that could not be read"),
    SONDE_EXPORT(unsupported, status, (session, out_u64), "sites without a plan"),
    SONDE_EXPORT(each_site, status, (session, callback),
                 "calls back with kernel, file, line, operation, plan, shared bytes, conflicts and number of findings"),
};

}  // namespace

SONDE_DEFINE_PLUGIN = {
    .struct_size = sizeof(sonde_plugin_entry_t),
    .abi_major = SONDE_ABI_MAJOR,
    .abi_minor_required = 0,
    .id = "layout",
    .version = "0.1.0",
    .summary = "layout conversions, bank conflicts and memory accesses of tile kernels, from their TTGIR",
    .license = "Apache-2.0",
    .exports = exports,
    .export_count = sizeof(exports) / sizeof(exports[0]),
    .export_stride = sizeof(sonde_export_t),
    .options = sonde::layout_lint::kOptionSpecs,
    .option_count = sonde::layout_lint::kOptionCount,
    .option_stride = sizeof(sonde_option_t),
    .init = &Plugin::init,
    .shutdown = nullptr,
    .get_interface = &Plugin::get_interface,
};
