// Calling functions that plugins publish, by name, through sonde.reflect/1.
#include <string>
#include <vector>

#include "module.h"

namespace sonde::python {
namespace {

const sonde_plugins_service_t *plugins() { return service<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE); }
const sonde_reflect_service_t *reflection() { return service<sonde_reflect_service_t>(SONDE_REFLECT_SERVICE); }

// Arguments of one call; owns what the values point to.
struct Arguments {
  std::vector<sonde_value_t> values;
  std::vector<std::vector<int64_t>> integers;
  std::vector<std::vector<double>> doubles;
  std::vector<Utf8> texts;
};

bool read_list(PyObject *object, const sonde_parameter_t &parameter, sonde_value_t &value, Arguments &arguments) {
  const Py_ssize_t count = PySequence_Size(object);
  if (count < 0) return false;
  const bool integral = parameter.kind == SONDE_VALUE_I64S;
  auto &integers = arguments.integers.emplace_back();
  auto &doubles = arguments.doubles.emplace_back();
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *const item = PySequence_GetItem(object, i);
    if (item == nullptr) return false;
    if (integral) {
      integers.push_back(PyLong_AsLongLong(item));
    } else {
      doubles.push_back(PyFloat_AsDouble(item));
    }
    Py_DECREF(item);
    if (PyErr_Occurred() != nullptr) return false;
  }
  value.count = static_cast<uint64_t>(count);
  value.as.pointer = integral ? static_cast<const void *>(integers.data()) : doubles.data();
  return true;
}

bool read_argument(PyObject *object, const sonde_parameter_t &parameter, Arguments &arguments) {
  sonde_value_t value{};
  value.kind = parameter.kind;
  switch (parameter.kind) {
    case SONDE_VALUE_I64:
      value.as.i64 = PyLong_AsLongLong(object);
      break;
    case SONDE_VALUE_U64:
      value.as.u64 = PyLong_AsUnsignedLongLong(object);
      break;
    case SONDE_VALUE_F64:
      value.as.f64 = PyFloat_AsDouble(object);
      break;
    case SONDE_VALUE_TEXT: {
      const Utf8 &text = arguments.texts.emplace_back(object);
      value.as.text = text.get();
      value.count = text.size();
      break;
    }
    case SONDE_VALUE_BYTES: {
      char *data = nullptr;
      Py_ssize_t bytes = 0;
      if (PyBytes_AsStringAndSize(object, &data, &bytes) < 0) return false;
      value.as.pointer = data;
      value.count = static_cast<uint64_t>(bytes);
      break;
    }
    case SONDE_VALUE_I64S:
    case SONDE_VALUE_F64S:
      if (!read_list(object, parameter, value, arguments)) return false;
      break;
    case SONDE_VALUE_HANDLE:
      value.as.pointer = unwrap_session(object);
      break;
    default:
      PyErr_SetString(PyExc_TypeError, "functions with callbacks cannot be called from Python yet");
      return false;
  }
  if (PyErr_Occurred() != nullptr) return false;
  arguments.values.push_back(value);
  return true;
}

// call(plugin, function, *arguments): a result, a tuple of several, or None.
PyObject *call(PyObject *, PyObject *all) {
  const Py_ssize_t given = PyTuple_Size(all);
  if (given < 2) {
    PyErr_SetString(PyExc_TypeError, "call(plugin, function, *arguments)");
    return nullptr;
  }
  const Utf8 plugin_text(PyTuple_GetItem(all, 0));
  const Utf8 function_text(PyTuple_GetItem(all, 1));
  const char *const plugin = plugin_text.get();
  const char *const function = function_text.get();
  if (plugin == nullptr || function == nullptr) return nullptr;
  const sonde_plugin_entry_t *entry = nullptr;
  sonde_export_t exported{};
  const sonde_signature_t *signature = nullptr;
  sonde_status status = plugins()->load(plugin, &entry);
  if (status >= 0) status = plugins()->function(plugin, function, &exported);
  if (status >= 0) status = reflection()->prepare(exported.signature, &signature);
  if (status < 0) return raise(status);
  Arguments arguments;
  Py_ssize_t next = 2;
  for (uint64_t i = 0;; ++i) {
    sonde_parameter_t parameter{};
    parameter.struct_size = sizeof(parameter);
    if (reflection()->parameter(signature, i, &parameter) < 0) break;
    if (parameter.is_out != 0) continue;
    if (next >= given) {
      PyErr_Format(PyExc_TypeError, "%s.%s%s: too few arguments", plugin, function, exported.signature);
      return nullptr;
    }
    if (!read_argument(PyTuple_GetItem(all, next++), parameter, arguments)) return nullptr;
  }
  if (next != given) {
    PyErr_Format(PyExc_TypeError, "%s.%s%s: too many arguments", plugin, function, exported.signature);
    return nullptr;
  }
  sonde_value_t results[16] = {};
  uint64_t count = 0;
  status = reflection()->call(signature, exported.function, arguments.values.data(), arguments.values.size(), results,
                              16, &count);
  if (status < 0) return raise(status);
  if (count == 0) Py_RETURN_NONE;
  if (count == 1) return to_object(results[0]);
  PyObject *const tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
  for (uint64_t i = 0; i < count; ++i) PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), to_object(results[i]));
  return tuple;
}

PyObject *list_plugins(PyObject *, PyObject *) {
  uint64_t count = 0;
  if (const sonde_status status = plugins()->count(&count); status < 0) return raise(status);
  PyObject *const list = PyList_New(0);
  for (uint64_t i = 0; i < count; ++i) {
    sonde_plugin_info_t info{};
    info.struct_size = sizeof(info);
    if (plugins()->at(i, &info) < 0) continue;
    PyObject *const functions = PyDict_New();
    for (uint32_t f = 0; f < info.export_count; ++f) {
      const char *name = nullptr;
      const char *signature = nullptr;
      const char *help = nullptr;
      if (plugins()->export_at(info.id, f, &name, &signature, &help) < 0) continue;
      PyObject *const value = Py_BuildValue("(NN)", to_text(signature), to_text(help));
      PyDict_SetItemString(functions, name, value);
      Py_XDECREF(value);
    }
    PyObject *const entry =
        Py_BuildValue("{s:N,s:N,s:N,s:N,s:N,s:N}", "id", to_text(info.id), "version", to_text(info.version), "summary",
                      to_text(info.summary), "interfaces", to_text(info.interfaces), "problem", to_text(info.problem),
                      "functions", functions);
    PyList_Append(list, entry);
    Py_XDECREF(entry);
  }
  return list;
}

PyObject *add_plugin_path(PyObject *, PyObject *path) {
  const Utf8 text(path);
  if (text.get() == nullptr) return nullptr;
  const sonde_status status = plugins()->add_path(text.get());
  if (status < 0) return raise(status);
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef reflect_methods[] = {{"call", call, METH_VARARGS, "call(plugin, function, *arguments)"},
                                 {"list_plugins", list_plugins, METH_NOARGS, "list_plugins() -> [dict]"},
                                 {"add_plugin_path", add_plugin_path, METH_O, "add_plugin_path(path)"},
                                 {nullptr, nullptr, 0, nullptr}};

}  // namespace sonde::python
