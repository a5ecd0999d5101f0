// The tracepoint that the emit benchmark compares with: two 64-bit integers.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER sonde_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./emit_lttng_provider.h"

#if !defined(SONDE_BENCH_EMIT_LTTNG_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SONDE_BENCH_EMIT_LTTNG_PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(sonde_bench, event, LTTNG_UST_TP_ARGS(uint64_t, first, uint64_t, second),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, first, first)
                                                   lttng_ust_field_integer(uint64_t, second, second)))

#endif

#include <lttng/tracepoint-event.h>
