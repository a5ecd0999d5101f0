// The table of published functions that C made, and the handle type that both languages use.
#ifndef TEST_EXPORTS_C_H
#define TEST_EXPORTS_C_H

#include <sonde/export.h>
#include <sonde/status.h>

SONDE_BEGIN_DECLS

typedef struct test_thing_t test_thing_t;
#define SONDE_TYPE_thing test_thing_t *
#define SONDE_CODE_thing "h{thing}"

const sonde_export_t *test_c_exports(uint64_t *count);

SONDE_END_DECLS

#endif
