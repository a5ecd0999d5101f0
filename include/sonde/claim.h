// Service sonde.claim/1: things of the process that only one kind of collector may use at a time.
//
// A vendor's tools often exclude each other within a process: patched device code and activity tracing, counters and
// tracing. A collector takes what it needs before it touches the vendor's library; those who use it in the same mode
// share it, another mode is refused, and the refusal names the holder. A forked child inherits no claims.
#ifndef SONDE_CLAIM_H
#define SONDE_CLAIM_H

#include <sonde/base.h>

SONDE_BEGIN_DECLS

#define SONDE_CLAIM_SERVICE "sonde.claim/1"

typedef struct sonde_claim_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // Takes `resource` ("cuda.device") in `mode` ("activity") for `holder` (a plugin's id, for messages). Counted: as
  // many releases end it. SONDE_E_BUSY when it is held in another mode; last_error names holder and mode.
  // SONDE_E_INVALID: an empty word.
  // [any]
  sonde_status (*take)(const char *resource, const char *mode, const char *holder);

  // SONDE_E_STATE when it is not held in that mode.
  // [any]
  sonde_status (*release)(const char *resource, const char *mode);
} sonde_claim_service_t;

SONDE_END_DECLS

#endif
