// The host: the one table through which everything else is reached.
//
// An embedding program links libsonde and calls sonde_host(); a plugin receives the same table in its init function.
// The table is frozen. It grows through services, which are const structs fetched by string id.
#ifndef SONDE_HOST_H
#define SONDE_HOST_H

#include <sonde/base.h>
#include <sonde/status.h>

SONDE_BEGIN_DECLS

// Levels of sonde_host_t.log.
#define SONDE_LOG_ERROR 1u
#define SONDE_LOG_WARNING 2u
#define SONDE_LOG_INFO 3u
#define SONDE_LOG_DEBUG 4u

typedef struct sonde_host_t {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;

  // Fetches the service `id` ("sonde.capture/1", "com.example.thing/1"). `min_size` is how much of its struct the
  // caller uses, by SONDE_NEED(type, last_member). The table lives as long as the process.
  // SONDE_E_NOT_FOUND: no such service. SONDE_E_TOO_OLD: it is shorter than min_size. *out is NULL on error.
  // [any]
  sonde_status (*get_service)(const char *id, uint32_t min_size, const void **out);

  // Writes one line to the host's log (standard error by default, SONDE_LOG sets the level). `origin` names the
  // writer, for example the plugin's id.
  // [any]
  void (*log)(uint32_t level, const char *origin, const char *text);

  // Sets this thread's error text (copied) and returns `status`, so that `return host->set_error(...)` reads well.
  // [any]
  sonde_status (*set_error)(sonde_status status, const char *text);

  // This thread's last error text, "" when there is none. Valid until this thread's next call into the host.
  // [any]
  const char *(*last_error)(void);
} sonde_host_t;

// The host table of this process. Never NULL.
// [any]
SONDE_EXPORTED const sonde_host_t *sonde_host(void);

// Version of the library as SONDE_VERSION_MAJOR * 1000000 + MINOR * 1000 + PATCH.
// [any]
SONDE_EXPORTED uint32_t sonde_version(void);

SONDE_END_DECLS

#endif
