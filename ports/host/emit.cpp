#include "emit.h"

#include <sonde/spaces/device.h>
#include <sonde/spaces/framework.h>
#include <sonde/spaces/memory.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sonde::host_port {

namespace {

uint64_t thread_id() {
  thread_local const auto id = static_cast<uint64_t>(::syscall(SYS_gettid));
  return id;
}

sonde_status intern(const char *text, sonde_string_t &out) {
  out = 0;
  return text == nullptr ? SONDE_OK : services().capture->intern(text, UINT64_MAX, &out);
}

// The session to emit into: the one given, or the current one of the process.
sonde_status find_session(sonde_session_t *&session) {
  return session != nullptr ? SONDE_OK : services().session->current(&session);
}

// Emits a record whose fields `fill` sets, if somebody wants its type.
template <typename Record, typename Fill>
sonde_status emit(sonde_session_t *session, uint32_t space, uint32_t type, Fill &&fill) {
  if (const sonde_status status = find_session(session); status != SONDE_OK) return status;
  const sonde_capture_service_t &capture = *services().capture;
  const uint64_t *demand = nullptr;
  if (const sonde_status status = capture.demand(session, space, &demand); status != SONDE_OK) return status;
  if (!sonde_wants(demand, type)) return SONDE_OK;
  Record record{};
  SONDE_RECORD_INIT(&record, space, type, sonde_stamp());
  if (const sonde_status status = fill(record); status != SONDE_OK) return status;
  return capture.emit(session, &record.header);
}

sonde_status emit_scope(sonde_session_t *session, uint32_t type, uint64_t id, const char *name, const char *domain) {
  return emit<sonde_framework_scope_t>(session, SONDE_SPACE_FRAMEWORK, type, [&](sonde_framework_scope_t &record) {
    record.scope = id;
    record.thread = thread_id();
    const sonde_status status = intern(name, record.name);
    return status != SONDE_OK ? status : intern(domain, record.domain);
  });
}

sonde_status emit_scope_end(sonde_session_t *session, uint32_t type, uint64_t id, const char *domain) {
  return emit<sonde_framework_scope_end_t>(session, SONDE_SPACE_FRAMEWORK, type,
                                           [&](sonde_framework_scope_end_t &record) {
                                             record.scope = id;
                                             record.thread = thread_id();
                                             return intern(domain, record.domain);
                                           });
}

sonde_status scope_push(sonde_session_t *session, const char *name, const char *domain) {
  return emit_scope(session, SONDE_FRAMEWORK_SCOPE_PUSH, 0, name, domain);
}

sonde_status scope_pop(sonde_session_t *session, const char *domain) {
  return emit_scope_end(session, SONDE_FRAMEWORK_SCOPE_POP, 0, domain);
}

sonde_status operator_begin(sonde_session_t *session, const char *name, uint64_t id) {
  return emit_scope(session, SONDE_FRAMEWORK_OPERATOR_BEGIN, id, name, "");
}

sonde_status operator_end(sonde_session_t *session, uint64_t id) {
  return emit_scope_end(session, SONDE_FRAMEWORK_OPERATOR_END, id, "");
}

sonde_status mark(sonde_session_t *session, const char *name, const char *domain) {
  return emit_scope(session, SONDE_FRAMEWORK_MARK, 0, name, domain);
}

sonde_status metric(sonde_session_t *session, const char *name, double value, const char *unit, uint32_t rule) {
  if (rule > 2) {
    return services().host->set_error(SONDE_E_RANGE, "metric: rule is 0 (inclusive), 1 (exclusive) or 2 (property)");
  }
  return emit<sonde_framework_metric_t>(session, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_METRIC,
                                        [&](sonde_framework_metric_t &record) {
                                          record.thread = thread_id();
                                          record.value = value;
                                          record.rule = rule;
                                          const sonde_status status = intern(name, record.name);
                                          return status != SONDE_OK ? status : intern(unit, record.unit);
                                        });
}

sonde_status allocate(sonde_session_t *session, uint64_t address, uint64_t bytes, const char *name) {
  return emit<sonde_memory_allocate_t>(session, SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE,
                                       [&](sonde_memory_allocate_t &record) {
                                         record.address = address;
                                         record.bytes = bytes;
                                         record.kind = SONDE_MEMORY_PAGEABLE;
                                         return intern(name, record.name);
                                       });
}

sonde_status release(sonde_session_t *session, uint64_t address) {
  return emit<sonde_memory_free_t>(session, SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, [&](sonde_memory_free_t &record) {
    record.address = address;
    record.kind = SONDE_MEMORY_PAGEABLE;
    return SONDE_OK;
  });
}

sonde_status kernel(sonde_session_t *session, const char *name, uint64_t begin, uint64_t end, uint64_t stream) {
  return emit<sonde_device_kernel_t>(session, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL,
                                     [&](sonde_device_kernel_t &record) {
                                       record.header.time = begin;
                                       record.end = end;
                                       record.stream = stream;
                                       return intern(name, record.name);
                                     });
}

sonde_status now(uint64_t *out) {
  *out = sonde_stamp();
  return SONDE_OK;
}

}  // namespace

const sonde_export_t kExports[] = {
    SONDE_EXPORT(scope_push, status, (session, text, text), "Begins a scope on this thread: name, domain"),
    SONDE_EXPORT(scope_pop, status, (session, text), "Ends the innermost scope of a domain on this thread"),
    SONDE_EXPORT(operator_begin, status, (session, text, u64), "Begins an operator: name, id (0: matched by order)"),
    SONDE_EXPORT(operator_end, status, (session, u64), "Ends the operator of an id"),
    SONDE_EXPORT(mark, status, (session, text, text), "Marks a moment: name, domain"),
    SONDE_EXPORT(metric, status, (session, text, f64, text, u32),
                 "A number of the open scope: name, value, unit, rule"),
    SONDE_EXPORT(allocate, status, (session, u64, u64, text), "A host allocation: address, bytes, name"),
    SONDE_EXPORT(release, status, (session, u64), "The end of a host allocation: address"),
    SONDE_EXPORT(kernel, status, (session, text, u64, u64, u64), "Host work as a kernel: name, begin, end, stream"),
    SONDE_EXPORT(now, status, (out_u64), "The stamp of this moment, for kernel"),
};
const uint32_t kExportCount = sizeof(kExports) / sizeof(kExports[0]);

}  // namespace sonde::host_port
