#include <cstring>

#include "module.h"

namespace sonde::python {

PyObject *error_class = nullptr;

PyObject *raise(sonde_status status) {
  PyObject *const arguments = Py_BuildValue("(Ni)", to_text(sonde_host()->last_error()), static_cast<int>(status));
  if (arguments != nullptr) {
    PyErr_SetObject(error_class, arguments);
    Py_DECREF(arguments);
  }
  return nullptr;
}

PyObject *to_text(const char *text) {
  if (text == nullptr) text = "";
  return PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::strlen(text)), "replace");
}

PyObject *to_object(const sonde_value_t &value) {
  switch (value.kind) {
    case SONDE_VALUE_I64:
      return PyLong_FromLongLong(value.as.i64);
    case SONDE_VALUE_U64:
      return PyLong_FromUnsignedLongLong(value.as.u64);
    case SONDE_VALUE_F64:
      return PyFloat_FromDouble(value.as.f64);
    case SONDE_VALUE_TEXT:
      return to_text(value.as.text);
    case SONDE_VALUE_BOOL:
      return PyBool_FromLong(value.as.u64 != 0);
    case SONDE_VALUE_BYTES:
      return PyBytes_FromStringAndSize(static_cast<const char *>(value.as.pointer),
                                       static_cast<Py_ssize_t>(value.count));
    default:
      Py_RETURN_NONE;
  }
}

}  // namespace sonde::python
