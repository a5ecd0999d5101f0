#include "emit_lttng.h"

#include <cstdlib>

#if SONDE_HAVE_LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include <chrono>

#include "emit_lttng_provider.h"

double lttng_events(uint64_t events) {
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < events; ++i) lttng_ust_tracepoint(sonde_bench, event, i, ~i);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() /
         static_cast<double>(events);
}

bool lttng_enabled() { return lttng_ust_tracepoint_enabled(sonde_bench, event) != 0; }

const char *lttng_mode() {
  const char *const mode = std::getenv("SONDE_BENCH_LTTNG");
  if (mode == nullptr) return "built in, but no session: run tests/bench/emit.sh";
  return mode;
}
#else
double lttng_events(uint64_t) { return 0; }
bool lttng_enabled() { return false; }
const char *lttng_mode() { return "not installed when this was built (liblttng-ust-dev)"; }
#endif
