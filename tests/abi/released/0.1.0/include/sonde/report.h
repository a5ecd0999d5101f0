// Service sonde.report/1: a session's results for people and programs.
#ifndef SONDE_REPORT_H
#define SONDE_REPORT_H

#include <sonde/base.h>

SONDE_BEGIN_DECLS

#define SONDE_REPORT_SERVICE "sonde.report/1"

typedef struct sonde_report_options_t {
  uint32_t struct_size;
  uint32_t color;      // 1: terminal colours
  uint32_t width;      // columns of the terminal; 0: 100
  uint32_t rows;       // rows shown a table; 0: each table's own wish
  const char *format;  // "text", "json", "sarif", "csv"
  const char *only;    // "" or origin, or origin.table: what to show alone
} sonde_report_options_t;

typedef struct sonde_report_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // Renders the session's tables, findings and losses. Pieces of UTF-8 text go to `write` in order; an error of it
  // ends the report and is returned. The same results give the same bytes.
  // "json": {"sonde":{...},"tables":{"origin.name":{"columns":[...],"rows":[...]}},"findings":[...],"losses":{...}}.
  // "csv": each table after a line "# origin.name". SONDE_E_NOT_FOUND: unknown format.
  // [control]
  sonde_status (*render)(sonde_session_t *session, const sonde_report_options_t *options,
                         sonde_status (*write)(void *user, const char *text, uint64_t bytes), void *user);
} sonde_report_service_t;

SONDE_END_DECLS

#endif
