// What the tests of this folder share: a host with claims, texts and lists, and ways to drive the fake CUPTI.
#pragma once

#include <dlfcn.h>

#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <sonde/claim.h>
#include <sonde/plugin.h>
#include <sonde/port.h>

#include "fake_host.h"
#include "fake_sampling.h"

namespace sonde::test {

// ---- a host with claims and texts ----------------------------------------------------------------------------------

inline std::string claim_refusal;  // not empty: nobody gets a claim
inline int claims_held = 0;
inline std::string claims;  // all that were taken: "resource mode holder\n" each

inline sonde_status take_claim(const char *resource, const char *mode, const char *holder) {
  claims += std::string(resource) + " " + mode + " " + holder + "\n";
  if (!claim_refusal.empty()) return fake_host()->set_error(SONDE_E_BUSY, claim_refusal.c_str());
  ++claims_held;
  return SONDE_OK;
}
inline sonde_status release_claim(const char *, const char *) {
  --claims_held;
  return SONDE_OK;
}

inline sonde_status text_of_id(sonde_session_t *, uint32_t, sonde_string_t id, const char **out) {
  static std::mutex mutex;
  static std::map<sonde_string_t, std::string> texts;
  std::lock_guard<std::mutex> hold(mutex);
  *out = texts.emplace(id, text_of(id)).first->second.c_str();
  return SONDE_OK;
}

// A list has the entries "name.0", "name.1", ...
inline sonde_status count_entries(const sonde_config_t *config, const char *path, uint64_t *out) {
  *out = 0;
  while (config->values.count(std::string(path) + "." + std::to_string(*out)) != 0) ++*out;
  return SONDE_OK;
}

inline sonde_status get_service(const char *id, uint32_t min_size, const void **out) {
  static const sonde_claim_service_t claim = {sizeof(sonde_claim_service_t), 0, take_claim, release_claim};
  static const sonde_capture_service_t capture = [] {
    sonde_capture_service_t table = *fake_capture();
    table.text = text_of_id;
    return table;
  }();
  if (std::string_view(id) == SONDE_CLAIM_SERVICE) {
    *out = &claim;
    return SONDE_OK;
  }
  static const sonde_config_service_t config = [] {
    const void *plain = nullptr;
    fake_host()->get_service(SONDE_CONFIG_SERVICE, 0, &plain);
    sonde_config_service_t table = *static_cast<const sonde_config_service_t *>(plain);
    table.count = count_entries;
    return table;
  }();
  if (std::string_view(id) == SONDE_CONFIG_SERVICE) {
    *out = &config;
    return SONDE_OK;
  }
  if (std::string_view(id) == SONDE_CAPTURE_SERVICE) {
    *out = &capture;
    return SONDE_OK;
  }
  return fake_host()->get_service(id, min_size, out);
}

inline const sonde_host_t *host() {
  static const sonde_host_t table = [] {
    sonde_host_t made = *fake_host();
    made.get_service = get_service;
    return made;
  }();
  return &table;
}

// ---- driving the fake ----------------------------------------------------------------------------------------------

inline FakeSampling &fake() {
  static FakeSampling *const instance = [] {
    // Under this name the port finds both: CUPTI by its path, the driver because it is loaded already.
    void *library = dlopen(SONDE_FAKE_SAMPLING, RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<FakeSamplingFunction>(dlsym(library, kFakeSamplingName))();
  }();
  return *instance;
}

inline void *handle(uintptr_t number) { return reinterpret_cast<void *>(number); }

inline void call_back(uint32_t point, void *context, void *descriptor) {
  Callback callback = nullptr;
  void *user = nullptr;
  {
    std::lock_guard<std::recursive_mutex> hold(fake().mutex);
    callback = fake().callback;
    user = fake().user;
  }
  const ResourceData data = {context, nullptr, descriptor};
  if (callback != nullptr) callback(user, kDomainResource, point, &data);
}

inline void make_context(void *context, uint32_t id) {
  {
    std::lock_guard<std::recursive_mutex> hold(fake().mutex);
    fake().contexts[context].id = id;
  }
  call_back(kResourceContextCreated, context, nullptr);
}

inline void destroy_context(void *context) {
  call_back(kResourceContextDestroyStarting, context, nullptr);
  std::lock_guard<std::recursive_mutex> hold(fake().mutex);
  fake().contexts.erase(context);
}

// Loads a module as CUPTI tells of it; returns the checksum that its samples will carry.
inline uint64_t load_module(void *context, const std::vector<uint8_t> &code) {
  uint64_t checksum = 0;
  if (fake().checksum != nullptr) fake().checksum(code.data(), code.size(), &checksum);
  ModuleData data = {1, code.size(), reinterpret_cast<const char *>(code.data())};
  call_back(kResourceModuleLoaded, context, &data);
  return checksum;
}

inline void unload_module(void *context) {
  ModuleData data = {1, 0, nullptr};
  call_back(kResourceModuleUnloadStarting, context, &data);
}

inline void add_sample(void *context, FakeSample sample) {
  std::lock_guard<std::recursive_mutex> hold(fake().mutex);
  fake().contexts[context].samples.push_back(std::move(sample));
}

inline FakeSample sample_at(uint64_t checksum, uint64_t pc, uint32_t stall, uint32_t count) {
  FakeSample sample;
  sample.checksum = checksum;
  sample.pc = pc;
  sample.function = "hot";
  sample.stalls = {{stall, count}};
  return sample;
}

inline std::vector<uint8_t> read_file(const std::string &name) {
  std::ifstream file(std::string(SONDE_TEST_SOURCE_DIR "/tests/data/cubins/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Some bytes that no other test loads.
inline std::vector<uint8_t> some_code(uint8_t seed, size_t bytes = 1000) {
  std::vector<uint8_t> code(bytes);
  for (size_t i = 0; i < bytes; ++i) code[i] = static_cast<uint8_t>(i * 31 + seed);
  return code;
}

// ---- the port ------------------------------------------------------------------------------------------------------

inline const sonde_port_t *port() {
  static const sonde_port_t *const table = []() -> const sonde_port_t * {
    void *library = dlopen(SONDE_SAMPLING_PORT, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    const auto *entry = static_cast<const sonde_plugin_entry_t *>(dlsym(library, "sonde_plugin_entry"));
    if (entry->init(host()) != SONDE_OK) throw std::runtime_error("init failed");
    return static_cast<const sonde_port_t *>(entry->get_interface(SONDE_PORT_INTERFACE));
  }();
  return table;
}

}  // namespace sonde::test
