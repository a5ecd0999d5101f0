// libsonde_managed.so: an allocator of CUDA managed memory for frameworks that take one by symbol names, such as
// torch.cuda.memory.CUDAPluggableAllocator("libsonde_managed.so", "sonde_managed_malloc", "sonde_managed_free").
//
// It asks the CUDA driver, which is opened at run time, so the library loads anywhere. Meant to be the source of a pool
// (torch.cuda.MemPool), whose large blocks it hands out and from which tensors are cut; it rounds nothing itself.
// Every function may be called from any thread.
#ifndef SONDE_MANAGED_H
#define SONDE_MANAGED_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SONDE_MANAGED_EXPORTED __attribute__((visibility("default")))

// `size` bytes of managed memory that every device may touch, or NULL: above the cap, without a driver, or refused by
// the driver. The reason is printed to stderr (the first 8 times) and kept for sonde_managed_last_error. `device` is
// the one whose primary context is used when the thread has none; `stream` is not used: managed memory is not stream
// ordered.
SONDE_MANAGED_EXPORTED void *sonde_managed_malloc(ssize_t size, int device, void *stream);

// Gives a block back. A pointer that is not a live block is counted and left alone.
SONDE_MANAGED_EXPORTED void sonde_managed_free(void *pointer, ssize_t size, int device, void *stream);

// Most bytes that live blocks may have together. At first it is $SONDE_MANAGED_CAP (bytes; Ki, Mi, Gi after the number
// are understood), or 2 GiB: managed memory beyond what the card has free may hang it. Blocks that live already stay.
SONDE_MANAGED_EXPORTED void sonde_managed_set_cap(uint64_t bytes);

// What sonde_managed_statistic tells.
#define SONDE_MANAGED_CAP 0u
#define SONDE_MANAGED_LIVE_BYTES 1u
#define SONDE_MANAGED_PEAK_BYTES 2u  // greatest LIVE_BYTES so far
#define SONDE_MANAGED_LIVE_BLOCKS 3u
#define SONDE_MANAGED_TOTAL_BLOCKS 4u    // handed out so far
#define SONDE_MANAGED_REFUSED_BLOCKS 5u  // asked for above the cap
#define SONDE_MANAGED_REFUSED_BYTES 6u
#define SONDE_MANAGED_FAILED_BLOCKS 7u  // the driver gave none
#define SONDE_MANAGED_UNKNOWN_FREES 8u  // of pointers that were no live block
#define SONDE_MANAGED_ANNOUNCED 9u      // blocks told to a host of Sonde in this process (service sonde.ranges/1)

// One of the numbers above; UINT64_MAX for another `which`.
SONDE_MANAGED_EXPORTED uint64_t sonde_managed_statistic(uint32_t which);

// Why the last block of this thread was not given; "" when none was refused.
SONDE_MANAGED_EXPORTED const char *sonde_managed_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
