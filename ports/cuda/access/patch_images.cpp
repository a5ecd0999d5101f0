#include "patch_images.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sonde::cuda::access {

namespace {

namespace fs = std::filesystem;

bool read_file(const fs::path &path, std::vector<char> &out) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  out.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  return !out.empty();
}

fs::path own_folder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void *>(&find_patch_images), &info) == 0 || info.dli_fname == nullptr) return {};
  return fs::path(info.dli_fname).parent_path() / "cuda_access";
}

fs::path cache_folder() {
  if (const char *const value = std::getenv("SONDE_CACHE"); value != nullptr && *value != '\0') return value;
  if (const char *const value = std::getenv("XDG_CACHE_HOME"); value != nullptr && *value != '\0') {
    return fs::path(value) / "sonde";
  }
  if (const char *const value = std::getenv("HOME"); value != nullptr && *value != '\0') {
    return fs::path(value) / ".cache" / "sonde";
  }
  return fs::temp_directory_path() / ("sonde-" + std::to_string(getuid()));
}

std::string find_nvcc() {
  std::vector<fs::path> places;
  if (const char *const value = std::getenv("SONDE_NVCC"); value != nullptr && *value != '\0')
    places.emplace_back(value);
  for (const char *home : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char *const value = std::getenv(home); value != nullptr && *value != '\0') {
      places.push_back(fs::path(value) / "bin" / "nvcc");
    }
  }
  if (const char *const path = std::getenv("PATH"); path != nullptr) {
    const std::string all = path;
    for (size_t begin = 0; begin <= all.size();) {
      const size_t end = std::min(all.find(':', begin), all.size());
      if (end != begin) places.push_back(fs::path(all.substr(begin, end - begin)) / "nvcc");
      begin = end + 1;
    }
  }
  places.emplace_back("/usr/local/cuda/bin/nvcc");
  for (const fs::path &place : places) {
    if (::access(place.c_str(), X_OK) == 0) return place;
  }
  return {};
}

// Runs a program to its end without a shell; its output goes to `log`. This process may be instrumented, the child not.
int run(const std::vector<std::string> &words, const fs::path &log) {
  std::vector<char *> arguments;
  for (const std::string &word : words) arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    for (const char *name : {"LD_PRELOAD", "SONDE_RUN", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"})
      unsetenv(name);
    // Not through the C library, whose buffers hold what the program has still to say.
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (const int output : {STDOUT_FILENO, STDERR_FILENO}) dup2(file, output);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool compile(const std::string &nvcc, const fs::path &source, const std::string &arch, bool as_patch,
             const fs::path &out, std::string &reason) {
  const fs::path made = out.string() + "." + std::to_string(getpid());
  const fs::path log = made.string() + ".log";
  std::vector<std::string> words = {nvcc, "-arch=" + arch, "-std=c++17", "-O3", "--fatbin", source, "-o", made};
  if (as_patch) {
    for (const char *word : {"--keep-device-functions", "-Xptxas", "--compile-as-tools-patch"})
      words.emplace_back(word);
  }
  std::error_code error;
  if (run(words, log) != 0) {
    std::vector<char> text;
    (void)read_file(log, text);
    reason = nvcc + " could not compile " + source.string() + ": " +
             std::string(text.data(), std::min<size_t>(text.size(), 1000));
    fs::remove(log, error);
    return false;
  }
  fs::remove(log, error);
  fs::rename(made, out, error);
  if (error) reason = "cannot write " + out.string() + ": " + error.message();
  return !error;
}

}  // namespace

bool find_patch_images(const std::string &named, int major, int minor, PatchImages &out, std::string &reason) {
  const fs::path folder = named.empty() ? own_folder() : fs::path(named);
  if (read_file(folder / "patches.fatbin", out.patches) && read_file(folder / "edges.fatbin", out.edges)) return true;
  std::vector<char> patches_source;
  std::vector<char> edges_source;
  std::vector<char> state_source;
  if (!read_file(folder / "patches.cu", patches_source) || !read_file(folder / "edges.cu", edges_source) ||
      !read_file(folder / "state.h", state_source)) {
    reason = "the device code of the port is missing in " + folder.string();
    return false;
  }
  const std::string arch = "sm_" + std::to_string(major) + std::to_string(minor);
  uint64_t hash = XXH3_64bits(state_source.data(), state_source.size());
  hash = XXH3_64bits_withSeed(patches_source.data(), patches_source.size(), hash);
  hash = XXH3_64bits_withSeed(edges_source.data(), edges_source.size(), hash);
  char name[64];
  std::snprintf(name, sizeof(name), "-%s-%016llx.fatbin", arch.c_str(), static_cast<unsigned long long>(hash));
  const fs::path cache = cache_folder();
  const fs::path patches = cache / (std::string("patches") + name);
  const fs::path edges = cache / (std::string("edges") + name);
  if (read_file(patches, out.patches) && read_file(edges, out.edges)) return true;
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    reason = "the device code of the port was not built with Sonde, and there is no nvcc to compile it now";
    return false;
  }
  std::error_code error;
  fs::create_directories(cache, error);
  if (error) {
    reason = "cannot make the folder " + cache.string() + " for compiled device code: " + error.message();
    return false;
  }
  if (!compile(nvcc, folder / "patches.cu", arch, true, patches, reason) ||
      !compile(nvcc, folder / "edges.cu", arch, false, edges, reason)) {
    return false;
  }
  if (read_file(patches, out.patches) && read_file(edges, out.edges)) return true;
  reason = "cannot read the compiled device code in " + cache.string();
  return false;
}

}  // namespace sonde::cuda::access
