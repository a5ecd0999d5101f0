// What the SDK keeps for each thread, and marking the SDK's own threads.
#pragma once

#include <sonde/capture.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "core/error.h"
#include "core/stream.h"

namespace sonde::core {

class Session;

// This thread's writer for a session; one that takes nothing on a helper thread. [any]
Result<sonde_writer_t *> thread_writer(Session &session);

// Slow path of sonde_reserve. [app-thread]
void *reserve(sonde_writer_t *writer, uint32_t bytes) noexcept;

// See sonde_capture_service_t.enter, leave, inside.
void enter_host() noexcept;
void leave_host() noexcept;
uint32_t inside_host() noexcept;

// Marks the calling thread as the SDK's own for good, names it, and blocks signals, which are the program's. [any]
void become_helper_thread(const std::string &name);

// In a forked child: forgets the streams of the surviving thread without touching their memory.
void forget_thread_after_fork() noexcept;

}  // namespace sonde::core
