#include "cupti_api.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>

namespace sonde::cuda {

namespace {

// A copy under one of these names is taken when it is loaded already, newest first.
constexpr const char *kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"};

// Folders of toolkits and of Python's CUDA packages, as patterns of glob(3).
constexpr const char *kFolders[] = {
    "/usr/local/cuda/extras/CUPTI/lib64",
    "/usr/local/cuda/lib64",
    "/usr/local/cuda-*/extras/CUPTI/lib64",
    "/usr/local/cuda-*/targets/*/lib",
    "/usr/local/lib/python3*/*-packages/nvidia/cu*/lib",
    "/usr/local/lib/python3*/*-packages/nvidia/cuda_cupti/lib",
    "/usr/lib/python3*/*-packages/nvidia/cu*/lib",
    "/usr/lib/python3/dist-packages/nvidia/cu*/lib",
    "/opt/*/lib/python3*/site-packages/nvidia/cu*/lib",
    "/opt/*/lib/python3*/site-packages/nvidia/cuda_cupti/lib",
};

bool is_folder(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// The names inside `folder`, whether or not they exist.
void add_folder(const std::string &folder, std::vector<std::string> &out) {
  for (const char *name : kNames) out.push_back(folder + "/" + name);
}

// Existing folders that match `pattern`, the greatest name first: that is the newest version.
void add_pattern(const std::string &pattern, std::vector<std::string> &out) {
  glob_t found = {};
  if (glob(pattern.c_str(), GLOB_NOCHECK | GLOB_ONLYDIR, nullptr, &found) == 0) {
    for (size_t i = found.gl_pathc; i > 0; --i) {
      if (is_folder(found.gl_pathv[i - 1])) add_folder(found.gl_pathv[i - 1], out);
    }
  }
  globfree(&found);
}

void add_named(const std::string &path, std::vector<std::string> &out) {
  if (path.empty()) return;
  if (is_folder(path)) {
    add_folder(path, out);
  } else {
    out.push_back(path);
  }
}

// Folders beside the CUDA libraries that the process has loaded: pip puts CUPTI into a sibling folder.
int add_siblings(dl_phdr_info *info, size_t, void *user) {
  auto &out = *static_cast<std::vector<std::string> *>(user);
  const char *name = info->dlpi_name != nullptr ? std::strstr(info->dlpi_name, "/nvidia/") : nullptr;
  if (name == nullptr) return 0;
  const std::string root(info->dlpi_name, static_cast<size_t>(name - info->dlpi_name) + strlen("/nvidia"));
  for (const std::string &known : out) {
    if (known == root) return 0;
  }
  out.push_back(root);
  return 0;
}

template <typename Function>
bool resolve(void *library, const char *name, Function &out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

bool resolve_all(void *library, CuptiApi &api) {
  const bool complete = resolve(library, "cuptiGetVersion", api.get_version) &
                        resolve(library, "cuptiGetResultString", api.get_result_string) &
                        resolve(library, "cuptiActivityRegisterCallbacks", api.activity_register_callbacks) &
                        resolve(library, "cuptiActivityEnable", api.activity_enable) &
                        resolve(library, "cuptiActivityDisable", api.activity_disable) &
                        resolve(library, "cuptiActivityFlushAll", api.activity_flush_all) &
                        resolve(library, "cuptiActivityGetNextRecord", api.activity_get_next_record);
  resolve(library, "cuptiActivityEnableAndDump", api.activity_enable_and_dump);
  resolve(library, "cuptiActivityGetNumDroppedRecords", api.activity_get_dropped);
  resolve(library, "cuptiActivityRegisterTimestampCallback", api.activity_register_timestamp);
  resolve(library, "cuptiActivitySetAttribute", api.activity_set_attribute);
  resolve(library, "cuptiActivityEnableRuntimeApi", api.activity_enable_runtime_call);
  resolve(library, "cuptiActivityEnableDriverApi", api.activity_enable_driver_call);
  resolve(library, "cuptiActivityConfigureUnifiedMemoryCounter", api.activity_configure_counters);
  resolve(library, "cuptiSetThreadIdType", api.set_thread_id_type);
  resolve(library, "cuptiGetTimestamp", api.get_timestamp);
  resolve(library, "cuptiGetCallbackName", api.get_callback_name);
  resolve(library, "cuptiSubscribe", api.subscribe);
  resolve(library, "cuptiUnsubscribe", api.unsubscribe);
  resolve(library, "cuptiEnableCallback", api.enable_callback);
  resolve(library, "cuptiGetContextId", api.get_context_id);
  resolve(library, "cuptiGetStreamIdEx", api.get_stream_id);
  resolve(library, "cuptiGetGraphId", api.get_graph_id);
  resolve(library, "cuptiGetGraphExecId", api.get_graph_exec_id);
  return complete;
}

std::string path_of(const void *function) {
  Dl_info info = {};
  return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "?";
}

std::string reason_of(const std::string &candidate) {
  const char *text = dlerror();
  return text != nullptr ? text : candidate;
}

// Takes `library` if it is a CUPTI that Sonde can use, else adds the reason to `reasons`.
bool take(void *library, const std::string &name, CuptiApi &api, std::string &reasons) {
  CuptiApi found;
  if (!resolve_all(library, found)) {
    reasons += "\n  " + name + ": lacks functions of CUPTI";
  } else if (found.get_version(&found.version) != kCuptiSuccess || found.version < kCupti11_6) {
    reasons += "\n  " + name + ": version " + version_text(found.version) + ", 11.6 or later is needed";
  } else {
    found.path = path_of(reinterpret_cast<const void *>(found.get_version));
    api = std::move(found);
    return true;
  }
  return false;
}

}  // namespace

const char *CuptiApi::text(CuptiResult result) const {
  const char *out = nullptr;
  if (get_result_string == nullptr || get_result_string(result, &out) != kCuptiSuccess || out == nullptr) {
    return "unknown CUPTI error";
  }
  return out;
}

std::string version_text(uint32_t version) {
  if (version >= 10000) {
    std::string text = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100);
    if (version % 100 != 0) text += " update " + std::to_string(version % 100);
    return text;
  }
  switch (version) {
    case 17:
      return "11.6";
    case 18:
      return "11.8";
    case 19:
      return "12.0";
    case 20:
      return "12.2";
    case 21:
      return "12.3";
    case 22:
      return "12.4";
    case 23:
      return "12.5";
    case 24:
      return "12.6";
    case 26:
      return "12.8";
    case 27:
      return "12.9";
    case 28:
      return "12.9 update 1";
    default:
      break;
  }
  return (version < kCupti11_6 ? "before 11.6 (number " : "of number ") + std::to_string(version) +
         (version < kCupti11_6 ? ")" : "");
}

std::vector<std::string> cupti_candidates(const std::string &option) {
  std::vector<std::string> out;
  // A path that the user names is the one that is used: nothing else is tried when it fails.
  add_named(option, out);
  if (!out.empty()) return out;
  if (const char *path = secure_getenv("SONDE_CUPTI_PATH")) add_named(path, out);
  if (!out.empty()) return out;
  for (const char *name : kNames) out.push_back(name);
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char *home = secure_getenv(variable);
    if (home == nullptr || *home == '\0') continue;
    add_folder(std::string(home) + "/extras/CUPTI/lib64", out);
    add_folder(std::string(home) + "/lib64", out);
  }
  std::vector<std::string> roots;
  dl_iterate_phdr(add_siblings, &roots);
  for (const std::string &root : roots) {
    add_pattern(root + "/cu*/lib", out);
    add_pattern(root + "/cuda_cupti/lib", out);
  }
  for (const char *pattern : kFolders) add_pattern(pattern, out);
  return out;
}

CuptiApi open_cupti(const std::string &option) {
  CuptiApi api;
  std::string reasons;
  for (const char *name : kNames) {
    if (void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) {
      if (take(library, name, api, reasons)) return api;
    }
  }
  for (const std::string &candidate : cupti_candidates(option)) {
    void *library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr && take(library, candidate, api, reasons)) return api;
    if (library == nullptr) reasons += "\n  " + reason_of(candidate);
  }
  api.error = "CUPTI was not found:" + reasons;
  return api;
}

}  // namespace sonde::cuda
