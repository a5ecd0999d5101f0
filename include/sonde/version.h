// Version of the SDK and of its binary interface.
//
// The build reads these macros; they are written nowhere else. Before 1.0 a break of the binary interface raises
// SONDE_ABI_MAJOR; an addition raises SONDE_ABI_MINOR. A plugin states the oldest minor it needs, never the one it
// was built with.
#ifndef SONDE_VERSION_H
#define SONDE_VERSION_H

#define SONDE_VERSION_MAJOR 0
#define SONDE_VERSION_MINOR 1
#define SONDE_VERSION_PATCH 0

#define SONDE_ABI_MAJOR 1
#define SONDE_ABI_MINOR 1

#endif
