// The module object: sonde._sonde.
#include "module.h"

#include <vector>

namespace sonde::python {
namespace {

PyObject *version(PyObject *, PyObject *) {
  const uint32_t number = sonde_version();
  return PyUnicode_FromFormat("%u.%u.%u", number / 1000000, number / 1000 % 1000, number % 1000);
}

PyMethodDef module_methods[] = {{"version", version, METH_NOARGS, "version() -> str: of the library"},
                                {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "_sonde",
                          "Sessions, events, runs and results of the Sonde SDK",
                          -1,
                          module_methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace sonde::python

PyMODINIT_FUNC PyInit__sonde(void) {
  using namespace sonde::python;
  PyObject *const module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  error_class = PyErr_NewExceptionWithDoc("sonde.Error", "A call into Sonde failed: args are the text and the status.",
                                          nullptr, nullptr);
  if (error_class == nullptr || PyModule_AddObject(module, "Error", error_class) < 0) return nullptr;
  for (PyMethodDef *methods :
       {session_methods, framework_methods, record_methods, run_methods, result_methods, reflect_methods}) {
    if (PyModule_AddFunctions(module, methods) < 0) return nullptr;
  }
  return module;
}
