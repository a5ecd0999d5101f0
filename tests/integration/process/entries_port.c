// A port that takes every foreign entry, checks its arguments, and notes that it came.
#include <sonde/capture.h>
#include <sonde/plugin.h>
#include <sonde/port.h>
#include <sonde/spaces/framework.h>
#include <string.h>

static const sonde_capture_service_t *capture;
static sonde_session_t *current;
static int result_object;

static void mark(const char *name) {
  sonde_framework_scope_t record;
  memset(&record, 0, sizeof record);
  SONDE_RECORD_INIT(&record, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_MARK, sonde_stamp());
  capture->intern(name, UINT64_MAX, &record.name);
  // What plugins do is not captured, except what they submit.
  uint8_t *buffer = NULL;
  uint64_t stream = 0;
  if (capture->open_stream(current, "entries", SONDE_CLOCK_STAMP, &stream) != SONDE_OK) return;
  if (capture->acquire(current, stream, sizeof record, &buffer) == SONDE_OK) {
    memcpy(buffer, &record, sizeof record);
    capture->submit(current, stream, buffer, sizeof record, 0);
  }
  capture->close_stream(current, stream);
}

static sonde_status create(sonde_session_t *session, const sonde_config_t *options, void **instance) {
  (void)options;
  current = session;
  *instance = &current;
  return SONDE_OK;
}
static sonde_status nothing(void *instance) {
  (void)instance;
  return SONDE_OK;
}
static void destroy(void *instance) { (void)instance; }

struct rocprofiler_arguments {
  uint32_t version;
  const char *runtime_version;
  uint32_t priority;
  void *client;
  void *result;
};
struct layer_arguments {
  uint32_t target_entries;
  const void *target;
  uint32_t *entries_out;
  const void **layer_out;
};

static sonde_status entry(uint32_t which, void *argument) {
  if (which == SONDE_ENTRY_CUDA_INJECTION) {
    mark("cuda");
    return SONDE_OK;
  }
  if (which == SONDE_ENTRY_NVTX_INJECTION && argument == (void *)0x1234) {
    mark("nvtx");
    return SONDE_OK;
  }
  if (which == SONDE_ENTRY_ROCPROFILER) {
    struct rocprofiler_arguments *const given = argument;
    if (given->version != 7 || strcmp(given->runtime_version, "1.2") != 0 || given->priority != 3) return SONDE_E_USER;
    given->result = &result_object;
    mark("rocprofiler");
    return SONDE_OK;
  }
  if (which == SONDE_ENTRY_OPENCL_LAYER) {
    struct layer_arguments *const given = argument;
    if (strcmp(given->target, "target") != 0) return SONDE_E_USER;
    *given->entries_out = given->target_entries;
    mark("opencl");
    return SONDE_OK;
  }
  return SONDE_E_UNIMPLEMENTED;
}

static const sonde_port_t port = {sizeof(sonde_port_t), 0, create, nothing, NULL, NULL, nothing, destroy, entry};

static sonde_status init(const sonde_host_t *host) {
  const void *table = NULL;
  const sonde_status status = host->get_service(SONDE_CAPTURE_SERVICE, sizeof(sonde_capture_service_t), &table);
  capture = table;
  return status;
}

static const void *get_interface(const char *id) { return strcmp(id, SONDE_PORT_INTERFACE) == 0 ? &port : NULL; }

SONDE_DEFINE_PLUGIN = {
    .struct_size = sizeof(sonde_plugin_entry_t),
    .abi_major = SONDE_ABI_MAJOR,
    .id = "entries",
    .version = "1",
    .init = init,
    .get_interface = get_interface,
};
