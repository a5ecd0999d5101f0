// A program that embeds Sonde, in C: opens a session, loads an analysis, emits three copies, reads the results.
// Usage: embed MODULE ORIGIN. Exit status 0 when the results are what the three copies must give.
#include <stdio.h>
#include <string.h>

#include <sonde/sonde.h>

static const sonde_host_t *host;

static int failed(const char *what) {
  fprintf(stderr, "embed: %s: %s\n", what, host->last_error());
  return 1;
}

#define GET(variable, type, id, last_member)                                                 \
  const type *variable = NULL;                                                               \
  {                                                                                          \
    const void *found = NULL;                                                                \
    if (host->get_service(id, SONDE_NEED(type, last_member), &found) < 0) return failed(id); \
    variable = found;                                                                        \
  }

static int check(int condition, const char *text) {
  if (!condition) fprintf(stderr, "embed: not so: %s\n", text);
  return condition ? 0 : 1;
}

static sonde_status emit_copy(const sonde_capture_service_t *capture, sonde_session_t *session, uint32_t kind,
                              uint64_t bytes) {
  sonde_device_copy_t copy;
  memset(&copy, 0, sizeof(copy));
  const uint64_t now = sonde_stamp();
  SONDE_RECORD_INIT(&copy, SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY, now);
  copy.end = now + 1000;
  copy.kind = kind;
  copy.bytes = bytes;
  return capture->emit(session, &copy.header);
}

static int check_results(const sonde_result_service_t *result, sonde_session_t *session, const char *origin) {
  int faults = 0;
  sonde_table_t *table = NULL;
  if (result->find_table(session, origin, "sizes", &table) < 0) return failed("find_table");
  uint64_t rows = 0;
  if (result->row_count(table, &rows) < 0) return failed("row_count");
  faults += check(rows == 2, "two buckets hold copies");
  // 100 bytes lie in [64, 127], 8,192 in [8192, 16383]; the directions come in the order of their numbers.
  static const struct {
    const char *direction;
    uint64_t from, to, copies, bytes;
  } expected[] = {{"host_to_device", 64, 127, 2, 200}, {"device_to_host", 8192, 16383, 1, 8192}};
  for (uint64_t row = 0; row < rows && row < 2; ++row) {
    sonde_value_t cells[5];
    for (uint64_t column = 0; column < 5; ++column) {
      if (result->cell(table, row, column, &cells[column]) < 0) return failed("cell");
    }
    faults += check(strcmp(cells[0].as.text, expected[row].direction) == 0, "direction");
    faults += check(cells[1].as.u64 == expected[row].from && cells[2].as.u64 == expected[row].to, "ends of the bucket");
    faults += check(cells[3].as.u64 == expected[row].copies && cells[4].as.u64 == expected[row].bytes, "sums");
  }
  uint64_t findings = 0;
  if (result->finding_count(session, &findings) < 0) return failed("finding_count");
  faults += check(findings == 1, "one finding");
  const sonde_finding_t *finding = NULL;
  if (result->finding_at(session, 0, &finding) < 0) return failed("finding_at");
  faults += check(strcmp(finding->rule, "copy_sizes.tiny") == 0, "its rule");
  faults += check(finding->verdict == SONDE_VERDICT_VIOLATION, "two of three copies are below 4 KiB: more than a half");
  return faults;
}

int main(int count, char **words) {
  if (count != 3) {
    fprintf(stderr, "usage: embed MODULE ORIGIN\n");
    return 2;
  }
  host = sonde_host();
  GET(sessions, sonde_session_service_t, SONDE_SESSION_SERVICE, losses)
  GET(capture, sonde_capture_service_t, SONDE_CAPTURE_SERVICE, emit)
  GET(plugins, sonde_plugins_service_t, SONDE_PLUGINS_SERVICE, function)
  GET(config, sonde_config_service_t, SONDE_CONFIG_SERVICE, release)
  GET(result, sonde_result_service_t, SONDE_RESULT_SERVICE, finding_at)

  const sonde_plugin_entry_t *entry = NULL;
  if (plugins->load(words[1], &entry) < 0) return failed("load");
  const void *found = NULL;
  if (plugins->interface(entry->id, SONDE_ANALYSIS_INTERFACE, SONDE_NEED(sonde_analysis_t, destroy), &found) < 0) {
    return failed("interface");
  }
  const sonde_analysis_t *const analysis = found;
  sonde_config_t *options = NULL;
  if (config->check(NULL, "embed", entry->options, entry->option_count, entry->option_stride, &options) < 0) {
    return failed("options");
  }

  sonde_session_t *session = NULL;
  if (sessions->open(NULL, &session) < 0) return failed("open");
  void *instance = NULL;
  if (analysis->create(session, options, &instance) < 0) return failed("create");
  if (analysis->start(instance) < 0) return failed("start of the analysis");
  if (sessions->start(session) < 0) return failed("start");
  if (emit_copy(capture, session, SONDE_COPY_HOST_TO_DEVICE, 100) < 0) return failed("emit");
  if (emit_copy(capture, session, SONDE_COPY_DEVICE_TO_HOST, 8192) < 0) return failed("emit");
  if (emit_copy(capture, session, SONDE_COPY_HOST_TO_DEVICE, 100) < 0) return failed("emit");
  if (sessions->stop(session, 0) < 0) return failed("stop");
  if (analysis->finish(instance) < 0) return failed("finish");

  int faults = check_results(result, session, words[2]);
  sonde_export_t function;
  if (plugins->function(entry->id, "copy_count", &function) < 0) return failed("function");
  faults += check(strcmp(function.signature, "e(hS&Q)") == 0, "signature of copy_count");
  uint64_t copies = 0;
  const sonde_status status = ((sonde_status(*)(sonde_session_t *, uint64_t *))function.function)(session, &copies);
  faults += check(status == SONDE_OK && copies == 3, "copy_count gives 3");

  analysis->destroy(instance);
  sessions->close(session);
  config->release(options);
  if (faults == 0) printf("embed: %s saw the three copies\n", entry->id);
  return faults == 0 ? 0 : 1;
}
