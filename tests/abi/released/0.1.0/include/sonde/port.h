// Interface sonde.port/1, offered by a plugin: an adapter from an outside runtime to Sonde's events.
//
// Order of calls for one instance: create, start, (demand, flush)*, stop, destroy. A port that finds its runtime
// absent still starts, notes the reason ("no data because ...") in the session and does nothing.
#ifndef SONDE_PORT_H
#define SONDE_PORT_H

#include <sonde/base.h>

SONDE_BEGIN_DECLS

#define SONDE_PORT_INTERFACE "sonde.port/1"

// Foreign entry points that a runtime calls before any host exists, forwarded by libsonde_inject.so.
#define SONDE_ENTRY_CUDA_INJECTION 1u  // InitializeInjection; argument NULL
#define SONDE_ENTRY_NVTX_INJECTION 2u  // InitializeInjectionNvtx2; argument is its NvtxGetExportTableFunc_t
#define SONDE_ENTRY_ROCPROFILER 3u     // rocprofiler_configure; argument points to its four arguments
#define SONDE_ENTRY_OPENCL_LAYER 4u    // clInitLayer; argument points to its arguments

typedef struct sonde_port_t {
  uint32_t struct_size;
  uint32_t reserved;

  // [control]
  sonde_status (*create)(sonde_session_t *session, const sonde_config_t *options, void **instance);

  // Begins to capture what the session demands.
  // [control]
  sonde_status (*start)(void *instance);

  // The session's demand changed; switch collection on and off to match. May be NULL.
  // [any], never concurrently with itself
  sonde_status (*demand)(void *instance);

  // Submits what the runtime holds back. `forced`: even unfinished buffers. No device is synchronised. May be NULL.
  // [any], never concurrently with itself
  sonde_status (*flush)(void *instance, uint32_t forced);

  // Ends capture after a last flush.
  // [control]
  sonde_status (*stop)(void *instance);

  // [control]
  void (*destroy)(void *instance);

  // A foreign entry, before or after create. SONDE_E_UNIMPLEMENTED: not for this port. May be NULL.
  // [any]
  sonde_status (*entry)(uint32_t which, void *argument);
} sonde_port_t;

SONDE_END_DECLS

#endif
