// Errors as exceptions, the host table, services by type. See sonde/sonde.hpp.
#ifndef SONDE_CPP_HOST_HPP
#define SONDE_CPP_HOST_HPP

#include <sonde/sonde.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace sonde {

// An error of the host, or one that a plugin wants to hand to it.
class Failure : public std::runtime_error {
 public:
  Failure(sonde_status status, const std::string &text) : std::runtime_error(text), status_(status) {}
  sonde_status status() const noexcept { return status_; }

 private:
  sonde_status status_;
};

// Id of a service and how much of its table this header uses, which is what its first version had. A member that
// came later needs a check of its own (SONDE_HAS).
template <typename Service>
struct ServiceTraits;
#define SONDE_SERVICE_TRAITS(table, service_id, last_member)             \
  template <>                                                            \
  struct ServiceTraits<table> {                                          \
    static constexpr const char *id = service_id;                        \
    static constexpr uint32_t min_size = SONDE_NEED(table, last_member); \
  }
SONDE_SERVICE_TRAITS(sonde_session_service_t, SONDE_SESSION_SERVICE, set_current);
SONDE_SERVICE_TRAITS(sonde_capture_service_t, SONDE_CAPTURE_SERVICE, inside);
SONDE_SERVICE_TRAITS(sonde_delivery_service_t, SONDE_DELIVERY_SERVICE, release);
SONDE_SERVICE_TRAITS(sonde_merge_service_t, SONDE_MERGE_SERVICE, subscribe);
SONDE_SERVICE_TRAITS(sonde_columns_service_t, SONDE_COLUMNS_SERVICE, group_close);
SONDE_SERVICE_TRAITS(sonde_config_service_t, SONDE_CONFIG_SERVICE, print);
SONDE_SERVICE_TRAITS(sonde_result_service_t, SONDE_RESULT_SERVICE, finding_at);
SONDE_SERVICE_TRAITS(sonde_report_service_t, SONDE_REPORT_SERVICE, render);
SONDE_SERVICE_TRAITS(sonde_store_service_t, SONDE_STORE_SERVICE, replay);
SONDE_SERVICE_TRAITS(sonde_plugins_service_t, SONDE_PLUGINS_SERVICE, write_manifest);
SONDE_SERVICE_TRAITS(sonde_reflect_service_t, SONDE_REFLECT_SERVICE, free_closure);
SONDE_SERVICE_TRAITS(sonde_run_service_t, SONDE_RUN_SERVICE, inject);
SONDE_SERVICE_TRAITS(sonde_layout_service_t, SONDE_LAYOUT_SERVICE, from_bytes);
SONDE_SERVICE_TRAITS(sonde_layout_shape_service_t, SONDE_LAYOUT_SHAPE_SERVICE, elements_per_thread);
SONDE_SERVICE_TRAITS(sonde_layout_encoding_service_t, SONDE_LAYOUT_ENCODING_SERVICE, default_swizzle);
SONDE_SERVICE_TRAITS(sonde_layout_plan_service_t, SONDE_LAYOUT_PLAN_SERVICE, dot_shuffle);
SONDE_SERVICE_TRAITS(sonde_layout_modular_service_t, SONDE_LAYOUT_MODULAR_SERVICE, solve);
SONDE_SERVICE_TRAITS(sonde_layout_search_service_t, SONDE_LAYOUT_SEARCH_SERVICE, memory);
SONDE_SERVICE_TRAITS(sonde_cute_service_t, SONDE_CUTE_SERVICE, from_linear);
#undef SONDE_SERVICE_TRAITS

// The host table. A value; copies mean the same host. [any]
class Host {
 public:
  explicit Host(const sonde_host_t *table) : table_(table) {}

  const sonde_host_t *table() const { return table_; }

  // A service; throws Failure where it is absent or too old.
  template <typename Service>
  const Service &service() const {
    return service<Service>(ServiceTraits<Service>::id, ServiceTraits<Service>::min_size);
  }
  template <typename Service>
  const Service &service(const char *id, uint32_t min_size) const {
    const void *found = nullptr;
    check(table_->get_service(id, min_size, &found));
    return *static_cast<const Service *>(found);
  }

  // Throws Failure with the host's text when `status` is an error.
  void check(sonde_status status) const {
    if (status < 0) throw Failure(status, table_->last_error());
  }

  void log(uint32_t level, const char *origin, const std::string &text) const {
    table_->log(level, origin, text.c_str());
  }

 private:
  const sonde_host_t *table_;
};

// Runs `body` and turns what it throws into a status and the host's error text. Body returns void or sonde_status.
template <typename Body>
sonde_status guarded(const sonde_host_t *host, Body &&body) noexcept {
  const auto fail = [host](sonde_status status, const char *text) noexcept {
    return host != nullptr ? host->set_error(status, text) : status;
  };
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body &>>) {
      body();
      return SONDE_OK;
    } else {
      return body();
    }
  } catch (const Failure &failure) {
    return fail(failure.status(), failure.what());
  } catch (const std::bad_alloc &) {
    return fail(SONDE_E_FULL, "out of memory");
  } catch (const std::exception &exception) {
    return fail(SONDE_E_INTERNAL, exception.what());
  } catch (...) {
    return fail(SONDE_E_INTERNAL, "an exception of unknown type");
  }
}

}  // namespace sonde

#endif
