// The Compute Sanitizer's library, opened at run time.
#pragma once

#include <string>
#include <vector>

#include "sanitizer_types.h"

namespace sonde::cuda::access {

struct SanitizerApi {
  SanitizerResult (*subscribe)(SubscriberHandle *subscriber, Callback callback, void *user) = nullptr;
  SanitizerResult (*unsubscribe)(SubscriberHandle subscriber) = nullptr;
  SanitizerResult (*enable_domain)(uint32_t enable, SubscriberHandle subscriber, uint32_t domain) = nullptr;
  SanitizerResult (*enable_callback)(uint32_t enable, SubscriberHandle subscriber, uint32_t domain,
                                     uint32_t id) = nullptr;
  SanitizerResult (*result_string)(SanitizerResult result, const char **text) = nullptr;
  SanitizerResult (*add_patches)(const void *image, Context context) = nullptr;
  SanitizerResult (*patch_instructions)(uint32_t instruction, Module module, const char *function) = nullptr;
  SanitizerResult (*patch_module)(Module module) = nullptr;
  SanitizerResult (*unpatch_module)(Module module) = nullptr;
  SanitizerResult (*set_function_data)(Function function, const void *data) = nullptr;
  SanitizerResult (*set_launch_data)(LaunchHandle launch, Function function, StreamHandle stream,
                                     const void *data) = nullptr;
  SanitizerResult (*function_range)(Module module, const char *name, uint64_t *begin, uint64_t *bytes) = nullptr;
  SanitizerResult (*allocate)(Context context, void **out, size_t bytes) = nullptr;
  SanitizerResult (*allocate_host)(Context context, void **out, size_t bytes) = nullptr;
  SanitizerResult (*free)(Context context, void *address) = nullptr;
  SanitizerResult (*copy_to_device)(void *to, const void *from, size_t bytes, StreamHandle stream) = nullptr;
  SanitizerResult (*copy_to_host)(void *to, const void *from, size_t bytes, StreamHandle stream) = nullptr;
  SanitizerResult (*set)(void *to, int value, size_t bytes, StreamHandle stream) = nullptr;
  SanitizerResult (*synchronize)(StreamHandle stream) = nullptr;
  SanitizerResult (*stream_handle)(Context context, Stream stream, StreamHandle *out) = nullptr;

  // The few functions of the driver that the port's own thread uses, outside callbacks.
  int32_t (*stream_create)(Stream *out, uint32_t flags, int32_t priority) = nullptr;
  int32_t (*push_context)(Context context) = nullptr;
  int32_t (*pop_context)(Context *out) = nullptr;
  int32_t (*module_load)(Module *out, const void *image) = nullptr;
  int32_t (*module_function)(Function *out, Module module, const char *name) = nullptr;
  int32_t (*launch)(Function function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                    uint32_t block_y, uint32_t block_z, uint32_t shared_bytes, Stream stream, void **arguments,
                    void **extra) = nullptr;
  int32_t (*pinned_memory)(void **out, size_t bytes) = nullptr;
  int32_t (*free_pinned_memory)(void *address) = nullptr;
  int32_t (*device_attribute)(int32_t *out, int32_t attribute, int32_t device) = nullptr;

  std::string path;  // of the sanitizer's library

  // "what: the library's words".
  std::string explain(const char *what, SanitizerResult result) const;
};

// Opens the library: `named` (a file or folder) or else $SONDE_SANITIZER_PATH, which are then the only places; else
// one that is loaded already, the loader's path, $CUDA_HOME and $CUDA_PATH, /usr/local/cuda*. False: `reason` says
// where was looked and what was missing. The driver is libcuda.so.1; tests name another by $SONDE_CUDA_DRIVER.
bool open_sanitizer(const std::string &named, SanitizerApi &out, std::string &reason);

}  // namespace sonde::cuda::access
