// The loss ledger: every record that was not delivered, by stream and cause.
#ifndef SONDE_LEDGER_H
#define SONDE_LEDGER_H

#include <sonde/base.h>

#define SONDE_LOSS_RING_FULL 1u    // the thread's ring had no room
#define SONDE_LOSS_TOO_BIG 2u      // the record is larger than half a ring
#define SONDE_LOSS_QUEUE_FULL 3u   // a subscriber was too slow; counted for it alone
#define SONDE_LOSS_OVERWRITTEN 4u  // the flight recorder made room
#define SONDE_LOSS_VENDOR 5u       // the runtime's own tracing dropped it
#define SONDE_LOSS_MEMORY_CAP 6u   // the session's memory cap was reached
#define SONDE_LOSS_DISK 7u         // the capture file could not take it
#define SONDE_LOSS_TAIL 8u         // the process ended before it was written
#define SONDE_LOSS_MALFORMED 9u    // the record's sizes contradict each other
#define SONDE_LOSS_DEADLINE 10u    // a flush ended at its deadline with records left
#define SONDE_LOSS_SUBSCRIBER 11u  // a subscriber failed and was switched off
#define SONDE_LOSS_DAMAGED 12u     // a chunk of the capture file does not match its checksum
#define SONDE_LOSS_LATE 13u        // came after the merge had passed its time; delivered out of order, not lost

typedef struct sonde_loss_t {
  uint64_t stream;   // 0: not of one stream
  uint64_t records;  // UINT64_MAX: unknown, then `bytes` bounds it
  uint64_t bytes;
  uint32_t cause;       // SONDE_LOSS_*
  uint32_t source;      // 0: this process; in a replay, 1 + the file's index
  uint64_t subscriber;  // for QUEUE_FULL and SUBSCRIBER, otherwise 0
} sonde_loss_t;

#endif
