// Service sonde.store/1: capture files.
//
// A run is a directory: run.json and one .sonde file for each process. The format of a .sonde file is documented to
// the byte in sdk/store/FORMAT.md. A file is readable up to its last sealed chunk whatever ended the process.
#ifndef SONDE_STORE_H
#define SONDE_STORE_H

#include <sonde/base.h>
#include <sonde/delivery.h>
#include <sonde/ledger.h>

SONDE_BEGIN_DECLS

#define SONDE_STORE_SERVICE "sonde.store/1"

#define SONDE_FULL_SPILL 0u  // compression too slow: chunks are written uncompressed until it keeps up
#define SONDE_FULL_DROP 1u   // batches are dropped and counted

typedef struct sonde_writer_options_t {
  uint32_t struct_size;
  uint32_t when_full;    // SONDE_FULL_*
  uint64_t chunk_bytes;  // records of a chunk before encoding; 0: 1 MiB
  uint64_t seal_ns;      // longest time until a started chunk is sealed; 0: 200 ms
  int32_t level;         // zstd level; 0: 3
  uint32_t sync;         // 1: fsync each sealed chunk (survives power loss); 0: survives the process only
  uint64_t file_limit;   // bytes after which batches are dropped and counted; 0: none
} sonde_writer_options_t;

// One source of a capture.
typedef struct sonde_source_info_t {
  uint32_t struct_size;
  uint32_t complete;  // 1: closed in order; 0: the process ended before
  const char *path;
  const char *host;
  const char *program;
  const char *command;
  const char *boot;
  uint64_t process;
  uint64_t parent_process;
  int64_t start_ns;  // ns since 1970
  int64_t stop_ns;   // of the last record when not complete
  uint64_t records;
  uint64_t chunks;
  uint64_t file_bytes;
  uint64_t record_bytes;   // before encoding
  uint64_t damaged_bytes;  // could not be read
  const char *damage;      // "" or what is wrong
} sonde_source_info_t;

typedef struct sonde_recording_t sonde_recording_t;
typedef struct sonde_capture_t sonde_capture_t;
typedef struct sonde_file_writer_t sonde_file_writer_t;

typedef struct sonde_store_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // Records everything that `session` delivers to a new file (made at the first event; SONDE_E_EXISTS when there).
  // Its interests are everything at RECORDS level of the spaces named (dotted names separated by spaces; NULL: the
  // spaces registered now). Start it before the session starts; it ends with the session.
  // [control]
  sonde_status (*record)(sonde_session_t *session, const char *path, const char *spaces,
                         const sonde_writer_options_t *options, sonde_recording_t **out);

  // After the session stopped: writes the ledger and the index, closes. Frees `recording`.
  // [control]
  sonde_status (*finish)(sonde_recording_t *recording);

  // Opens a file or a run directory. Damage is not an error when anything can be read; see source_at and losses.
  // [any]
  sonde_status (*open)(const char *path, sonde_capture_t **out);

  // [any]
  sonde_status (*close)(sonde_capture_t *capture);

  // [any]
  sonde_status (*source_count)(sonde_capture_t *capture, uint64_t *out);
  sonde_status (*source_at)(sonde_capture_t *capture, uint64_t index, sonde_source_info_t *out);

  // What the file says was lost while recording, and what this reading found missing.
  // [any]
  sonde_status (*losses)(sonde_capture_t *capture, sonde_loss_t *rows, uint64_t capacity, uint64_t *count);

  // Feeds a capture to the subscribers of a running session, waiting for the slow ones, and returns when all of it
  // is delivered. `progress` may be NULL; called about ten times a second with records done and in all; an error of
  // it ends the replay.
  // [control]
  sonde_status (*replay)(sonde_capture_t *capture, sonde_session_t *session,
                         sonde_status (*progress)(void *user, uint64_t done, uint64_t total), void *user);

  // Makes a capture file of records that no session delivers: a conversion, a join of others. `source` says whose they
  // are: host, program, command, boot, process, parent_process, start_ns; texts may be NULL. End it with complete.
  // SONDE_E_EXISTS, SONDE_E_IO, SONDE_E_INVALID, SONDE_E_RANGE.
  // [control]
  sonde_status (*create)(const char *path, const sonde_source_info_t *source, const sonde_writer_options_t *options,
                         sonde_file_writer_t **out);

  // Appends records of one stream: `stream`, `sequence` (rising within the stream; a gap is lost batches), `data`,
  // `bytes`, `clock`, `watermark`, `lost_ring` and `lost_overwritten` are read, the rest is worked out. Numbers of
  // strings and spaces are this process's. SONDE_E_INVALID: nothing of it is taken. SONDE_E_IO, SONDE_E_FULL: the
  // chunk was not written, and its records are in the file's ledger.
  // [control]
  sonde_status (*append)(sonde_file_writer_t *writer, const sonde_batch_t *batch);

  // Adds a row to the file's ledger; `source` and `subscriber` are not read. Rows of one stream and cause add up.
  // [control]
  sonde_status (*lose)(sonde_file_writer_t *writer, const sonde_loss_t *row);

  // Writes the rest, ledger and index, and closes; `stop_ns` is when the process ended, ns since 1970. Without any
  // record no file is left. Frees `writer`, also on an error.
  // [control]
  sonde_status (*complete)(sonde_file_writer_t *writer, int64_t stop_ns);
} sonde_store_service_t;

SONDE_END_DECLS

#endif
