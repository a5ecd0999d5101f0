// An analysis plugin from a class, with its options. See sonde/sonde.hpp.
#ifndef SONDE_CPP_ANALYSIS_HPP
#define SONDE_CPP_ANALYSIS_HPP

#include <sonde/cpp/host.hpp>
#include <sonde/cpp/session.hpp>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace sonde {

// Options of a plugin. A getter on a declared name cannot fail; another throws Failure. [any]
class Config {
 public:
  Config(Host host, const sonde_config_t *config) : host_(host), config_(config) {}

  const sonde_config_t *get() const { return config_; }
  bool boolean(const char *path) const { return read<uint32_t>(&sonde_config_service_t::get_bool, path) != 0; }
  int64_t i64(const char *path) const { return read<int64_t>(&sonde_config_service_t::get_i64, path); }
  double f64(const char *path) const { return read<double>(&sonde_config_service_t::get_f64, path); }
  int64_t time_ns(const char *path) const { return read<int64_t>(&sonde_config_service_t::get_time, path); }
  std::string text(const char *path) const { return read<const char *>(&sonde_config_service_t::get_text, path); }

 private:
  template <typename T>
  T read(sonde_status (*sonde_config_service_t::*getter)(const sonde_config_t *, const char *, T *),
         const char *path) const {
    T value{};
    host_.check((host_.service<sonde_config_service_t>().*getter)(config_, path, &value));
    return value;
  }

  Host host_;
  const sonde_config_t *config_;
};

// Makes the sonde.analysis/1 interface from a class:
//
//   class Mine {
//    public:
//     Mine(sonde::Session session, sonde::Config options);
//     void start();   // subscribe
//     void finish();  // publish
//   };
//   SONDE_DEFINE_PLUGIN = {..., &sonde::AnalysisPlugin<Mine>::init, nullptr,
//                          &sonde::AnalysisPlugin<Mine>::get_interface};
template <typename T>
class AnalysisPlugin {
 public:
  static sonde_status init(const sonde_host_t *host) {
    host_ = host;
    return SONDE_OK;
  }

  static const void *get_interface(const char *id) {
    static const sonde_analysis_t table = {sizeof(sonde_analysis_t), 0, &create, &start, &finish, &destroy};
    return std::strcmp(id, SONDE_ANALYSIS_INTERFACE) == 0 ? &table : nullptr;
  }

  // Null before init.
  static const sonde_host_t *host() { return host_; }

  // For exports: calls `body` with the newest instance of `session`, which stays alive during the call, and turns
  // what it throws into a status. SONDE_E_NOT_FOUND when the session has none. [any]
  template <typename Body>
  static sonde_status with(sonde_session_t *session, Body &&body) noexcept {
    return guarded(host_, [&] {
      const std::shared_ptr<T> instance = find(session);
      if (!instance) throw Failure(SONDE_E_NOT_FOUND, "the session has no instance of this analysis");
      body(*instance);
    });
  }

 private:
  struct Instance {
    sonde_session_t *session;
    std::shared_ptr<T> object;
  };

  static std::shared_ptr<T> find(sonde_session_t *session) {
    const std::lock_guard<std::mutex> hold(mutex_);
    for (auto it = instances_.rbegin(); it != instances_.rend(); ++it) {
      if (it->second->session == session) return it->second->object;
    }
    return nullptr;
  }

  static sonde_status create(sonde_session_t *session, const sonde_config_t *options, void **out) {
    return guarded(host_, [&] {
      const Host host(host_);
      auto instance = std::make_unique<Instance>();
      instance->session = session;
      instance->object = std::make_shared<T>(Session::borrow(host, session), Config(host, options));
      const std::lock_guard<std::mutex> hold(mutex_);
      instances_.emplace(next_++, instance.get());
      *out = instance.release();
    });
  }
  static sonde_status start(void *instance) {
    return guarded(host_, [&] { static_cast<Instance *>(instance)->object->start(); });
  }
  static sonde_status finish(void *instance) {
    return guarded(host_, [&] { static_cast<Instance *>(instance)->object->finish(); });
  }
  static void destroy(void *instance) {
    const std::unique_ptr<Instance> owned(static_cast<Instance *>(instance));
    const std::lock_guard<std::mutex> hold(mutex_);
    std::erase_if(instances_, [&](const auto &entry) { return entry.second == owned.get(); });
  }

  static inline const sonde_host_t *host_ = nullptr;
  static inline std::mutex mutex_;
  static inline std::map<uint64_t, Instance *> instances_;  // by order of creation
  static inline uint64_t next_ = 0;
};

}  // namespace sonde

#endif
