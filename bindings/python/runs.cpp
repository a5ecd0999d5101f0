// Runs: a session with its analyses from one configuration, live or replayed.
#include "module.h"

namespace sonde::python {
namespace {

constexpr const char *kCapsule = "sonde.run";

const sonde_run_service_t *runs() { return service<sonde_run_service_t>(SONDE_RUN_SERVICE); }
const sonde_config_service_t *configs() { return service<sonde_config_service_t>(SONDE_CONFIG_SERVICE); }

sonde_run_t *unwrap(PyObject *capsule) { return static_cast<sonde_run_t *>(PyCapsule_GetPointer(capsule, kCapsule)); }

PyObject *open_run(PyObject *, PyObject *arguments) {
  const char *yaml = "";
  const char *origin = "python";
  if (!PyArg_ParseTuple(arguments, "s|s", &yaml, &origin)) return nullptr;
  sonde_config_t *config = nullptr;
  sonde_status status = configs()->parse(yaml, origin, &config);
  if (status < 0) return raise(status);
  sonde_run_t *run = nullptr;
  status = runs()->open(config, &run);
  if (status < 0) {
    PyObject *const raised = raise(status);
    (void)configs()->release(config);
    return raised;
  }
  (void)configs()->release(config);
  return PyCapsule_New(run, kCapsule, nullptr);
}

template <typename Call>
PyObject *on_run(PyObject *capsule, Call &&call) {
  sonde_run_t *const run = unwrap(capsule);
  if (run == nullptr) return nullptr;
  sonde_status status = SONDE_OK;
  Py_BEGIN_ALLOW_THREADS;
  status = call(run);
  Py_END_ALLOW_THREADS;
  if (status < 0) return raise(status);
  Py_RETURN_NONE;
}

PyObject *start_run(PyObject *, PyObject *run) {
  return on_run(run, [](sonde_run_t *self) { return runs()->start(self); });
}

PyObject *finish_run(PyObject *, PyObject *run) {
  return on_run(run, [](sonde_run_t *self) { return runs()->finish(self); });
}

PyObject *close_run(PyObject *, PyObject *run) {
  return on_run(run, [](sonde_run_t *self) { return runs()->close(self); });
}

PyObject *replay_run(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  const char *path = nullptr;
  if (!PyArg_ParseTuple(arguments, "Os", &capsule, &path)) return nullptr;
  return on_run(capsule, [path](sonde_run_t *self) { return runs()->replay(self, path, nullptr, nullptr); });
}

PyObject *run_session(PyObject *, PyObject *capsule) {
  sonde_run_t *const run = unwrap(capsule);
  if (run == nullptr) return nullptr;
  sonde_session_t *session = nullptr;
  const sonde_status status = runs()->session(run, &session);
  return status < 0 ? raise(status) : wrap_session(session);
}

}  // namespace

PyMethodDef run_methods[] = {{"open_run", open_run, METH_VARARGS, "open_run(yaml, origin='python') -> run"},
                             {"start_run", start_run, METH_O, "start_run(run)"},
                             {"replay_run", replay_run, METH_VARARGS, "replay_run(run, path)"},
                             {"finish_run", finish_run, METH_O, "finish_run(run)"},
                             {"close_run", close_run, METH_O, "close_run(run)"},
                             {"run_session", run_session, METH_O, "run_session(run) -> session"},
                             {nullptr, nullptr, 0, nullptr}};

}  // namespace sonde::python
