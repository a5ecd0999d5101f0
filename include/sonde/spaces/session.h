// Space sonde.session: what the capture says about itself.
#ifndef SONDE_SPACES_SESSION_H
#define SONDE_SPACES_SESSION_H

#include <sonde/record.h>
#include <sonde/schema.h>

#define SONDE_SESSION_START 1u
#define SONDE_SESSION_STOP 2u
#define SONDE_SESSION_CLOCK_PAIR 3u
#define SONDE_SESSION_LOSS 4u
#define SONDE_SESSION_NOTE 5u
#define SONDE_SESSION_STREAM 6u
#define SONDE_SESSION_FORK 7u
#define SONDE_SESSION_WINDOW 8u

// The process whose events follow. One for each source.
typedef struct sonde_session_start_t {
  sonde_record_t header;
  uint64_t unix_ns;         // wall clock at `time`, ns since 1970
  uint64_t process;         // process id
  uint64_t parent_process;  // parent's process id
  sonde_string_t host;      // host name
  sonde_string_t boot;      // boot id: stamps of different boots are not comparable
  sonde_string_t program;   // path of the executable
  sonde_string_t command;   // command line, words separated by spaces
} sonde_session_start_t;

typedef struct sonde_session_stop_t {
  sonde_record_t header;
  uint64_t unix_ns;  // wall clock at `time`, ns since 1970
  uint32_t reason;   // 0 asked for, 1 exit of the process, 2 deadline, 3 error
  uint32_t reserved;
} sonde_session_stop_t;

// Two clocks read together: `time` in clock 0 (this host's stamp), `value` in clock `clock`.
typedef struct sonde_session_clock_pair_t {
  sonde_record_t header;
  uint64_t value;        // the other clock's reading
  uint64_t uncertainty;  // ns between the two host readings that bracket it
  uint32_t clock;        // SONDE_CLOCK_*, see clock.h
  uint32_t reserved;
} sonde_session_clock_pair_t;

// Records that a stream lost for a cause since the last such record.
typedef struct sonde_session_loss_t {
  sonde_record_t header;
  uint64_t stream;
  uint64_t records;
  uint64_t bytes;  // 0 when unknown
  uint32_t cause;  // SONDE_LOSS_*, see ledger.h
  uint32_t reserved;
} sonde_session_loss_t;

// Something a reader of the results must know: an error, a doubt, "no data because ...".
typedef struct sonde_session_note_t {
  sonde_record_t header;
  uint32_t severity;      // 0 info, 1 warning, 2 error, 3 no data
  sonde_string_t origin;  // the part that speaks: "core", "cuda", a plugin's id
  sonde_string_t text;
  uint32_t reserved;
} sonde_session_note_t;

#define SONDE_STREAM_THREAD 0u  // a thread of the program, through its ring
#define SONDE_STREAM_PORT 1u    // submitted by a port (a vendor's buffers)

// A stream begins.
typedef struct sonde_session_stream_t {
  sonde_record_t header;
  uint64_t stream;      // id in this source, from 1
  uint64_t thread;      // system's thread id, 0 for a port's stream
  uint32_t kind;        // SONDE_STREAM_*
  sonde_string_t name;  // thread name or port's name for it
} sonde_session_stream_t;

// The process forked, as the preload of `sonde run` saw it (not vfork, nor a system call of the program's own); the
// child has a capture of its own, or none. It lies in the stream of the thread that forked.
typedef struct sonde_session_fork_t {
  sonde_record_t header;
  uint64_t child;  // process id; 0: unknown
} sonde_session_fork_t;

#define SONDE_WINDOW_LEFT_OUT 0u
#define SONDE_WINDOW_COLLECTED 1u
#define SONDE_LAUNCHES_UNKNOWN UINT64_MAX

// A stretch of time in which a port collected, or left out, what it samples to keep a budget. The windows of one origin
// follow each other without a gap, from its first one to the end of the capture. Time is cut into strata of `slots`
// slots of planned equal length, of which `collected` were chosen at random before the stratum began: so each slot was
// collected with the probability collected / slots, whatever happened in it. A window that is collected is one slot;
// neighbours that were left out are one window. A stratum that the capture's end cut short has no more windows. The
// record lies in the port's stream before the records of what was launched after `end`.
typedef struct sonde_session_window_t {
  sonde_record_t header;  // time: the window's begin
  uint64_t end;           // raw stamp
  uint64_t stratum;       // from 1
  uint64_t launches;      // calls within that launch work, collected or not; SONDE_LAUNCHES_UNKNOWN
  uint32_t slots;         // of the stratum
  uint32_t collected;     // of these, collected
  uint32_t state;         // SONDE_WINDOW_*
  uint32_t next;          // SONDE_WINDOW_* of the window that begins at `end`
  sonde_string_t origin;  // the port
  uint32_t reserved;
} sonde_session_window_t;

#endif
