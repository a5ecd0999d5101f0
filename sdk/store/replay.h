// Feeding a capture to a running session.
//
// Order: sources are those of Capture, by name. Sources of one boot are merged by the begin of their record chunks
// (ties: the earlier source first), because their stamps come from one clock; sources of different boots follow one
// after the other, in the order in which the first source of each boot comes. Within a source everything is in the
// order of the file. Two replays of one capture deliver the same batches in the same order.
#pragma once

#include <sonde/session.h>

#include <cstdint>
#include <functional>

#include "core/error.h"
#include "store/capture.h"

namespace sonde::store {

using Progress = std::function<sonde_status(uint64_t done, uint64_t total)>;

// Returns when everything is delivered and handled. [control]
Result<void> replay(Capture &capture, sonde_session_t *session, const Progress &progress);

}  // namespace sonde::store
