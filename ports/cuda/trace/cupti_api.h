// CUPTI opened at run time.
//
// Order: the copy that the process has loaded already (PyTorch brings its own), the option `cupti`, the variable
// SONDE_CUPTI_PATH (ignored under raised privileges), the loader's search path, the usual folders of toolkits and
// Python packages. Whatever is absent stays a null pointer; `complete` tells whether the least needed is there.
#pragma once

#include <string>
#include <vector>

#include "cupti_types.h"

namespace sonde::cuda {

struct CuptiApi {
  // Needed.
  CuptiResult (*get_version)(uint32_t *version) = nullptr;
  CuptiResult (*get_result_string)(CuptiResult result, const char **text) = nullptr;
  CuptiResult (*activity_register_callbacks)(BufferRequested requested, BufferCompleted completed) = nullptr;
  CuptiResult (*activity_enable)(uint32_t kind) = nullptr;
  CuptiResult (*activity_disable)(uint32_t kind) = nullptr;
  CuptiResult (*activity_flush_all)(uint32_t flags) = nullptr;
  CuptiResult (*activity_get_next_record)(uint8_t *buffer, size_t valid_bytes, ActivityHeader **record) = nullptr;

  // Used where present.
  CuptiResult (*activity_enable_and_dump)(uint32_t kind) = nullptr;
  CuptiResult (*activity_get_dropped)(void *context, uint32_t stream, size_t *dropped) = nullptr;
  CuptiResult (*activity_register_timestamp)(TimestampCallback callback) = nullptr;
  CuptiResult (*activity_set_attribute)(uint32_t attribute, size_t *bytes, void *value) = nullptr;
  CuptiResult (*activity_enable_runtime_call)(uint32_t callback, uint8_t enable) = nullptr;
  CuptiResult (*activity_enable_driver_call)(uint32_t callback, uint8_t enable) = nullptr;
  CuptiResult (*activity_configure_counters)(UnifiedMemoryCounterConfig *configs, uint32_t count) = nullptr;
  CuptiResult (*set_thread_id_type)(uint32_t type) = nullptr;
  CuptiResult (*get_timestamp)(uint64_t *stamp) = nullptr;
  CuptiResult (*get_callback_name)(uint32_t domain, uint32_t callback, const char **name) = nullptr;
  CuptiResult (*subscribe)(Subscriber *subscriber, Callback callback, void *user) = nullptr;
  CuptiResult (*unsubscribe)(Subscriber subscriber) = nullptr;
  CuptiResult (*enable_callback)(uint32_t enable, Subscriber subscriber, uint32_t domain, uint32_t point) = nullptr;
  CuptiResult (*get_context_id)(void *context, uint32_t *id) = nullptr;
  CuptiResult (*get_stream_id)(void *context, void *stream, uint8_t per_thread, uint32_t *id) = nullptr;
  CuptiResult (*get_graph_id)(void *graph, uint32_t *id) = nullptr;
  CuptiResult (*get_graph_exec_id)(void *graph_exec, uint32_t *id) = nullptr;

  uint32_t version = 0;  // as cuptiGetVersion gives it
  std::string path;      // file it came from
  std::string error;     // why `complete` is false: every place that was tried

  bool complete() const { return activity_get_next_record != nullptr && error.empty(); }

  // CUPTI's text for a result, never null.
  const char *text(CuptiResult result) const;
};

// Opens CUPTI; `option` is the configured path of a file or folder, or "". The library is never closed.
CuptiApi open_cupti(const std::string &option);

// Files that open_cupti tries after the copy that is loaded already, in order. For tests and messages.
std::vector<std::string> cupti_candidates(const std::string &option);

// "13.0 update 1", "12.8", "before 11.6" of a version number.
std::string version_text(uint32_t version);

}  // namespace sonde::cuda
