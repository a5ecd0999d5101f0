// Results: tables as (specification, rows), findings and losses as dicts, reports as text.
#include <string>
#include <vector>

#include "module.h"

namespace sonde::python {
namespace {

const sonde_result_service_t *results() { return service<sonde_result_service_t>(SONDE_RESULT_SERVICE); }

const sonde_column_spec_t &column_of(const sonde_table_spec_t &spec, uint32_t index) {
  return *reinterpret_cast<const sonde_column_spec_t *>(reinterpret_cast<const uint8_t *>(spec.columns) +
                                                        static_cast<size_t>(index) * spec.column_stride);
}

PyObject *table_names(PyObject *, PyObject *capsule) {
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  uint64_t count = 0;
  if (const sonde_status status = results()->table_count(session, &count); status < 0) return raise(status);
  PyObject *const list = PyList_New(0);
  for (uint64_t i = 0; i < count && list != nullptr; ++i) {
    sonde_table_t *table = nullptr;
    const sonde_table_spec_t *spec = nullptr;
    if (results()->table_at(session, i, &table) < 0 || results()->table_spec(table, &spec) < 0) continue;
    PyObject *const pair = Py_BuildValue("(NN)", to_text(spec->origin), to_text(spec->name));
    PyList_Append(list, pair);
    Py_XDECREF(pair);
  }
  return list;
}

// read_table(session, origin, name) -> (title, [(column, unit, help)], [row tuples])
PyObject *read_table(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  const char *origin = nullptr;
  const char *name = nullptr;
  if (!PyArg_ParseTuple(arguments, "Oss", &capsule, &origin, &name)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  sonde_table_t *table = nullptr;
  const sonde_table_spec_t *spec = nullptr;
  uint64_t rows = 0;
  sonde_status status = results()->find_table(session, origin, name, &table);
  if (status >= 0) status = results()->table_spec(table, &spec);
  if (status >= 0) status = results()->row_count(table, &rows);
  if (status < 0) return raise(status);
  PyObject *const columns = PyList_New(0);
  for (uint32_t c = 0; c < spec->column_count; ++c) {
    const sonde_column_spec_t &column = column_of(*spec, c);
    PyObject *const triple = Py_BuildValue("(NNN)", to_text(column.name), to_text(column.unit), to_text(column.help));
    PyList_Append(columns, triple);
    Py_XDECREF(triple);
  }
  PyObject *const list = PyList_New(0);
  for (uint64_t r = 0; r < rows; ++r) {
    PyObject *const row = PyTuple_New(static_cast<Py_ssize_t>(spec->column_count));
    for (uint32_t c = 0; c < spec->column_count; ++c) {
      sonde_value_t value{};
      if (results()->cell(table, r, c, &value) < 0) value.kind = SONDE_VALUE_NONE;
      PyTuple_SetItem(row, static_cast<Py_ssize_t>(c), to_object(value));
    }
    PyList_Append(list, row);
    Py_DECREF(row);
  }
  return Py_BuildValue("(NNN)", to_text(spec->title), columns, list);
}

PyObject *findings(PyObject *, PyObject *capsule) {
  static const char *const kSeverities[] = {"note", "warning", "error"};
  static const char *const kVerdicts[] = {"violation", "ok", "unsupported"};
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  uint64_t count = 0;
  if (const sonde_status status = results()->finding_count(session, &count); status < 0) return raise(status);
  PyObject *const list = PyList_New(0);
  for (uint64_t i = 0; i < count; ++i) {
    const sonde_finding_t *finding = nullptr;
    if (results()->finding_at(session, i, &finding) < 0) continue;
    PyObject *const evidence = PyDict_New();
    for (uint32_t e = 0; e < finding->evidence_count; ++e) {
      const auto &item = *reinterpret_cast<const sonde_evidence_t *>(
          reinterpret_cast<const uint8_t *>(finding->evidence) + static_cast<size_t>(e) * finding->evidence_stride);
      PyObject *const key = to_text(item.name);
      PyObject *const value = Py_BuildValue("(NN)", to_object(item.value), to_text(item.unit));
      PyDict_SetItem(evidence, key, value);
      Py_XDECREF(key);
      Py_XDECREF(value);
    }
    PyObject *const entry = Py_BuildValue(
        "{s:N,s:N,s:s,s:s,s:N,s:N,s:N,s:N,s:N,s:I,s:N,s:d,s:d}", "origin", to_text(finding->origin), "rule",
        to_text(finding->rule), "severity", finding->severity < 3 ? kSeverities[finding->severity] : "unknown",
        "verdict", finding->verdict < 3 ? kVerdicts[finding->verdict] : "unknown", "message", to_text(finding->message),
        "advice", to_text(finding->advice), "reason", to_text(finding->reason), "kernel", to_text(finding->kernel),
        "file", to_text(finding->file), "line", finding->line, "evidence", evidence, "gain_seconds",
        finding->gain_seconds, "confidence", finding->confidence);
    PyList_Append(list, entry);
    Py_XDECREF(entry);
  }
  return list;
}

PyObject *losses(PyObject *, PyObject *capsule) {
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  uint64_t count = 0;
  if (const sonde_status status = sessions()->losses(session, nullptr, 0, &count); status < 0) return raise(status);
  std::vector<sonde_loss_t> rows(count);
  if (const sonde_status status = sessions()->losses(session, rows.data(), rows.size(), &count); status < 0)
    return raise(status);
  PyObject *const list = PyList_New(0);
  for (size_t i = 0; i < rows.size() && i < count; ++i) {
    const sonde_loss_t &row = rows[i];
    PyObject *const records = row.records == UINT64_MAX ? Py_BuildValue("") : PyLong_FromUnsignedLongLong(row.records);
    PyObject *const entry = Py_BuildValue("{s:I,s:K,s:I,s:N,s:K}", "source", row.source, "stream", row.stream, "cause",
                                          row.cause, "records", records, "bytes", row.bytes);
    PyList_Append(list, entry);
    Py_XDECREF(entry);
  }
  return list;
}

PyObject *report(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  const char *format = "text";
  const char *only = "";
  if (!PyArg_ParseTuple(arguments, "O|ss", &capsule, &format, &only)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  sonde_report_options_t options{};
  options.struct_size = sizeof(options);
  options.format = format;
  options.only = only;
  std::string text;
  const sonde_status status = service<sonde_report_service_t>(SONDE_REPORT_SERVICE)
                                  ->render(
                                      session, &options,
                                      [](void *user, const char *piece, uint64_t bytes) -> sonde_status {
                                        static_cast<std::string *>(user)->append(piece, bytes);
                                        return SONDE_OK;
                                      },
                                      &text);
  if (status < 0) return raise(status);
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

}  // namespace

PyMethodDef result_methods[] = {
    {"table_names", table_names, METH_O, "table_names(session) -> [(origin, name)]"},
    {"read_table", read_table, METH_VARARGS, "read_table(session, origin, name) -> (title, columns, rows)"},
    {"findings", findings, METH_O, "findings(session) -> [dict]"},
    {"losses", losses, METH_O, "losses(session) -> [dict]; records is None when unknown"},
    {"report", report, METH_VARARGS, "report(session, format='text', only='') -> str"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace sonde::python
