// A complete analysis in one C file: how large the copies of a run are, by direction, in powers of two.
//
// It needs include/sonde/ and a C11 compiler, nothing else; it does not link libsonde. It shows everything that an
// analysis has: options, a subscription, a table, a finding with all three verdicts, and a function for Lua and the
// command line.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/analysis.h>
#include <sonde/capture.h>
#include <sonde/config.h>
#include <sonde/delivery.h>
#include <sonde/plugin.h>
#include <sonde/result.h>
#include <sonde/spaces/device.h>

#define ORIGIN "copy_sizes_c"
#define DIRECTIONS 11  // SONDE_COPY_*
#define BUCKETS 65     // bucket 0 holds copies of 0 bytes, bucket b > 0 those of [2^(b-1), 2^b) bytes

static const char *const direction_names[DIRECTIONS] = {
    "unknown",       "host_to_device", "device_to_host", "device_to_device", "host_to_host",    "peer_to_peer",
    "host_to_array", "array_to_host",  "array_to_array", "array_to_device",  "device_to_array",
};

// The services of the host that this plugin uses, fetched once in init.
static const sonde_host_t *host;
static const sonde_config_service_t *config_service;
static const sonde_delivery_service_t *delivery_service;
static const sonde_result_service_t *result_service;

typedef struct bucket_t {
  uint64_t copies;
  uint64_t bytes;
} bucket_t;

// One analysis of one session.
typedef struct instance_t {
  sonde_session_t *session;
  int64_t threshold_bytes;
  double share;
  uint64_t subscription;
  bucket_t buckets[DIRECTIONS][BUCKETS];
  uint64_t copies;  // written by the subscription's thread, read by exports on any thread
  uint64_t tiny;
  struct instance_t *next;
} instance_t;

// All instances, for the exports, which are called with a session.
static pthread_mutex_t instances_lock = PTHREAD_MUTEX_INITIALIZER;
static instance_t *instances;

static uint32_t bucket_of(uint64_t bytes) { return bytes == 0 ? 0 : 64u - (uint32_t)__builtin_clzll(bytes); }
static uint64_t bucket_begin(uint32_t bucket) { return bucket == 0 ? 0 : (uint64_t)1 << (bucket - 1); }
static uint64_t bucket_last(uint32_t bucket) { return bucket == 0 ? 0 : bucket_begin(bucket) * 2 - 1; }

// ---- Receiving ------------------------------------------------------------------------------------------------------

// [delivery]
static sonde_status on_batch(void *user, const sonde_batch_t *batch) {
  instance_t *const self = user;
  const sonde_record_t *record = NULL;
  while ((record = sonde_batch_next(batch, record)) != NULL) {
    // A batch holds what anybody wanted, so everything else is passed over.
    if (record->space != SONDE_SPACE_DEVICE || record->type != SONDE_DEVICE_COPY) continue;
    // A capture of an older writer may lack fields that were appended later.
    if (!SONDE_RECORD_HAS(record, sonde_device_copy_t, kind)) continue;
    const sonde_device_copy_t *const copy = (const sonde_device_copy_t *)record;
    bucket_t *const bucket = &self->buckets[copy->kind < DIRECTIONS ? copy->kind : 0][bucket_of(copy->bytes)];
    ++bucket->copies;
    bucket->bytes += copy->bytes;
    if (copy->bytes < (uint64_t)self->threshold_bytes) ++self->tiny;
    __atomic_fetch_add(&self->copies, 1, __ATOMIC_RELAXED);
  }
  return SONDE_OK;
}

// ---- The analysis interface -----------------------------------------------------------------------------------------

// [control]
static sonde_status create(sonde_session_t *session, const sonde_config_t *options, void **out) {
  instance_t *const self = calloc(1, sizeof(*self));
  if (self == NULL) return host->set_error(SONDE_E_FULL, "copy_sizes_c: out of memory");
  self->session = session;
  // The host has checked the options against the declaration below, so these cannot be missing.
  sonde_status status = config_service->get_i64(options, "threshold_bytes", &self->threshold_bytes);
  if (status == SONDE_OK) status = config_service->get_f64(options, "share", &self->share);
  if (status != SONDE_OK) {
    free(self);
    return status;
  }
  pthread_mutex_lock(&instances_lock);
  self->next = instances;
  instances = self;
  pthread_mutex_unlock(&instances_lock);
  *out = self;
  return SONDE_OK;
}

// [control]
static sonde_status start(void *instance) {
  instance_t *const self = instance;
  const sonde_interest_t interest = {SONDE_SPACE_DEVICE, SONDE_LEVEL_RECORDS, (uint64_t)1 << SONDE_DEVICE_COPY};
  sonde_subscription_t subscription;
  memset(&subscription, 0, sizeof(subscription));
  subscription.struct_size = sizeof(subscription);
  subscription.name = ORIGIN;
  subscription.interests = &interest;
  subscription.interest_count = 1;
  subscription.on_batch = on_batch;
  subscription.user = self;
  return delivery_service->subscribe(self->session, &subscription, &self->subscription);
}

static sonde_value_t u64(uint64_t number) {
  sonde_value_t value = {SONDE_VALUE_U64, 0, 0, {0}};
  value.as.u64 = number;
  return value;
}

static sonde_value_t f64(double number) {
  sonde_value_t value = {SONDE_VALUE_F64, 0, 0, {0}};
  value.as.f64 = number;
  return value;
}

static sonde_value_t text(const char *words) {
  sonde_value_t value = {SONDE_VALUE_TEXT, 0, 0, {0}};
  value.count = strlen(words);
  value.as.text = words;
  return value;
}

static sonde_status publish_table(const instance_t *self) {
  static const sonde_column_spec_t columns[] = {
      {"direction", "", "what lies at the two ends of the copy", SONDE_VALUE_TEXT, SONDE_COLUMN_KEY},
      {"from", "bytes", "least size of the bucket", SONDE_VALUE_U64, SONDE_COLUMN_KEY},
      {"to", "bytes", "greatest size of the bucket", SONDE_VALUE_U64, 0},
      {"copies", "1", "copies of such a size", SONDE_VALUE_U64, 0},
      {"bytes", "bytes", "sum of their sizes", SONDE_VALUE_U64, 0},
  };
  static const sonde_table_spec_t spec = {
      sizeof(spec),
      sizeof(columns) / sizeof(columns[0]),
      ORIGIN,
      "sizes",
      "Copy sizes",
      "Copies by direction and size, in powers of two.",
      columns,
      sizeof(columns[0]),
      0,
  };
  sonde_table_t *table = NULL;
  sonde_status status = result_service->create_table(self->session, &spec, &table);
  for (uint32_t direction = 0; direction < DIRECTIONS && status == SONDE_OK; ++direction) {
    for (uint32_t bucket = 0; bucket < BUCKETS && status == SONDE_OK; ++bucket) {
      const bucket_t *const content = &self->buckets[direction][bucket];
      if (content->copies == 0) continue;
      const sonde_value_t row[] = {text(direction_names[direction]), u64(bucket_begin(bucket)),
                                   u64(bucket_last(bucket)), u64(content->copies), u64(content->bytes)};
      status = result_service->add_row(table, row, sizeof(row) / sizeof(row[0]));
    }
  }
  return status;
}

static sonde_status publish_finding(const instance_t *self) {
  const double part = self->copies == 0 ? 0 : (double)self->tiny / (double)self->copies;
  const sonde_evidence_t evidence[] = {
      {"tiny_copies", "1", u64(self->tiny)},
      {"copies", "1", u64(self->copies)},
      {"tiny_share", "1", f64(part)},
      {"threshold", "bytes", u64((uint64_t)self->threshold_bytes)},
  };
  sonde_finding_t finding;
  memset(&finding, 0, sizeof(finding));
  finding.struct_size = sizeof(finding);
  finding.origin = ORIGIN;
  finding.rule = "copy_sizes.tiny";
  finding.formula = "copies below threshold_bytes / copies > share";
  finding.confidence = 1;
  finding.sampling_scale = 1;
  if (self->copies == 0) {
    // "Could not look" is another answer than "nothing found".
    finding.verdict = SONDE_VERDICT_UNSUPPORTED;
    finding.message = "Copy sizes were not judged.";
    finding.reason = "the capture holds no copy";
  } else {
    finding.evidence = evidence;
    finding.evidence_count = sizeof(evidence) / sizeof(evidence[0]);
    finding.evidence_stride = sizeof(evidence[0]);
    if (part > self->share) {
      finding.verdict = SONDE_VERDICT_VIOLATION;
      finding.severity = SONDE_SEVERITY_WARNING;
      finding.message = "Most copies are so small that starting them costs more than moving their bytes.";
      finding.advice = "Gather small values into one buffer and copy that.";
    } else {
      finding.verdict = SONDE_VERDICT_OK;
      finding.message = "Copies are not mostly tiny.";
    }
  }
  return result_service->add_finding(self->session, &finding);
}

// [control]
static sonde_status finish(void *instance) {
  const sonde_status status = publish_table(instance);
  return status == SONDE_OK ? publish_finding(instance) : status;
}

// [control]
static void destroy(void *instance) {
  instance_t *const self = instance;
  // After this no on_batch of the instance runs. A session that has stopped ended it already, which is no fault.
  if (self->subscription != 0) (void)delivery_service->unsubscribe(self->session, self->subscription);
  pthread_mutex_lock(&instances_lock);
  for (instance_t **link = &instances; *link != NULL; link = &(*link)->next) {
    if (*link == self) {
      *link = self->next;
      break;
    }
  }
  pthread_mutex_unlock(&instances_lock);
  free(self);
}

// ---- A function for Lua, Python and the command line ----------------------------------------------------------------

// [any]
static sonde_status copy_count(sonde_session_t *session, uint64_t *out) {
  sonde_status status = SONDE_E_NOT_FOUND;
  pthread_mutex_lock(&instances_lock);
  for (const instance_t *self = instances; self != NULL; self = self->next) {
    if (self->session != session) continue;
    *out = __atomic_load_n(&self->copies, __ATOMIC_RELAXED);
    status = SONDE_OK;
    break;
  }
  pthread_mutex_unlock(&instances_lock);
  return status == SONDE_OK ? status : host->set_error(status, "copy_sizes_c: the session has no such analysis");
}

static const sonde_export_t exports[] = {
    SONDE_EXPORT(copy_count, status, (session, out_u64), "copies seen so far"),
};

// ---- The plugin -----------------------------------------------------------------------------------------------------

static const sonde_option_t options[] = {
    {"threshold_bytes", "4096", "a copy with fewer bytes is tiny", "bytes", "1..1099511627776", SONDE_OPTION_I64, 0},
    {"share", "0.5", "part of the copies that must be tiny to be reported", "1", "0..1", SONDE_OPTION_F64, 0},
};

// [control]
static sonde_status init(const sonde_host_t *given) {
  host = given;
  const void *service = NULL;
  // Each service is asked for as much of its table as is used here, so any host that has this much will do.
  sonde_status status = host->get_service(SONDE_CONFIG_SERVICE, SONDE_NEED(sonde_config_service_t, get_f64), &service);
  config_service = service;
  if (status == SONDE_OK) {
    status = host->get_service(SONDE_DELIVERY_SERVICE, SONDE_NEED(sonde_delivery_service_t, unsubscribe), &service);
    delivery_service = service;
  }
  if (status == SONDE_OK) {
    status = host->get_service(SONDE_RESULT_SERVICE, SONDE_NEED(sonde_result_service_t, add_finding), &service);
    result_service = service;
  }
  return status;
}

// [any]
static const void *get_interface(const char *id) {
  static const sonde_analysis_t analysis = {sizeof(analysis), 0, create, start, finish, destroy};
  return strcmp(id, SONDE_ANALYSIS_INTERFACE) == 0 ? &analysis : NULL;
}

SONDE_DEFINE_PLUGIN = {
    .struct_size = sizeof(sonde_plugin_entry_t),
    .abi_major = SONDE_ABI_MAJOR,
    .abi_minor_required = 0,
    .id = ORIGIN,
    .version = "1.0.0",
    .summary = "sizes of copies by direction (sample in C)",
    .license = "Apache-2.0",
    .exports = exports,
    .export_count = sizeof(exports) / sizeof(exports[0]),
    .export_stride = sizeof(exports[0]),
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_stride = sizeof(options[0]),
    .init = init,
    .shutdown = NULL,
    .get_interface = get_interface,
};
