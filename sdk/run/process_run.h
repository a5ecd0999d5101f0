// The run that the environment asks for in this process: $SONDE_RUN names its configuration.
//
//   none --ensure--> opening --> active --leave--> ending --> ended
//                        \--> refused (said once, never tried again)
//
// A fork brings the child back to `none`; what the parent had is left alone there, never destroyed. exec and exit end
// the run first. Everything that ends it runs on a thread of its own, which the leaving thread waits for with a
// deadline: it may hold any lock of the program, or be inside a signal handler.
#pragma once

#include <sonde/base.h>

#include <cstdint>

namespace sonde::run {

// See sonde_run_service_t.inject. [any]
sonde_status inject(uint32_t entry, void *argument) noexcept;

// Registers what a fork does. [control]
void install_process_run();

}  // namespace sonde::run
