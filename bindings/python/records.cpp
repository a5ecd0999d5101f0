// Records as Python objects: a collector subscribes to a session, keeps what it is asked for, and turns it into dicts by
// the schema of each type.
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "module.h"

namespace sonde::python {
namespace {

constexpr const char *kCapsule = "sonde.collector";

const sonde_delivery_service_t *delivery() { return service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE); }

// The kept records of one batch, with what is needed to read them.
struct Piece {
  uint32_t source;
  sonde_clock_t clock;
  std::vector<uint8_t> data;
  std::vector<sonde_repair_t> repairs;  // offsets into `data`
};

// Filled by the delivery thread, read after the session stopped.
struct Collector {
  std::mutex mutex;
  std::vector<Piece> pieces;
  uint64_t wanted[SONDE_SPACE_COUNT] = {};  // bit t: type t
  uint64_t limit = 0;                       // bytes
  uint64_t bytes = 0;
  uint64_t left_out = 0;  // records beyond the limit

  void add(const sonde_batch_t &batch) {
    const std::lock_guard<std::mutex> lock(mutex);
    Piece piece{batch.source, *batch.clock, {}, {}};
    uint64_t repair = 0;
    for (const sonde_record_t *record = sonde_batch_next(&batch, nullptr); record != nullptr;
         record = sonde_batch_next(&batch, record)) {
      const auto offset = static_cast<uint64_t>(reinterpret_cast<const uint8_t *>(record) - batch.data);
      while (repair < batch.repair_count && batch.repairs[repair].offset < offset) ++repair;
      if (record->space >= SONDE_SPACE_COUNT || ((wanted[record->space] >> record->type) & 1) == 0) continue;
      const uint32_t size = SONDE_RECORD_BYTES(record);
      if (bytes + size > limit) {
        ++left_out;
        continue;
      }
      if (repair < batch.repair_count && batch.repairs[repair].offset == offset) {
        piece.repairs.push_back(batch.repairs[repair]);
        piece.repairs.back().offset = piece.data.size();
      }
      const auto *const first = reinterpret_cast<const uint8_t *>(record);
      piece.data.insert(piece.data.end(), first, first + size);
      bytes += size;
    }
    if (!piece.data.empty()) pieces.push_back(std::move(piece));
  }
};

// The capsule and the subscription share it: either may end first.
using Shared = std::shared_ptr<Collector>;

Collector *unwrap(PyObject *capsule) {
  auto *const shared = static_cast<Shared *>(PyCapsule_GetPointer(capsule, kCapsule));
  return shared == nullptr ? nullptr : shared->get();
}

void drop_capsule(PyObject *capsule) { delete static_cast<Shared *>(PyCapsule_GetPointer(capsule, kCapsule)); }

// collect(session, {space name: [type names] or None}, limit) -> collector
PyObject *collect(PyObject *, PyObject *arguments) {
  PyObject *capsule = nullptr;
  PyObject *spaces = nullptr;
  unsigned long long limit = 0;
  if (!PyArg_ParseTuple(arguments, "OO!K", &capsule, &PyDict_Type, &spaces, &limit)) return nullptr;
  sonde_session_t *const session = unwrap_session(capsule);
  if (session == nullptr) return nullptr;
  auto collector = std::make_shared<Collector>();
  collector->limit = limit;
  std::vector<sonde_interest_t> interests;
  PyObject *key = nullptr;
  PyObject *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(spaces, &at, &key, &value) != 0;) {
    const Utf8 name(key);
    if (name.get() == nullptr) return nullptr;
    uint32_t space = 0;
    const sonde_schema_t *schema = nullptr;
    sonde_status status = capture()->find_space(name.get(), &space);
    if (status >= 0) status = capture()->schema(space, &schema);
    if (status < 0) return raise(status);
    uint64_t types = value == Py_None ? UINT64_MAX : 0;
    for (Py_ssize_t i = 0; value != Py_None; ++i) {
      PyObject *const item = PySequence_GetItem(value, i);
      if (item == nullptr) {
        if (PyErr_ExceptionMatches(PyExc_IndexError) == 0) return nullptr;
        PyErr_Clear();
        break;
      }
      const Utf8 wanted(item);
      Py_DECREF(item);
      if (wanted.get() == nullptr) return nullptr;
      const sonde_record_type_t *const type = type_named(*schema, wanted.get());
      if (type == nullptr) {
        PyErr_Format(PyExc_KeyError, "space %s has no record type %s", name.get(), wanted.get());
        return nullptr;
      }
      types |= 1ull << type->type;
    }
    collector->wanted[space] = types;
    interests.push_back({space, SONDE_LEVEL_RECORDS, types});
  }
  sonde_subscription_t subscription{};
  subscription.struct_size = sizeof(subscription);
  subscription.queue_policy = SONDE_QUEUE_WAIT;
  subscription.name = "python";
  subscription.interests = interests.data();
  subscription.interest_count = static_cast<uint32_t>(interests.size());
  subscription.on_batch = [](void *user, const sonde_batch_t *batch) -> sonde_status {
    try {
      (*static_cast<Shared *>(user))->add(*batch);
      return SONDE_OK;
    } catch (...) {
      return SONDE_E_FULL;
    }
  };
  subscription.user = new Shared(collector);
  subscription.drop_user = [](void *user) { delete static_cast<Shared *>(user); };
  uint64_t number = 0;
  if (const sonde_status status = delivery()->subscribe(session, &subscription, &number); status < 0)
    return raise(status);
  return PyCapsule_New(new Shared(collector), kCapsule, drop_capsule);
}

// Builds dicts; names of fields and texts are made once.
class Reader {
 public:
  explicit Reader(sonde_session_t *session) : session_(session) {}
  ~Reader() {
    for (auto &[key, text] : texts_) Py_XDECREF(text);
    for (auto &[name, key] : names_) Py_XDECREF(key);
  }

  // New reference, NULL with an exception.
  PyObject *read(const Piece &piece, const sonde_record_t &record, const sonde_repair_t *repair) {
    const sonde_schema_t *schema = nullptr;
    if (capture()->schema(record.space, &schema) < 0) return raise(SONDE_E_NOT_FOUND);
    const sonde_record_type_t *const type = type_numbered(*schema, record.type);
    PyObject *const dict = PyDict_New();
    if (dict == nullptr) return nullptr;
    set(dict, "space", to_text(schema->space));
    if (type == nullptr) {
      set(dict, "type", PyLong_FromLong(record.type));
      return dict;
    }
    set(dict, "type", to_text(type->name));
    set(dict, "source", PyLong_FromUnsignedLong(piece.source));
    set(dict, "stamp", PyLong_FromUnsignedLongLong(record.time));
    const uint64_t begin = repair == nullptr ? record.time : repair->begin;
    set(dict, "time_ns", PyLong_FromLongLong(sonde_clock_ns(&piece.clock, begin)));
    if (repair != nullptr) set(dict, "repair", PyLong_FromUnsignedLong(repair->reason));
    for (uint32_t i = 0; i < type->field_count; ++i) {
      const auto &field = *reinterpret_cast<const sonde_field_t *>(reinterpret_cast<const uint8_t *>(type->fields) +
                                                                   static_cast<size_t>(i) * type->field_stride);
      set(dict, field.name, value_of(piece, record, field, repair));
    }
    if (PyErr_Occurred() != nullptr) {
      Py_DECREF(dict);
      return nullptr;
    }
    return dict;
  }

 private:
  void set(PyObject *dict, const char *name, PyObject *value) {
    if (value == nullptr) return;  // the exception is seen at the end
    PyObject *&key = names_[name];
    if (key == nullptr) key = PyUnicode_InternFromString(name);
    if (key != nullptr) PyDict_SetItem(dict, key, value);
    Py_DECREF(value);
  }

  PyObject *text(uint32_t source, sonde_string_t id) {
    PyObject *&known = texts_[static_cast<uint64_t>(source) << 32 | id];
    if (known == nullptr) {
      const char *found = "";
      if (id != 0 && capture()->text(session_, source, id, &found) < 0) found = "";
      known = to_text(found);
    }
    Py_XINCREF(known);
    return known;
  }

  static uint64_t unsigned_at(const uint8_t *place, uint32_t width) {
    uint64_t value = 0;
    std::memcpy(&value, place, width <= 8 ? width : 8);
    return value;
  }

  static int64_t signed_at(const uint8_t *place, uint32_t width) {
    const uint32_t unused = 64 - 8 * width;
    return static_cast<int64_t>(unsigned_at(place, width) << unused) >> unused;
  }

  // The word of a value, or the value where the list has none. `names` is separated by '|'.
  static PyObject *word(const char *names, uint64_t value) {
    const char *at = names;
    for (uint64_t i = 0; *at != '\0'; ++i) {
      const size_t length = std::strcspn(at, "|");
      if (i == value) return PyUnicode_FromStringAndSize(at, static_cast<Py_ssize_t>(length));
      at += length;
      if (*at == '|') ++at;
    }
    return PyLong_FromUnsignedLongLong(value);
  }

  static PyObject *words(const char *names, uint64_t bits) {
    PyObject *const list = PyList_New(0);
    for (uint64_t i = 0; i < 64 && list != nullptr; ++i) {
      if (((bits >> i) & 1) == 0) continue;
      PyObject *const item = word(names, i);
      PyList_Append(list, item);
      Py_XDECREF(item);
    }
    return list;
  }

  PyObject *element(const Piece &piece, const uint8_t *place, uint32_t kind) {
    switch (kind) {
      case SONDE_KIND_SPAN_UINT:
        return PyLong_FromUnsignedLongLong(unsigned_at(place, 8));
      case SONDE_KIND_SPAN_INT:
        return PyLong_FromLongLong(signed_at(place, 8));
      case SONDE_KIND_SPAN_FLOAT: {
        double value = 0;
        std::memcpy(&value, place, sizeof(value));
        return PyFloat_FromDouble(value);
      }
      default:
        return text(piece.source, static_cast<sonde_string_t>(unsigned_at(place, 4)));
    }
  }

  PyObject *span(const Piece &piece, const sonde_record_t &record, const uint8_t *place, uint32_t kind) {
    sonde_span_t where{};
    std::memcpy(&where, place, sizeof(where));
    const uint64_t width = kind == SONDE_KIND_SPAN_BYTES ? 1 : kind == SONDE_KIND_SPAN_STRING ? 4 : 8;
    const auto *const first = reinterpret_cast<const uint8_t *>(&record);
    if (where.offset + where.count * width > SONDE_RECORD_BYTES(&record)) where.count = 0;
    if (kind == SONDE_KIND_SPAN_BYTES)
      return PyBytes_FromStringAndSize(reinterpret_cast<const char *>(first + where.offset), where.count);
    PyObject *const list = PyList_New(static_cast<Py_ssize_t>(where.count));
    for (uint32_t i = 0; i < where.count && list != nullptr; ++i)
      PyList_SetItem(list, static_cast<Py_ssize_t>(i), element(piece, first + where.offset + i * width, kind));
    return list;
  }

  // None for a field that the writer of the record did not know.
  PyObject *value_of(const Piece &piece, const sonde_record_t &record, const sonde_field_t &field,
                     const sonde_repair_t *repair) {
    if (field.offset + field.width > static_cast<uint32_t>(record.fixed8) * 8) Py_RETURN_NONE;
    const uint8_t *const place = reinterpret_cast<const uint8_t *>(&record) + field.offset;
    switch (field.kind) {
      case SONDE_KIND_INT:
        return PyLong_FromLongLong(signed_at(place, field.width));
      case SONDE_KIND_FLOAT: {
        if (field.width == 8) return element(piece, place, SONDE_KIND_SPAN_FLOAT);
        float value = 0;
        std::memcpy(&value, place, sizeof(value));
        return PyFloat_FromDouble(static_cast<double>(value));
      }
      case SONDE_KIND_STRING:
        return text(piece.source, static_cast<sonde_string_t>(unsigned_at(place, 4)));
      case SONDE_KIND_TIME: {
        const bool repaired = repair != nullptr && std::strcmp(field.name, "end") == 0;
        const uint64_t raw = repaired ? repair->end : unsigned_at(place, 8);
        if (raw == 0) Py_RETURN_NONE;
        return PyLong_FromLongLong(sonde_clock_ns(&piece.clock, raw));
      }
      case SONDE_KIND_ENUM:
        return word(field.names, unsigned_at(place, field.width));
      case SONDE_KIND_FLAGS:
        return words(field.names, unsigned_at(place, field.width));
      case SONDE_KIND_SPAN_UINT:
      case SONDE_KIND_SPAN_INT:
      case SONDE_KIND_SPAN_FLOAT:
      case SONDE_KIND_SPAN_STRING:
      case SONDE_KIND_SPAN_BYTES:
        return span(piece, record, place, field.kind);
      default:
        return PyLong_FromUnsignedLongLong(unsigned_at(place, field.width));
    }
  }

  sonde_session_t *session_;
  std::unordered_map<uint64_t, PyObject *> texts_;
  std::unordered_map<std::string, PyObject *> names_;
};

// collected(collector, session) -> ([dict], records left out): what has come so far, which is then forgotten.
PyObject *collected(PyObject *, PyObject *arguments) {
  PyObject *first = nullptr;
  PyObject *second = nullptr;
  if (!PyArg_ParseTuple(arguments, "OO", &first, &second)) return nullptr;
  Collector *const collector = unwrap(first);
  sonde_session_t *const session = unwrap_session(second);
  if (collector == nullptr || session == nullptr) return nullptr;
  std::vector<Piece> pieces;
  uint64_t left_out = 0;
  {
    const std::lock_guard<std::mutex> lock(collector->mutex);
    pieces.swap(collector->pieces);
    left_out = collector->left_out;
    collector->bytes = 0;
  }
  Reader reader(session);
  PyObject *const list = PyList_New(0);
  for (const Piece &piece : pieces) {
    size_t repair = 0;
    for (size_t at = 0; at < piece.data.size() && list != nullptr;) {
      const auto &record = *reinterpret_cast<const sonde_record_t *>(piece.data.data() + at);
      const bool repaired = repair < piece.repairs.size() && piece.repairs[repair].offset == at;
      PyObject *const dict = reader.read(piece, record, repaired ? &piece.repairs[repair++] : nullptr);
      if (dict == nullptr) {
        Py_DECREF(list);
        return nullptr;
      }
      PyList_Append(list, dict);
      Py_DECREF(dict);
      at += SONDE_RECORD_BYTES(&record);
    }
  }
  return Py_BuildValue("(NK)", list, static_cast<unsigned long long>(left_out));
}

}  // namespace

const sonde_record_type_t *type_numbered(const sonde_schema_t &schema, uint32_t number) {
  for (uint32_t i = 0; i < schema.type_count; ++i) {
    const auto *const type = reinterpret_cast<const sonde_record_type_t *>(
        reinterpret_cast<const uint8_t *>(schema.types) + static_cast<size_t>(i) * schema.type_stride);
    if (type->type == number) return type;
  }
  return nullptr;
}

const sonde_record_type_t *type_named(const sonde_schema_t &schema, const char *name) {
  for (uint32_t number = 1; number < SONDE_TYPE_COUNT; ++number) {
    const sonde_record_type_t *const type = type_numbered(schema, number);
    if (type != nullptr && std::strcmp(type->name, name) == 0) return type;
  }
  return nullptr;
}

PyMethodDef record_methods[] = {
    {"collect", collect, METH_VARARGS, "collect(session, {space: [types] or None}, limit) -> collector"},
    {"collected", collected, METH_VARARGS, "collected(collector, session) -> ([dict], records left out)"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace sonde::python
