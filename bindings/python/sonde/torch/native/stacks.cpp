// Python call paths, read without Python's headers: the functions of the stable interface are looked up at run time.
#include <dlfcn.h>

#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "native.h"

namespace sonde_torch {
namespace {

struct Object;  // PyObject, of which nothing but its address is known here

constexpr uint32_t kMostFrames = 256;

struct Python {
  int (*ensure)() = nullptr;
  void (*release)(int) = nullptr;
  void *(*this_thread_state)() = nullptr;
  void *(*thread_state)() = nullptr;
  Object *(*frame)(void *) = nullptr;
  Object *(*back)(Object *) = nullptr;
  Object *(*code)(Object *) = nullptr;
  int (*line)(Object *) = nullptr;
  Object *(*attribute)(Object *, const char *) = nullptr;
  Object *(*encode)(Object *) = nullptr;
  char *(*bytes)(Object *) = nullptr;
  void (*drop)(Object *) = nullptr;
  void (*fetch)(Object **, Object **, Object **) = nullptr;
  void (*restore)(Object *, Object *, Object *) = nullptr;
  bool complete = false;
};

const Python &python() {
  static const Python table = [] {
    Python found;
    bool all = true;
    const auto look_up = [&](auto &function, const char *name) {
      void *const symbol = ::dlsym(RTLD_DEFAULT, name);
      std::memcpy(&function, &symbol, sizeof(symbol));
      all = all && symbol != nullptr;
    };
    look_up(found.ensure, "PyGILState_Ensure");
    look_up(found.release, "PyGILState_Release");
    look_up(found.this_thread_state, "PyGILState_GetThisThreadState");
    look_up(found.thread_state, "PyThreadState_Get");
    look_up(found.frame, "PyThreadState_GetFrame");
    look_up(found.back, "PyFrame_GetBack");
    look_up(found.code, "PyFrame_GetCode");
    look_up(found.line, "PyFrame_GetLineNumber");
    look_up(found.attribute, "PyObject_GetAttrString");
    look_up(found.encode, "PyUnicode_AsUTF8String");
    look_up(found.bytes, "PyBytes_AsString");
    look_up(found.drop, "Py_DecRef");
    look_up(found.fetch, "PyErr_Fetch");
    look_up(found.restore, "PyErr_Restore");
    found.complete = all;
    return found;
  }();
  return table;
}

std::string text_of(Object *object, const char *attribute) {
  const Python &py = python();
  std::string text = "?";
  Object *const value = py.attribute(object, attribute);
  if (value == nullptr) return text;
  if (Object *const bytes = py.encode(value)) {
    if (const char *const data = py.bytes(bytes)) text = data;
    py.drop(bytes);
  }
  py.drop(value);
  return text;
}

// A code object in the cache is kept alive by it, so that its address stays its own. All of this is guarded by
// Python's lock.
struct Code {
  std::string file;
  std::string function;
  std::unordered_map<int, sonde_string_t> lines;
  bool own = false;  // of this package: left out
};
std::unordered_map<Object *, Code> &codes() {
  static auto *const all = new std::unordered_map<Object *, Code>;
  return *all;
}
constexpr size_t kMostCodes = 1 << 16;  // a program that makes functions without end must not keep them all

std::mutex emitted_mutex;  // taken after Python's lock
std::unordered_set<uint64_t> emitted[kSinks];

bool is_new(uint32_t sink, uint64_t path) {
  const std::lock_guard<std::mutex> lock(emitted_mutex);
  return emitted[sink].insert(path).second;
}

// Of this package, or of the code that stands in for module calls, which bears the name of PyTorch's file.
bool belongs_to_package(const std::string &file, const std::string &function) {
  if (function.rfind("_sonde_", 0) == 0) return true;
  const size_t place = file.rfind("/sonde/");
  if (place == std::string::npos) return false;
  const std::string rest = file.substr(place + 7);
  return rest == "capturing.py" || rest == "scopes.py" || rest.rfind("torch/", 0) == 0;
}

// 0: a frame of this package, not shown.
sonde_string_t describe(Object *frame) {
  const Python &py = python();
  Object *const code = py.code(frame);
  if (codes().size() >= kMostCodes) {
    for (const auto &[object, unused] : codes()) py.drop(object);
    codes().clear();
  }
  const auto found = codes().find(code);
  if (found == codes().end()) {
    Code made;
    made.file = text_of(code, "co_filename");
    made.function = text_of(code, "co_name");
    made.own = belongs_to_package(made.file, made.function);
    codes().emplace(code, std::move(made));  // keeps the reference
  } else {
    py.drop(code);
  }
  Code &known = codes()[code];
  if (known.own) return 0;
  const int line = py.line(frame);
  sonde_string_t &id = known.lines[line];
  if (id == 0) id = intern((known.file + ":" + std::to_string(line) + "@" + known.function).c_str());
  return id;
}

uint64_t walk(std::vector<sonde_string_t> &frames) {
  const Python &py = python();
  uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a over the frames' ids
  Object *frame = py.frame(py.thread_state());
  while (frame != nullptr) {
    if (frames.size() < kMostFrames) {
      if (const sonde_string_t id = describe(frame)) {
        frames.push_back(id);
        for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ (id >> shift & 0xff)) * 0x100000001b3ull;
      }
    }
    Object *const outer = py.back(frame);
    py.drop(frame);
    frame = outer;
  }
  return frames.empty() ? 0 : hash | 1;
}

}  // namespace

uint64_t python_call_path(ThreadState &, uint32_t sink, sonde_writer_t &writer) noexcept {
  const Python &py = python();
  // A thread that Python does not know runs no Python, and asking for the lock there could wait for nothing.
  if (!py.complete || py.this_thread_state() == nullptr) return 0;
  const int held = py.ensure();
  Object *error[3] = {};
  py.fetch(&error[0], &error[1], &error[2]);
  uint64_t path = 0;
  try {
    std::vector<sonde_string_t> frames;
    path = walk(frames);
    if (path != 0 && is_new(sink, path)) {
      struct {
        sonde_object_call_path_t fixed;
        sonde_string_t frames[kMostFrames];
      } record = {};
      const auto bytes = static_cast<uint32_t>(sizeof(record.fixed) + (frames.size() * 4 + 7) / 8 * 8);
      SONDE_RECORD_INIT(&record.fixed, SONDE_SPACE_OBJECT, SONDE_OBJECT_CALL_PATH, sonde_stamp());
      record.fixed.header.size8 = static_cast<uint16_t>(bytes / 8);
      record.fixed.path = path;
      record.fixed.frames = {sizeof(record.fixed), static_cast<uint32_t>(frames.size())};
      std::memcpy(record.frames, frames.data(), frames.size() * sizeof(sonde_string_t));
      sonde_write(capture, &writer, &record, bytes);
    }
  } catch (...) {
    path = 0;
  }
  py.restore(error[0], error[1], error[2]);
  py.release(held);
  return path;
}

void forget_call_paths(uint32_t sink) noexcept {
  const std::lock_guard<std::mutex> lock(emitted_mutex);
  emitted[sink].clear();
}

}  // namespace sonde_torch
