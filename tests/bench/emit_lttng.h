// The peer of the emit benchmark: one LTTng-UST tracepoint with the same 16-byte payload.
#pragma once

#include <cstdint>

// ns per event over `events` events; 0 when LTTng-UST was not there at build time.
double lttng_events(uint64_t events);

// True when a session had the tracepoint enabled.
bool lttng_enabled();

// What was measured, or why nothing was.
const char *lttng_mode();
