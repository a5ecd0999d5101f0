// Service sonde.merge/1: the records of all streams in order of time.
//
// Most analyses do not need it: delivery by stream is cheaper. A merge holds records back until every stream has
// promised (by watermark or by time passed) not to bring an earlier one; what comes later all the same is delivered
// at once with `late` set. Memory is bounded by `window_bytes`; beyond it the oldest records go out early.
#ifndef SONDE_MERGE_H
#define SONDE_MERGE_H

#include <sonde/base.h>
#include <sonde/delivery.h>

SONDE_BEGIN_DECLS

#define SONDE_MERGE_SERVICE "sonde.merge/1"

typedef struct sonde_merged_t {
  uint32_t struct_size;
  uint32_t source;
  uint64_t stream;
  const sonde_record_t *record;  // valid during the callback
  const sonde_clock_t *clock;
  int64_t begin_ns;  // ns since 1970, repaired where needed
  int64_t end_ns;    // for records that have an end; otherwise begin_ns
  uint32_t repair;   // SONDE_REPAIR_*, 0: none
  uint32_t late;     // 1: an earlier-begun record came before
  sonde_session_t *session;
} sonde_merged_t;

typedef struct sonde_merge_options_t {
  uint32_t struct_size;
  uint32_t interest_count;
  const sonde_interest_t *interests;
  const char *name;
  uint64_t window_bytes;  // 0: 16 MiB
  // [delivery]
  sonde_status (*on_record)(void *user, const sonde_merged_t *merged);
  void (*on_end)(void *user);  // may be NULL
  void *user;
  sonde_drop_user_t drop_user;  // may be NULL
} sonde_merge_options_t;

typedef struct sonde_merge_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // A subscription whose records come merged; ended like any other (sonde_delivery_service_t.unsubscribe).
  // [control]
  sonde_status (*subscribe)(sonde_session_t *session, const sonde_merge_options_t *options, uint64_t *out);
} sonde_merge_service_t;

SONDE_END_DECLS

#endif
