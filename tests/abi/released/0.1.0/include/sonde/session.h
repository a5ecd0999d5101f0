// Service sonde.session/1: the span in which events are captured and delivered.
//
// States: open -> running -> stopped -> closed. Subscriptions and demand may change in open and running. A session
// is fed by the program's threads and by ports, or by a replay (store.h); those who listen cannot tell.
#ifndef SONDE_SESSION_H
#define SONDE_SESSION_H

#include <sonde/base.h>
#include <sonde/ledger.h>

SONDE_BEGIN_DECLS

#define SONDE_SESSION_SERVICE "sonde.session/1"

#define SONDE_POLICY_DROP 0u       // a full ring drops the new record and counts it
#define SONDE_POLICY_OVERWRITE 1u  // a full ring drops its oldest records: a flight recorder, delivered on flush
#define SONDE_POLICY_STALL 2u      // the thread waits up to stall_ns for room, then drops

typedef struct sonde_session_options_t {
  uint32_t struct_size;
  uint32_t policy;        // SONDE_POLICY_*
  uint64_t ring_bytes;    // of a thread; 0: 1 MiB; a power of two from 64 KiB; less where many threads share the cap
  uint64_t memory_cap;    // rings, batches and queues together, bytes; 0: 64 MiB
  uint64_t stall_ns;      // for SONDE_POLICY_STALL; 0: 1 ms
  uint64_t period_ns;     // longest sleep of the delivery thread; 0: 10 ms
  const char *name;       // copied; NULL: "session"
  const char *live_path;  // copied; file that mirrors ring heads and counters for post-mortem; NULL: none
} sonde_session_options_t;

#define SONDE_STATE_OPEN 0u
#define SONDE_STATE_RUNNING 1u
#define SONDE_STATE_STOPPED 2u

typedef struct sonde_session_status_t {
  uint32_t struct_size;
  uint32_t state;         // SONDE_STATE_*
  uint64_t records;       // delivered
  uint64_t bytes;         // delivered
  uint64_t batches;       // delivered
  uint64_t lost_records;  // over all streams and causes; a subscriber's own losses are not in it
  uint64_t memory;        // held now, bytes
  uint64_t memory_peak;
  uint64_t helper_cpu_ns;  // CPU time of the session's own threads
  uint64_t streams;
} sonde_session_status_t;

typedef struct sonde_session_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // Opens a session; NULL options are the defaults. End it with close.
  // SONDE_E_INVALID, SONDE_E_FULL (more than 16 sessions), SONDE_E_IO (live_path).
  // [control]
  sonde_status (*open)(const sonde_session_options_t *options, sonde_session_t **out);

  // Starts capture and delivery. SONDE_E_STATE when it ran before.
  // [control]
  sonde_status (*start)(sonde_session_t *session);

  // Delivers everything that was emitted before the call. SONDE_E_TIMEOUT after deadline_ns (0: 2 s).
  // [control]
  sonde_status (*flush)(sonde_session_t *session, uint64_t deadline_ns);

  // Ends capture, delivers the rest, ends every subscription. What a deadline (0: 2 s) leaves behind is counted.
  // [control]
  sonde_status (*stop)(sonde_session_t *session, uint64_t deadline_ns);

  // Frees the session with its results; stops it first where needed. Writers of it become inert.
  // [control]
  sonde_status (*close)(sonde_session_t *session);

  // [any]
  sonde_status (*status)(sonde_session_t *session, sonde_session_status_t *out);

  // Copies up to `capacity` rows of the loss ledger; *count is how many there are. Rows are sorted by source,
  // stream, cause, subscriber.
  // [any]
  sonde_status (*losses)(sonde_session_t *session, sonde_loss_t *rows, uint64_t capacity, uint64_t *count);

  // The session that the environment started in this process (`sonde run`), so that a program can add to it.
  // SONDE_E_NOT_FOUND when there is none. It belongs to the host: do not close it.
  // [any]
  sonde_status (*current)(sonde_session_t **out);

  // Makes `session` the current one; NULL: none.
  // [control]
  sonde_status (*set_current)(sonde_session_t *session);
} sonde_session_service_t;

SONDE_END_DECLS

#endif
