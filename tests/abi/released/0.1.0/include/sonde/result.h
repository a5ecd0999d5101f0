// Service sonde.result/1: what an analysis found, as tables and findings.
//
// Every consumer (terminal, JSON, SARIF, CSV, Lua, Python) shows any plugin's result through this description alone.
// "Nothing found" and "could not look" are different answers: the second is a finding with verdict UNSUPPORTED and a
// reason.
#ifndef SONDE_RESULT_H
#define SONDE_RESULT_H

#include <sonde/base.h>
#include <sonde/value.h>

SONDE_BEGIN_DECLS

#define SONDE_RESULT_SERVICE "sonde.result/1"

#define SONDE_COLUMN_KEY 1u        // identifies the row
#define SONDE_COLUMN_HIDDEN 2u     // not shown on a terminal
#define SONDE_COLUMN_SORT_DOWN 4u  // a terminal shows the greatest first

typedef struct sonde_column_spec_t {
  const char *name;  // snake_case
  const char *unit;  // "ns", "bytes", "bytes/s", "%", "1", "" for text
  const char *help;  // definition, with its source
  uint32_t kind;     // SONDE_VALUE_I64, U64, F64, TEXT or BOOL
  uint32_t flags;    // SONDE_COLUMN_*
} sonde_column_spec_t;

typedef struct sonde_table_spec_t {
  uint32_t struct_size;
  uint32_t column_count;
  const char *origin;  // the plugin's or script's id
  const char *name;    // snake_case, unique for the origin
  const char *title;   // for people
  const char *help;
  const sonde_column_spec_t *columns;
  uint32_t column_stride;  // sizeof(sonde_column_spec_t)
  uint32_t show_rows;      // rows a terminal shows; 0: 20
} sonde_table_spec_t;

#define SONDE_SEVERITY_NOTE 0u
#define SONDE_SEVERITY_WARNING 1u
#define SONDE_SEVERITY_ERROR 2u

#define SONDE_VERDICT_VIOLATION 0u    // the rule is broken, here is the evidence
#define SONDE_VERDICT_OK 1u           // looked, found nothing wrong
#define SONDE_VERDICT_UNSUPPORTED 2u  // could not look; `reason` says why

typedef struct sonde_evidence_t {
  const char *name;
  const char *unit;
  sonde_value_t value;
} sonde_evidence_t;

// Text members may be NULL for "".
typedef struct sonde_finding_t {
  uint32_t struct_size;
  uint32_t severity;  // SONDE_SEVERITY_*
  uint32_t verdict;   // SONDE_VERDICT_*
  uint32_t evidence_count;
  const char *origin;   // the plugin's or script's id
  const char *rule;     // "workload.launch_bound"
  const char *message;  // one sentence: what is wrong
  const char *advice;   // what to do
  const char *reason;   // for UNSUPPORTED
  const char *kernel;
  const char *file;
  const char *tensor;
  const char *call_path;
  uint32_t line;    // 0: unknown
  uint32_t column;  // 0: unknown
  const sonde_evidence_t *evidence;
  uint32_t evidence_stride;  // sizeof(sonde_evidence_t)
  uint32_t reserved;
  const char *formula;    // how the decision was made, with the threshold
  double gain_seconds;    // estimated time saved, 0: not estimated
  double confidence;      // 0 to 1
  double sampling_scale;  // 1: everything was seen
} sonde_finding_t;

typedef struct sonde_result_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // Makes a table in the session's results; everything is copied. SONDE_E_EXISTS.
  // [any]
  sonde_status (*create_table)(sonde_session_t *session, const sonde_table_spec_t *spec, sonde_table_t **out);

  // Appends a row: one value a column, of the column's kind (an I64 fits U64 when not negative; NONE is an empty
  // cell). SONDE_E_TYPE names the column. Not-a-number and infinities are stored as empty cells.
  // [any]
  sonde_status (*add_row)(sonde_table_t *table, const sonde_value_t *values, uint64_t count);

  // [any]
  sonde_status (*add_finding)(sonde_session_t *session, const sonde_finding_t *finding);

  // Reading. Pointers live until the session is closed; rows come in the order they were added.
  // [any]
  sonde_status (*table_count)(sonde_session_t *session, uint64_t *out);
  sonde_status (*table_at)(sonde_session_t *session, uint64_t index, sonde_table_t **out);
  sonde_status (*find_table)(sonde_session_t *session, const char *origin, const char *name, sonde_table_t **out);
  sonde_status (*table_spec)(sonde_table_t *table, const sonde_table_spec_t **out);
  sonde_status (*row_count)(sonde_table_t *table, uint64_t *out);
  sonde_status (*cell)(sonde_table_t *table, uint64_t row, uint64_t column, sonde_value_t *out);
  sonde_status (*finding_count)(sonde_session_t *session, uint64_t *out);
  sonde_status (*finding_at)(sonde_session_t *session, uint64_t index, const sonde_finding_t **out);
} sonde_result_service_t;

SONDE_END_DECLS

#endif
