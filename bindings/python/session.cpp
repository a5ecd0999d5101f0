// Sessions and emitting: scopes, operators, marks, metrics, allocations and host kernels.
#include <sonde/spaces/device.h>
#include <sonde/spaces/framework.h>
#include <sonde/spaces/memory.h>
#include <unistd.h>

#include "module.h"

namespace sonde::python {
namespace {

constexpr const char *kCapsule = "sonde.session";

PyObject *open_session(PyObject *, PyObject *arguments, PyObject *keywords) {
  static const char *names[] = {"ring_bytes", "memory_cap", "name", nullptr};
  unsigned long long ring = 0;
  unsigned long long cap = 0;
  const char *name = nullptr;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|KKz", const_cast<char **>(names), &ring, &cap, &name))
    return nullptr;
  sonde_session_options_t options{};
  options.struct_size = sizeof(options);
  options.ring_bytes = ring;
  options.memory_cap = cap;
  options.name = name;
  sonde_session_t *session = nullptr;
  const sonde_status status = sessions()->open(&options, &session);
  return status < 0 ? raise(status) : wrap_session(session);
}

PyObject *current_session(PyObject *, PyObject *) {
  sonde_session_t *session = nullptr;
  if (sessions()->current(&session) < 0) Py_RETURN_NONE;
  return wrap_session(session);
}

// start, stop, flush and close have one shape.
template <typename Call>
PyObject *on_session(PyObject *capsule, Call &&call) {
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  sonde_status status = SONDE_OK;
  Py_BEGIN_ALLOW_THREADS;
  status = call(session);
  Py_END_ALLOW_THREADS;
  if (status < 0) return raise(status);
  Py_RETURN_NONE;
}

PyObject *start(PyObject *, PyObject *session) {
  return on_session(session, [](sonde_session_t *self) { return sessions()->start(self); });
}

PyObject *flush(PyObject *, PyObject *session) {
  return on_session(session, [](sonde_session_t *self) { return sessions()->flush(self, 0); });
}

PyObject *stop(PyObject *, PyObject *session) {
  return on_session(session, [](sonde_session_t *self) { return sessions()->stop(self, 0); });
}

PyObject *close(PyObject *, PyObject *session) {
  return on_session(session, [](sonde_session_t *self) { return sessions()->close(self); });
}

PyObject *set_current(PyObject *, PyObject *session) {
  if (session == Py_None) {
    (void)sessions()->set_current(nullptr);
    Py_RETURN_NONE;
  }
  return on_session(session, [](sonde_session_t *self) { return sessions()->set_current(self); });
}

PyObject *status_of(PyObject *, PyObject *capsule) {
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  sonde_session_status_t status{};
  const sonde_status result = sessions()->status(session, &status);
  if (result < 0) return raise(result);
  return Py_BuildValue("{s:I,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "state", status.state, "records", status.records, "bytes",
                       status.bytes, "batches", status.batches, "lost_records", status.lost_records, "memory",
                       status.memory, "memory_peak", status.memory_peak, "streams", status.streams);
}

// begin(session, type, name, domain, scope, category): a scope, operator, range or mark.
PyObject *emit_begin(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  unsigned int type = 0;
  const char *name = nullptr;
  const char *domain = "";
  unsigned long long scope = 0;
  const char *category = "";
  if (!PyArg_ParseTuple(arguments, "OIs|sKs", &capsule, &type, &name, &domain, &scope, &category)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  if (!wants(session, SONDE_SPACE_FRAMEWORK, type & 63)) Py_RETURN_FALSE;
  sonde_framework_scope_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_FRAMEWORK, type, sonde_stamp());
  record.scope = scope;
  record.thread = static_cast<uint64_t>(::gettid());
  record.name = intern(name);
  record.domain = intern(domain);
  record.category = intern(category);
  return emit(session, &record.header);
}

PyObject *emit_end(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  unsigned int type = 0;
  const char *domain = "";
  unsigned long long scope = 0;
  if (!PyArg_ParseTuple(arguments, "OI|sK", &capsule, &type, &domain, &scope)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  if (!wants(session, SONDE_SPACE_FRAMEWORK, type & 63)) Py_RETURN_FALSE;
  sonde_framework_scope_end_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_FRAMEWORK, type, sonde_stamp());
  record.scope = scope;
  record.thread = static_cast<uint64_t>(::gettid());
  record.domain = intern(domain);
  return emit(session, &record.header);
}

PyObject *emit_metric(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  const char *name = nullptr;
  double value = 0;
  const char *unit = "";
  unsigned int rule = 0;
  if (!PyArg_ParseTuple(arguments, "Osd|sI", &capsule, &name, &value, &unit, &rule)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  if (rule > 2) {
    PyErr_SetString(PyExc_ValueError, "rule is 0 (inclusive), 1 (exclusive) or 2 (property)");
    return nullptr;
  }
  if (!wants(session, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_METRIC)) Py_RETURN_FALSE;
  sonde_framework_metric_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_METRIC, sonde_stamp());
  record.thread = static_cast<uint64_t>(::gettid());
  record.value = value;
  record.name = intern(name);
  record.unit = intern(unit);
  record.rule = rule;
  return emit(session, &record.header);
}

PyObject *emit_allocate(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  unsigned long long address = 0;
  unsigned long long bytes = 0;
  unsigned int kind = SONDE_MEMORY_UNKNOWN;
  unsigned int device = 0;
  const char *name = "";
  if (!PyArg_ParseTuple(arguments, "OKK|IIs", &capsule, &address, &bytes, &kind, &device, &name)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  if (!wants(session, SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE)) Py_RETURN_FALSE;
  sonde_memory_allocate_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, sonde_stamp());
  record.address = address;
  record.bytes = bytes;
  record.kind = kind;
  record.device = device;
  record.name = intern(name);
  return emit(session, &record.header);
}

PyObject *emit_free(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  unsigned long long address = 0;
  unsigned int kind = SONDE_MEMORY_UNKNOWN;
  unsigned int device = 0;
  if (!PyArg_ParseTuple(arguments, "OK|II", &capsule, &address, &kind, &device)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  if (!wants(session, SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE)) Py_RETURN_FALSE;
  sonde_memory_free_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, sonde_stamp());
  record.address = address;
  record.kind = kind;
  record.device = device;
  return emit(session, &record.header);
}

// A "kernel" that the program timed itself, in sonde.stamp() units.
PyObject *emit_kernel(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  const char *name = nullptr;
  unsigned long long begin = 0;
  unsigned long long end = 0;
  unsigned int device = 0;
  unsigned long long stream = 0;
  if (!PyArg_ParseTuple(arguments, "OsKK|IK", &capsule, &name, &begin, &end, &device, &stream)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  if (!wants(session, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL)) Py_RETURN_FALSE;
  sonde_device_kernel_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, begin);
  record.end = end;
  record.name = intern(name);
  record.device = device;
  record.stream = stream;
  for (int i = 0; i < 3; ++i) record.grid[i] = record.block[i] = 1;
  return emit(session, &record.header);
}

PyObject *stamp(PyObject *, PyObject *) { return PyLong_FromUnsignedLongLong(sonde_stamp()); }

}  // namespace

bool wants(sonde_session_t *session, uint32_t space, uint32_t type) {
  const uint64_t *demand = nullptr;
  return capture()->demand(session, space, &demand) == SONDE_OK && sonde_wants(demand, type) != 0;
}

sonde_string_t intern(const char *text) {
  sonde_string_t id = 0;
  (void)capture()->intern(text, UINT64_MAX, &id);
  return id;
}

PyObject *emit(sonde_session_t *session, const sonde_record_t *record) {
  const sonde_status status = capture()->emit(session, record);
  if (status < 0 && status != SONDE_E_FULL) return raise(status);
  return PyBool_FromLong(status == SONDE_OK);
}

PyObject *wrap_session(sonde_session_t *session) { return PyCapsule_New(session, kCapsule, nullptr); }

sonde_session_t *unwrap_session(PyObject *capsule) {
  return static_cast<sonde_session_t *>(PyCapsule_GetPointer(capsule, kCapsule));
}

PyMethodDef session_methods[] = {
    {"open_session", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(open_session)),
     METH_VARARGS | METH_KEYWORDS, "open_session(ring_bytes=0, memory_cap=0, name=None) -> session"},
    {"current_session", current_session, METH_NOARGS, "current_session() -> session or None"},
    {"set_current", set_current, METH_O, "set_current(session or None)"},
    {"start", start, METH_O, "start(session)"},
    {"flush", flush, METH_O, "flush(session)"},
    {"stop", stop, METH_O, "stop(session)"},
    {"close", close, METH_O, "close(session)"},
    {"status", status_of, METH_O, "status(session) -> dict"},
    {"emit_begin", emit_begin, METH_VARARGS,
     "emit_begin(session, type, name, domain='', scope=0, category='') -> bool"},
    {"emit_end", emit_end, METH_VARARGS, "emit_end(session, type, domain='', scope=0) -> bool"},
    {"emit_metric", emit_metric, METH_VARARGS, "emit_metric(session, name, value, unit='', rule=0) -> bool"},
    {"emit_allocate", emit_allocate, METH_VARARGS,
     "emit_allocate(session, address, bytes, kind=0, device=0, name='') -> bool"},
    {"emit_free", emit_free, METH_VARARGS, "emit_free(session, address, kind=0, device=0) -> bool"},
    {"emit_kernel", emit_kernel, METH_VARARGS, "emit_kernel(session, name, begin, end, device=0, stream=0) -> bool"},
    {"stamp", stamp, METH_NOARGS, "stamp() -> int: the raw clock of records"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace sonde::python
