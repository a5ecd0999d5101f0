// Emitting for the framework adapters: compilations, generated kernels and notes; and the addresses that a native
// adapter starts from.
#include <sonde/spaces/framework.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "module.h"

namespace sonde::python {
namespace {

// emit_compile(session, kind, name, reason, file, line, id, attempt, begin, end) -> bool
PyObject *emit_compile(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  unsigned int kind = 0;
  const char *name = nullptr;
  const char *reason = nullptr;
  const char *file = nullptr;
  unsigned int line = 0;
  const char *id = nullptr;
  unsigned int attempt = 0;
  unsigned long long begin = 0;
  unsigned long long end = 0;
  if (!PyArg_ParseTuple(arguments, "OIsssIsIKK", &capsule, &kind, &name, &reason, &file, &line, &id, &attempt, &begin,
                        &end))
    return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  if (!wants(session, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_COMPILE)) Py_RETURN_FALSE;
  sonde_framework_compile_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_COMPILE, begin);
  record.end = end;
  record.thread = static_cast<uint64_t>(::gettid());
  record.kind = kind;
  record.name = intern(name);
  record.reason = intern(reason);
  record.file = intern(file);
  record.line = line;
  record.id = intern(id);
  record.attempt = attempt;
  return emit(session, &record.header);
}

bool read_texts(PyObject *list, std::vector<sonde_string_t> &ids) {
  const Py_ssize_t count = PySequence_Size(list);
  if (count < 0) return false;
  for (Py_ssize_t i = 0; i < count && i < 4096; ++i) {
    PyObject *const item = PySequence_GetItem(list, i);
    const Utf8 text(item);
    Py_XDECREF(item);
    if (text.get() == nullptr) return false;
    ids.push_back(intern(text.get()));
  }
  return true;
}

// emit_compiled_kernel(session, name, id, operators, sources) -> bool
PyObject *emit_compiled_kernel(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  const char *name = nullptr;
  const char *id = nullptr;
  PyObject *operators = nullptr;
  PyObject *sources = nullptr;
  if (!PyArg_ParseTuple(arguments, "OssOO", &capsule, &name, &id, &operators, &sources)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  if (!wants(session, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_COMPILED_KERNEL)) Py_RETURN_FALSE;
  std::vector<sonde_string_t> operator_ids;
  std::vector<sonde_string_t> source_ids;
  if (!read_texts(operators, operator_ids) || !read_texts(sources, source_ids)) return nullptr;
  sonde_framework_compiled_kernel_t record{};
  const auto padded = [](size_t count) { return static_cast<uint32_t>((count * sizeof(sonde_string_t) + 7) / 8 * 8); };
  const uint32_t first = sizeof(record);
  const uint32_t second = first + padded(operator_ids.size());
  std::vector<uint64_t> room((second + padded(source_ids.size())) / 8);
  SONDE_RECORD_INIT(&record, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_COMPILED_KERNEL, sonde_stamp());
  record.header.size8 = static_cast<uint16_t>(room.size());
  record.thread = static_cast<uint64_t>(::gettid());
  record.name = intern(name);
  record.id = intern(id);
  if (!operator_ids.empty()) record.operators = {first, static_cast<uint32_t>(operator_ids.size())};
  if (!source_ids.empty()) record.sources = {second, static_cast<uint32_t>(source_ids.size())};
  auto *const bytes = reinterpret_cast<uint8_t *>(room.data());
  std::memcpy(bytes, &record, sizeof(record));
  std::memcpy(bytes + first, operator_ids.data(), operator_ids.size() * sizeof(sonde_string_t));
  std::memcpy(bytes + second, source_ids.data(), source_ids.size() * sizeof(sonde_string_t));
  return emit(session, reinterpret_cast<const sonde_record_t *>(bytes));
}

// stamp_before(session, stamp, ns) -> int: the stamp that many ns earlier, by the session's clock.
PyObject *stamp_before(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  unsigned long long stamp = 0;
  unsigned long long ns = 0;
  if (!PyArg_ParseTuple(arguments, "OKK", &capsule, &stamp, &ns)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  sonde_clock_t clock{};
  clock.struct_size = sizeof(clock);
  if (const sonde_status status = capture()->clock(session, SONDE_CLOCK_STAMP, &clock); status < 0)
    return raise(status);
  if (clock.multiplier == 0) return PyLong_FromUnsignedLongLong(stamp);
  const auto raw = static_cast<unsigned long long>((static_cast<sonde_wide_t>(ns) << clock.shift) / clock.multiplier);
  return PyLong_FromUnsignedLongLong(raw < stamp ? stamp - raw : 0);
}

// note(session, severity, origin, text); severity: 0 info, 1 warning, 2 error, 3 no data
PyObject *note(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  unsigned int severity = 0;
  const char *origin = nullptr;
  const char *text = nullptr;
  if (!PyArg_ParseTuple(arguments, "OIss", &capsule, &severity, &origin, &text)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  const sonde_status status = capture()->note(session, severity, origin, text);
  if (status < 0) return raise(status);
  Py_RETURN_NONE;
}

PyObject *host_address(PyObject *, PyObject *) { return PyLong_FromVoidPtr(const_cast<sonde_host_t *>(sonde_host())); }

PyObject *session_address(PyObject *, PyObject *capsule) {
  sonde_session_t *const session = unwrap_session(capsule);
  return session == nullptr ? nullptr : PyLong_FromVoidPtr(session);
}

}  // namespace

PyMethodDef framework_methods[] = {
    {"emit_compile", emit_compile, METH_VARARGS,
     "emit_compile(session, kind, name, reason, file, line, id, attempt, begin, end) -> bool"},
    {"emit_compiled_kernel", emit_compiled_kernel, METH_VARARGS,
     "emit_compiled_kernel(session, name, id, operators, sources) -> bool"},
    {"stamp_before", stamp_before, METH_VARARGS, "stamp_before(session, stamp, ns) -> int"},
    {"note", note, METH_VARARGS, "note(session, severity, origin, text)"},
    {"host_address", host_address, METH_NOARGS, "host_address() -> int: of the host table"},
    {"session_address", session_address, METH_O, "session_address(session) -> int"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace sonde::python
