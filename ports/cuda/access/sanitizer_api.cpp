#include "sanitizer_api.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <filesystem>

namespace sonde::cuda::access {

namespace {

constexpr char kName[] = "libsanitizer-public.so";

void add_named(const std::string &path, std::vector<std::string> &out) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    out.push_back(path + "/" + kName);
    out.push_back(path + "/compute-sanitizer/" + kName);
  } else {
    out.push_back(path);
  }
}

std::vector<std::string> candidates(const std::string &named) {
  std::vector<std::string> out;
  const char *const variable = std::getenv("SONDE_SANITIZER_PATH");
  if (!named.empty()) {
    add_named(named, out);
    return out;
  }
  if (variable != nullptr && *variable != '\0') {
    add_named(variable, out);
    return out;
  }
  out.emplace_back(kName);
  for (const char *home : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char *const value = std::getenv(home); value != nullptr && *value != '\0') add_named(value, out);
  }
  glob_t found = {};
  for (const char *pattern : {"/usr/local/cuda/compute-sanitizer", "/usr/local/cuda-*/compute-sanitizer",
                              "/opt/cuda*/compute-sanitizer", "/usr/lib/*/compute-sanitizer"}) {
    if (glob(pattern, GLOB_ONLYDIR, nullptr, &found) == 0) {
      for (size_t i = found.gl_pathc; i > 0; --i) add_named(found.gl_pathv[i - 1], out);
    }
    globfree(&found);
  }
  return out;
}

template <typename Signature>
bool resolve(void *library, const char *name, Signature &out) {
  out = reinterpret_cast<Signature>(dlsym(library, name));
  return out != nullptr;
}

const char *resolve_sanitizer(void *library, SanitizerApi &api) {
  const char *missing = nullptr;
  const auto need = [&](const char *name, auto &out) {
    if (!resolve(library, name, out) && missing == nullptr) missing = name;
  };
  need("sanitizerSubscribe", api.subscribe);
  need("sanitizerUnsubscribe", api.unsubscribe);
  need("sanitizerEnableDomain", api.enable_domain);
  need("sanitizerEnableCallback", api.enable_callback);
  need("sanitizerGetResultString", api.result_string);
  need("sanitizerAddPatches", api.add_patches);
  need("sanitizerPatchInstructions", api.patch_instructions);
  need("sanitizerPatchModule", api.patch_module);
  need("sanitizerUnpatchModule", api.unpatch_module);
  need("sanitizerSetCallbackData", api.set_function_data);
  need("sanitizerSetLaunchCallbackData", api.set_launch_data);
  need("sanitizerGetFunctionPcAndSize", api.function_range);
  need("sanitizerAlloc", api.allocate);
  need("sanitizerAllocHost", api.allocate_host);
  need("sanitizerFree", api.free);
  need("sanitizerMemcpyHostToDeviceAsync", api.copy_to_device);
  need("sanitizerMemcpyDeviceToHost", api.copy_to_host);
  need("sanitizerMemset", api.set);
  need("sanitizerStreamSynchronize", api.synchronize);
  need("sanitizerGetStreamHandle", api.stream_handle);
  return missing;
}

const char *resolve_driver(void *library, SanitizerApi &api) {
  const char *missing = nullptr;
  const auto need = [&](const char *name, auto &out) {
    if (!resolve(library, name, out) && missing == nullptr) missing = name;
  };
  need("cuStreamCreateWithPriority", api.stream_create);
  need("cuCtxPushCurrent_v2", api.push_context);
  need("cuCtxPopCurrent_v2", api.pop_context);
  need("cuModuleLoadData", api.module_load);
  need("cuModuleGetFunction", api.module_function);
  need("cuLaunchKernel", api.launch);
  need("cuMemAllocHost_v2", api.pinned_memory);
  need("cuMemFreeHost", api.free_pinned_memory);
  need("cuDeviceGetAttribute", api.device_attribute);
  return missing;
}

}  // namespace

std::string SanitizerApi::explain(const char *what, SanitizerResult result) const {
  const char *text = nullptr;
  if (result_string == nullptr || result_string(result, &text) != kSanitizerSuccess || text == nullptr) {
    return std::string(what) + ": result " + std::to_string(result);
  }
  return std::string(what) + ": " + text;
}

bool open_sanitizer(const std::string &named, SanitizerApi &out, std::string &reason) {
  // Tests name a driver of their own.
  const char *const other_driver = secure_getenv("SONDE_CUDA_DRIVER");
  const bool other = other_driver != nullptr && *other_driver != '\0';
  void *const driver = dlopen(other ? other_driver : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver == nullptr) {
    reason = std::string("there is no CUDA driver: ") + dlerror();
    return false;
  }
  if (const char *const missing = resolve_driver(driver, out); missing != nullptr) {
    reason = std::string("the CUDA driver lacks ") + missing;
    return false;
  }
  std::string tried;
  for (const std::string &candidate : candidates(named)) {
    void *const library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried += "\n  " + std::string(dlerror());
      continue;
    }
    if (const char *const missing = resolve_sanitizer(library, out); missing != nullptr) {
      tried += "\n  " + candidate + ": lacks " + missing;
      dlclose(library);
      continue;
    }
    Dl_info info = {};
    out.path = dladdr(reinterpret_cast<const void *>(out.subscribe), &info) != 0 && info.dli_fname != nullptr
                   ? info.dli_fname
                   : candidate;
    return true;
  }
  reason =
      "the Compute Sanitizer's library was not found (it comes with CUDA's toolkit; SONDE_SANITIZER_PATH names it):" +
      tried;
  return false;
}

}  // namespace sonde::cuda::access
