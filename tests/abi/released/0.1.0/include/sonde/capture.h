// Service sonde.capture/1: emitting records.
//
// A thread emits through its own writer: a ring of bytes that no other thread writes. The writer is fetched once for
// each thread and session; the inline functions below then take no call, lock, allocation or shared counter, except
// when a ring segment is used up. The whole of an emit where the event is not wanted is sonde_wants: a load and a
// branch.
#ifndef SONDE_CAPTURE_H
#define SONDE_CAPTURE_H

#include <string.h>

#include <sonde/base.h>
#include <sonde/clock.h>
#include <sonde/record.h>
#include <sonde/schema.h>

SONDE_BEGIN_DECLS

#define SONDE_CAPTURE_SERVICE "sonde.capture/1"

// One thread's place in its ring. The host owns it; it lives until the thread or the session ends. After a fork the
// child finds it zeroed, which sends the next reserve to the host.
typedef struct sonde_writer_t {
  uint8_t *cursor;      // where the next record goes
  uint8_t *limit;       // end of the room that needs no call
  uint64_t position;    // bytes emitted since the ring was made
  uint64_t *published;  // where `position` is shown to the delivery thread
  void *host;           // the host's own
} sonde_writer_t;

// How much detail of a type somebody wants; the union over subscribers is the greatest.
#define SONDE_LEVEL_NONE 0u
#define SONDE_LEVEL_OBJECT_SUMMARY 1u  // accesses: totals per object
#define SONDE_LEVEL_PAGE_SUMMARY 2u    // accesses: totals per page
#define SONDE_LEVEL_INTERVALS 3u       // accesses: touched ranges
#define SONDE_LEVEL_RECORDS 4u         // every event; the only level that ordinary types know
#define SONDE_LEVEL_VALUES 5u          // every access with its values

typedef struct sonde_capture_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // This thread's writer. Threads of the host and its plugins get one that takes nothing.
  // [any]
  sonde_status (*writer)(sonde_session_t *session, sonde_writer_t **out);

  // Slow path of sonde_reserve: room for `bytes` (a multiple of 8), or NULL; the loss is then counted already.
  // [app-thread], the writer's own
  void *(*reserve)(sonde_writer_t *writer, uint32_t bytes);

  // Copies one whole record into this thread's ring. For callers that do not keep a writer.
  // SONDE_E_FULL: dropped and counted. SONDE_E_INVALID: the header contradicts itself, counted as malformed.
  // [app-thread]
  sonde_status (*emit)(sonde_session_t *session, const sonde_record_t *record);

  // The demand word of a space: bit `type` is set when somebody wants that type. The word lives until the session
  // is closed and reads 0 in a forked child until that child captures.
  // [any]
  sonde_status (*demand)(sonde_session_t *session, uint32_t space, const uint64_t **out);

  // SONDE_LEVEL_* wanted for a type.
  // [any]
  sonde_status (*level)(sonde_session_t *session, uint32_t space, uint32_t type, uint32_t *out);

  // Interns `bytes` of UTF-8 (UINT64_MAX: up to NUL). The same text gives the same id for the life of the process;
  // invalid UTF-8 is kept as it is. Strings longer than 1 MiB are cut there.
  // [any]
  sonde_status (*intern)(const char *text, uint64_t bytes, sonde_string_t *out);

  // Text of a string of `source` (a batch's source; 0: this process). Valid until the session is
  // closed. SONDE_E_NOT_FOUND.
  // [any]
  sonde_status (*text)(sonde_session_t *session, uint32_t source, sonde_string_t id, const char **out);

  // Registers a space (everything is copied). The same name again needs a schema that continues or is continued by
  // the earlier one, else SONDE_E_SCHEMA_CONFLICT; last_error names the field.
  // [any]
  sonde_status (*register_space)(const sonde_schema_t *schema, uint32_t *out);

  // Number of a space by name. SONDE_E_NOT_FOUND.
  // [any]
  sonde_status (*find_space)(const char *name, uint32_t *out);

  // Schema of a space by number; lives as long as the process. SONDE_E_NOT_FOUND.
  // [any]
  sonde_status (*schema)(uint32_t space, const sonde_schema_t **out);

  // Opens a stream that a port submits whole buffers to. `clock` is SONDE_CLOCK_* or one set by set_clock.
  // [any]
  sonde_status (*open_stream)(sonde_session_t *session, const char *name, uint32_t clock, uint64_t *out);

  // An empty buffer of at least `bytes` to fill with records of `stream`; submit or discard it. Waits for queues
  // to drain, at most 1 s, so call it on a helper thread. SONDE_E_FULL then; the caller counts what it drops.
  // [any]
  sonde_status (*acquire)(sonde_session_t *session, uint64_t stream, uint64_t bytes, uint8_t **out);

  // Delivers the first `bytes` of an acquired buffer. Records must be whole. `watermark` promises that no later
  // record of this stream begins before it (raw stamp; 0: no promise).
  // [any], one thread at a time per stream
  sonde_status (*submit)(sonde_session_t *session, uint64_t stream, uint8_t *buffer, uint64_t bytes,
                         uint64_t watermark);

  // [any]
  sonde_status (*discard)(sonde_session_t *session, uint8_t *buffer);

  // [any]
  sonde_status (*close_stream)(sonde_session_t *session, uint64_t stream);

  // Describes a foreign clock (id >= SONDE_CLOCK_FIRST_FOREIGN) by a pair: host stamp and the clock's reading, with
  // the uncertainty in ns. From the second pair on the line through them is used; the pairs are captured too.
  // [any]
  sonde_status (*pair_clock)(sonde_session_t *session, uint32_t clock, uint64_t stamp, uint64_t reading,
                             uint64_t uncertainty);

  // The current line of a clock.
  // [any]
  sonde_status (*clock)(sonde_session_t *session, uint32_t clock, sonde_clock_t *out);

  // Adds to the loss ledger what the caller could not capture. `stream` may be 0.
  // [any]
  sonde_status (*lose)(sonde_session_t *session, uint64_t stream, uint32_t cause, uint64_t records, uint64_t bytes);

  // Captures a note. severity: 0 info, 1 warning, 2 error, 3 no data. The same note of one origin is captured once.
  // [any]
  sonde_status (*note)(sonde_session_t *session, uint32_t severity, const char *origin, const char *text);

  // Between enter and leave (they nest) this thread's events are not captured: what a tool does itself is not data.
  // [any]
  void (*enter)(void);
  void (*leave)(void);

  // 1 between enter and leave and on the host's own threads, else 0.
  // [signal-safe]
  uint32_t (*inside)(void);

  // Calls `changed` after each change of the session's demand, on the thread that made it, until the session is
  // closed; then `user` is dropped.
  // [control]
  sonde_status (*watch_demand)(sonde_session_t *session, void (*changed)(void *user), void *user,
                               sonde_drop_user_t drop_user);
} sonde_capture_service_t;

// True when somebody wants `type` of the space that `demand` belongs to.
// [signal-safe]
static inline int sonde_wants(const uint64_t *demand, uint32_t type) {
  return (int)((__atomic_load_n(demand, __ATOMIC_RELAXED) >> type) & 1u);
}

// Room for a record of `bytes` (a multiple of 8), to be filled and committed, or NULL when it is dropped.
// [app-thread], the writer's own
static inline void *sonde_reserve(const sonde_capture_service_t *capture, sonde_writer_t *writer, uint32_t bytes) {
  uint8_t *const room = writer->cursor;
  if (__builtin_expect((uint64_t)(writer->limit - room) >= bytes, 1)) return room;
  return capture->reserve(writer, bytes);
}

// Shows a reserved record to the delivery thread.
// [app-thread], the writer's own
static inline void sonde_commit(sonde_writer_t *writer, uint32_t bytes) {
  writer->cursor += bytes;
  writer->position += bytes;
  __atomic_store_n(writer->published, writer->position, __ATOMIC_RELEASE);
}

// Copies a whole record; 1 when it was taken, 0 when it was dropped and counted.
// [app-thread], the writer's own
static inline int sonde_write(const sonde_capture_service_t *capture, sonde_writer_t *writer, const void *record,
                              uint32_t bytes) {
  void *const room = sonde_reserve(capture, writer, bytes);
  if (room == NULL) return 0;
  memcpy(room, record, bytes);
  sonde_commit(writer, bytes);
  return 1;
}

SONDE_END_DECLS

#endif
