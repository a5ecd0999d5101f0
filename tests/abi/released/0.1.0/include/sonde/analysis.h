// Interface sonde.analysis/1, offered by a plugin: something that listens to a session and reports.
//
// Order of calls for one instance: create, start (subscribe here), the session runs, finish (publish here), destroy.
// A session may carry several instances of one analysis with different options.
#ifndef SONDE_ANALYSIS_H
#define SONDE_ANALYSIS_H

#include <sonde/base.h>

SONDE_BEGIN_DECLS

#define SONDE_ANALYSIS_INTERFACE "sonde.analysis/1"

typedef struct sonde_analysis_t {
  uint32_t struct_size;
  uint32_t reserved;

  // `options` are checked against the plugin's declaration and live until destroy.
  // [control]
  sonde_status (*create)(sonde_session_t *session, const sonde_config_t *options, void **instance);

  // Before the first event.
  // [control]
  sonde_status (*start)(void *instance);

  // After the last event was delivered: publish tables and findings.
  // [control]
  sonde_status (*finish)(void *instance);

  // [control]
  void (*destroy)(void *instance);
} sonde_analysis_t;

SONDE_END_DECLS

#endif
