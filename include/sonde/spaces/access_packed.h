// The packed entries inside SONDE_ACCESS_WARPS and SONDE_ACCESS_EVENTS.
#ifndef SONDE_SPACES_ACCESS_PACKED_H
#define SONDE_SPACES_ACCESS_PACKED_H

#include <sonde/base.h>

#define SONDE_WARP_AFFINE 0u     // lane i of the mask touches base + stride * i; no addresses follow
#define SONDE_WARP_OFFSETS32 1u  // for each lane of the mask, int32 to add to base
#define SONDE_WARP_ADDRESS64 2u  // for each lane of the mask, uint64

// One warp access: this head, then addresses as `form` says, then (`values` not 0) the bytes that each lane of the mask
// wrote, `size` each; addresses and values each padded to 8 bytes. `stride` is in bytes.
typedef struct sonde_warp_access_t {
  uint16_t size8;  // whole entry, units of 8 bytes
  uint8_t form;    // SONDE_WARP_*
  uint8_t values;  // 1: values follow
  uint32_t mask;   // lanes
  uint64_t base;
  int32_t stride;
  uint32_t block;  // linear, modulo 2^32
  uint32_t pc;     // from the function's begin, modulo 2^32
  uint16_t warp;   // of the block, by linear thread number
  uint8_t size;    // bytes of a lane's access
  uint8_t access;  // as in sonde_access_instruction_t; bits 4 and 5: 0 global, 1 shared, 2 local
} sonde_warp_access_t;

// Kinds of device events.
#define SONDE_DEVICE_EVENT_BLOCK_ENTER 1u
#define SONDE_DEVICE_EVENT_BLOCK_EXIT 2u
#define SONDE_DEVICE_EVENT_BARRIER 3u       // a: barrier index, b: threads
#define SONDE_DEVICE_EVENT_WARP_BARRIER 4u  // a: mask
#define SONDE_DEVICE_EVENT_MALLOC 5u        // a: address, b: bytes
#define SONDE_DEVICE_EVENT_FREE 6u          // a: address
#define SONDE_DEVICE_EVENT_PIPELINE_COMMIT 7u
#define SONDE_DEVICE_EVENT_PIPELINE_WAIT 8u  // a: groups
#define SONDE_DEVICE_EVENT_CLUSTER_ARRIVE 9u
#define SONDE_DEVICE_EVENT_CLUSTER_WAIT 10u
#define SONDE_DEVICE_EVENT_COPY_ASYNC 11u   // a: global address, b: bytes
#define SONDE_DEVICE_EVENT_BULK_LOAD 12u    // a: global address, b: bytes
#define SONDE_DEVICE_EVENT_BULK_STORE 13u   // a: global address, b: bytes
#define SONDE_DEVICE_EVENT_BULK_REDUCE 14u  // a: global address, b: bytes
#define SONDE_DEVICE_EVENT_CALL 15u         // a: target
#define SONDE_DEVICE_EVENT_RETURN 16u
#define SONDE_DEVICE_EVENT_SHARED_BARRIER 17u  // a: shared address, b: kind of the operation

typedef struct sonde_device_event_t {
  uint64_t a;
  uint64_t b;
  uint32_t mask;   // lanes that did it together
  uint32_t block;  // linear, modulo 2^32
  uint32_t pc;     // from the function's begin, modulo 2^32
  uint16_t warp;
  uint16_t kind;  // SONDE_DEVICE_EVENT_*
} sonde_device_event_t;

#endif
