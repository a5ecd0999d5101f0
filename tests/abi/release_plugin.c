// The plugin that is built once from the headers of each release, and whose binary every later host of the same
// interface must load and run. It counts host calls of a session and adds up their lengths, so it passes through the
// entry, the services, the inline functions that were compiled into it, the export table and the results.
#include <sonde/sonde.h>
#include <stdlib.h>

typedef struct counter_t {
  sonde_session_t *session;
  uint64_t calls;
  int64_t nanoseconds;
} counter_t;

static const sonde_delivery_service_t *delivery;
static const sonde_result_service_t *result;

static sonde_status init(const sonde_host_t *host) {
  sonde_status status = host->get_service(SONDE_DELIVERY_SERVICE, SONDE_NEED(sonde_delivery_service_t, subscribe),
                                          (const void **)&delivery);
  if (status != SONDE_OK) return status;
  return host->get_service(SONDE_RESULT_SERVICE, SONDE_NEED(sonde_result_service_t, add_finding),
                           (const void **)&result);
}

static sonde_status on_batch(void *user, const sonde_batch_t *batch) {
  counter_t *const counter = (counter_t *)user;
  for (const sonde_record_t *record = sonde_batch_next(batch, NULL); record != NULL;
       record = sonde_batch_next(batch, record)) {
    if (record->space != SONDE_SPACE_HOST || record->type != SONDE_HOST_CALL) continue;
    const sonde_host_call_t *const call = (const sonde_host_call_t *)(const void *)record;
    counter->calls += 1;
    counter->nanoseconds += sonde_clock_duration_ns(batch->clock, record->time, call->end);
  }
  return SONDE_OK;
}

static sonde_status create(sonde_session_t *session, const sonde_config_t *options, void **instance) {
  (void)options;
  counter_t *const counter = (counter_t *)calloc(1, sizeof(counter_t));
  if (counter == NULL) return SONDE_E_FULL;
  counter->session = session;
  *instance = counter;
  return SONDE_OK;
}

static sonde_status start(void *instance) {
  counter_t *const counter = (counter_t *)instance;
  const sonde_interest_t interest = {SONDE_SPACE_HOST, SONDE_LEVEL_RECORDS, 1ull << SONDE_HOST_CALL};
  sonde_subscription_t subscription = {0};
  subscription.struct_size = sizeof(subscription);
  subscription.name = "oldest";
  subscription.interests = &interest;
  subscription.interest_count = 1;
  subscription.on_batch = on_batch;
  subscription.user = counter;
  uint64_t id = 0;
  return delivery->subscribe(counter->session, &subscription, &id);
}

static sonde_status finish(void *instance) {
  counter_t *const counter = (counter_t *)instance;
  static const sonde_column_spec_t columns[] = {
      {"calls", "1", "host calls seen", SONDE_VALUE_U64, 0},
      {"time", "ns", "sum of their lengths", SONDE_VALUE_I64, 0},
  };
  sonde_table_spec_t spec = {0};
  spec.struct_size = sizeof(spec);
  spec.origin = "oldest";
  spec.name = "calls";
  spec.title = "Host calls";
  spec.help = "";
  spec.columns = columns;
  spec.column_count = 2;
  spec.column_stride = sizeof(columns[0]);
  sonde_table_t *table = NULL;
  sonde_status status = result->create_table(counter->session, &spec, &table);
  if (status != SONDE_OK) return status;

  sonde_value_t row[2] = {{SONDE_VALUE_U64, 0, 0, {0}}, {SONDE_VALUE_I64, 0, 0, {0}}};
  row[0].as.u64 = counter->calls;
  row[1].as.i64 = counter->nanoseconds;
  status = result->add_row(table, row, 2);
  if (status != SONDE_OK) return status;

  sonde_finding_t finding = {0};
  finding.struct_size = sizeof(finding);
  finding.severity = SONDE_SEVERITY_NOTE;
  finding.verdict = SONDE_VERDICT_OK;
  finding.origin = "oldest";
  finding.rule = "oldest.looked";
  finding.message = "The host calls were counted.";
  finding.confidence = 1.0;
  finding.sampling_scale = 1.0;
  return result->add_finding(counter->session, &finding);
}

static void destroy(void *instance) { free(instance); }

static const sonde_analysis_t analysis = {sizeof(sonde_analysis_t), 0, create, start, finish, destroy};

static const void *get_interface(const char *id) {
  const char *const wanted = SONDE_ANALYSIS_INTERFACE;
  return strcmp(id, wanted) == 0 ? &analysis : NULL;
}

// scale * value, in *out.
static sonde_status multiply(int64_t scale, int64_t value, int64_t *out) {
  *out = scale * value;
  return SONDE_OK;
}

static const sonde_export_t exports[] = {
    SONDE_EXPORT(multiply, status, (i64, i64, out_i64), "the product of two numbers"),
};

SONDE_DEFINE_PLUGIN = {
    .struct_size = sizeof(sonde_plugin_entry_t),
    .abi_major = SONDE_ABI_MAJOR,
    .abi_minor_required = 0,
    .id = "oldest",
    .version = "1.0.0",
    .summary = "Counts host calls; stands for every plugin built from these headers",
    .license = "Apache-2.0",
    .exports = exports,
    .export_count = 1,
    .export_stride = sizeof(sonde_export_t),
    .init = init,
    .get_interface = get_interface,
};
