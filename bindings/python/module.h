// What the parts of the extension share.
//
// The extension is written against Python's limited API (3.9), so one binary serves every later version. Host calls
// that can wait release the interpreter lock.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <sonde/sonde.h>

namespace sonde::python {

// A service of the host, looked up once; aborts the import when the library lacks it.
template <typename Service>
const Service *service(const char *id) {
  static const Service *const table = [id] {
    const void *found = nullptr;
    if (sonde_host()->get_service(id, sizeof(Service), &found) != SONDE_OK) Py_FatalError(sonde_host()->last_error());
    return static_cast<const Service *>(found);
  }();
  return table;
}

inline const sonde_session_service_t *sessions() { return service<sonde_session_service_t>(SONDE_SESSION_SERVICE); }
inline const sonde_capture_service_t *capture() { return service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE); }

// The exception class sonde.Error.
extern PyObject *error_class;

// Raises sonde.Error(text, status) with the host's error text; returns NULL for `return raise(status)`.
PyObject *raise(sonde_status status);

// New reference to text that may not be valid UTF-8: bad bytes become U+FFFD.
PyObject *to_text(const char *text);

// A table cell, an argument or a result as a Python object; None for an empty one.
PyObject *to_object(const sonde_value_t &value);

// Sessions travel as capsules; NULL with an exception for anything else or one that is closed.
PyObject *wrap_session(sonde_session_t *session);
sonde_session_t *unwrap_session(PyObject *capsule);

// True when somebody wants `type` of `space`.
bool wants(sonde_session_t *session, uint32_t space, uint32_t type);

sonde_string_t intern(const char *text);

// Emits a record. New reference: True when it was taken; a full ring is counted by the host and no error here.
PyObject *emit(sonde_session_t *session, const sonde_record_t *record);

// A type of a schema; NULL when there is none.
const sonde_record_type_t *type_numbered(const sonde_schema_t &schema, uint32_t number);
const sonde_record_type_t *type_named(const sonde_schema_t &schema, const char *name);

// The UTF-8 of a str; NULL with an exception for anything else. (PyUnicode_AsUTF8AndSize joined the limited API in
// 3.10.)
class Utf8 {
 public:
  explicit Utf8(PyObject *text) : bytes_(text == nullptr ? nullptr : PyUnicode_AsUTF8String(text)) {}
  ~Utf8() { Py_XDECREF(bytes_); }
  Utf8(Utf8 &&other) noexcept : bytes_(other.bytes_) { other.bytes_ = nullptr; }
  Utf8(const Utf8 &) = delete;
  Utf8 &operator=(const Utf8 &) = delete;
  const char *get() const { return bytes_ == nullptr ? nullptr : PyBytes_AsString(bytes_); }
  uint64_t size() const { return bytes_ == nullptr ? 0 : static_cast<uint64_t>(PyBytes_Size(bytes_)); }

 private:
  PyObject *bytes_;
};

extern PyMethodDef session_methods[];
extern PyMethodDef framework_methods[];
extern PyMethodDef record_methods[];
extern PyMethodDef run_methods[];
extern PyMethodDef result_methods[];
extern PyMethodDef reflect_methods[];

}  // namespace sonde::python
