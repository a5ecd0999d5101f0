// Status codes. The numbers are fixed for ever; a new one is appended.
#ifndef SONDE_STATUS_H
#define SONDE_STATUS_H

#include <sonde/base.h>

// Success.
#define SONDE_OK ((sonde_status)0)
// An argument is outside what the declaration allows.
#define SONDE_E_INVALID ((sonde_status)-1)
// The thing named (service, plugin, file, space, key) does not exist.
#define SONDE_E_NOT_FOUND ((sonde_status)-2)
// The thing named exists already and may exist only once.
#define SONDE_E_EXISTS ((sonde_status)-3)
// A value lies outside its range, or an index past its end.
#define SONDE_E_RANGE ((sonde_status)-4)
// The object is in a state that does not allow the call (started twice, closed, finished).
#define SONDE_E_STATE ((sonde_status)-5)
// Memory, a ring, a queue or a cap is exhausted.
#define SONDE_E_FULL ((sonde_status)-6)
// The slot exists, the feature does not (on this machine, in this build, in this version).
#define SONDE_E_UNIMPLEMENTED ((sonde_status)-7)
// The host's table or interface is older than what was asked for.
#define SONDE_E_TOO_OLD ((sonde_status)-8)
// The plugin's interface has another major version than the host's.
#define SONDE_E_INCOMPATIBLE ((sonde_status)-9)
// A space is registered already with fields that do not continue the ones given.
#define SONDE_E_SCHEMA_CONFLICT ((sonde_status)-10)
// Reading, writing or mapping a file failed; last_error holds the system's reason.
#define SONDE_E_IO ((sonde_status)-11)
// A file or record is damaged or is not what it should be.
#define SONDE_E_CORRUPT ((sonde_status)-12)
// Text (YAML, Lua, a signature) cannot be understood; last_error holds file:line:column.
#define SONDE_E_PARSE ((sonde_status)-13)
// A deadline passed.
#define SONDE_E_TIMEOUT ((sonde_status)-14)
// The caller may not do this (privileges, a grant in the configuration).
#define SONDE_E_DENIED ((sonde_status)-15)
// The call comes from a thread that may not make it.
#define SONDE_E_THREAD ((sonde_status)-16)
// A resource that only one client may hold is held by another (a vendor's profiling interface).
#define SONDE_E_BUSY ((sonde_status)-17)
// A type does not fit (a column, an option, an argument).
#define SONDE_E_TYPE ((sonde_status)-18)
// The host or a plugin failed in a way that is a defect of it; last_error tells where.
#define SONDE_E_INTERNAL ((sonde_status)-19)
// Reserved for callbacks: returned by user code, passed through unchanged.
#define SONDE_E_USER ((sonde_status)-20)
// Ends an iteration early on request of its callback; not an error of the host.
#define SONDE_E_STOP ((sonde_status)-21)
// The question is well put, and the answer is that no such object exists (a layout, an inverse, a quotient).
#define SONDE_E_NO_SOLUTION ((sonde_status)-22)
// An answer may exist, but not within the limits or in the form that this implementation has.
#define SONDE_E_UNSUPPORTED ((sonde_status)-23)

#endif
