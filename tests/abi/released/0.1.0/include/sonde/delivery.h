// Service sonde.delivery/1: receiving records.
//
// A subscriber has a thread and a bounded queue of its own. It receives batches: contiguous records of one stream, in
// the order they were emitted. A slow subscriber loses whole batches, counted for it alone, and delays nobody; in a
// replay, and with SONDE_QUEUE_WAIT, the feed waits instead.
// A batch holds everything that anybody wanted; a subscriber skips what is not for it (sonde_batch_next walks it).
#ifndef SONDE_DELIVERY_H
#define SONDE_DELIVERY_H

#include <sonde/base.h>
#include <sonde/clock.h>
#include <sonde/record.h>

SONDE_BEGIN_DECLS

#define SONDE_DELIVERY_SERVICE "sonde.delivery/1"

#define SONDE_REPAIR_ZERO 1u      // begin or end is 0: the runtime could not take the time
#define SONDE_REPAIR_REVERSED 2u  // end before begin
#define SONDE_REPAIR_SENTINEL 3u  // a value that stands for "none" (INT64_MIN, UINT64_MAX)
#define SONDE_REPAIR_OUTSIDE 4u   // an hour before the session, or 30 days after it began: another clock

// A time stamp that cannot be right. The record keeps its raw value; analyses use the repaired interval, whose
// length is 0 because nothing is known of it, and count such records apart.
typedef struct sonde_repair_t {
  uint64_t offset;  // of the record in the batch, bytes
  uint64_t begin;   // repaired, raw units of the batch's clock
  uint64_t end;     // repaired
  uint32_t reason;  // SONDE_REPAIR_*
  uint32_t reserved;
} sonde_repair_t;

typedef struct sonde_batch_t {
  uint32_t struct_size;
  uint32_t source;    // 0: this process; in a replay, 1 + the file's index
  uint64_t stream;    // within the source
  uint64_t sequence;  // of the stream, from 0; a gap is a batch lost to this subscriber
  const uint8_t *data;
  uint64_t bytes;
  uint64_t count;       // records
  uint64_t first_time;  // least raw `time` in the batch
  uint64_t last_time;   // greatest
  uint64_t position;    // bytes of the stream up to the end of this batch, dropped records not counted
  uint64_t watermark;   // no later record of the stream begins before it; 0: no promise
  uint64_t spaces;      // bit s: a record of space s < 64 is in it; bit 0: one of a registered space >= 64
  const sonde_clock_t *clock;
  const sonde_repair_t *repairs;  // sorted by offset
  uint64_t repair_count;
  uint64_t lost_ring;         // records dropped for want of room since the stream's last batch
  uint64_t lost_overwritten;  // records overwritten since the stream's last batch
  uint64_t lost_queue;        // batches this subscriber was too slow for since the last one it got, of any stream
  sonde_session_t *session;
} sonde_batch_t;

typedef struct sonde_interest_t {
  uint32_t space;
  uint32_t level;  // SONDE_LEVEL_*, usually SONDE_LEVEL_RECORDS
  uint64_t types;  // bit t: type t; UINT64_MAX: all
} sonde_interest_t;

#define SONDE_QUEUE_DROP 0u  // a full queue loses the batch
#define SONDE_QUEUE_WAIT 1u  // a full queue holds the delivery thread up: for writers that must have everything

typedef struct sonde_subscription_t {
  uint32_t struct_size;
  uint32_t queue_policy;              // SONDE_QUEUE_*
  uint64_t queue_bytes;               // bound of the queue; 0: a quarter of the session's memory cap
  const char *name;                   // copied
  const sonde_interest_t *interests;  // copied
  uint32_t interest_count;
  uint32_t reserved;
  // One batch, valid until it returns (retain it to keep it). An error other than SONDE_E_STOP is counted; after 16
  // in a row, or after SONDE_E_STOP, the subscription ends.
  // [delivery]
  sonde_status (*on_batch)(void *user, const sonde_batch_t *batch);
  // After the last batch, on the same thread; may be NULL.
  // [delivery]
  void (*on_end)(void *user);
  void *user;
  sonde_drop_user_t drop_user;  // may be NULL
} sonde_subscription_t;

typedef struct sonde_subscription_status_t {
  uint32_t struct_size;
  uint32_t running;  // 1 until the subscription ended
  uint64_t batches;
  uint64_t records;
  uint64_t lost_batches;
  uint64_t lost_records;
  uint64_t errors;
  uint64_t busy_ns;     // time inside on_batch
  uint64_t longest_ns;  // longest single on_batch
} sonde_subscription_status_t;

typedef struct sonde_delivery_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // [control]
  sonde_status (*subscribe)(sonde_session_t *session, const sonde_subscription_t *subscription, uint64_t *out);

  // Ends a subscription: no call after it returns, `user` is dropped. Called from its own on_batch it takes effect
  // when that returns.
  // [any]
  sonde_status (*unsubscribe)(sonde_session_t *session, uint64_t subscription);

  // [any]
  sonde_status (*status)(sonde_session_t *session, uint64_t subscription, sonde_subscription_status_t *out);

  // Keeps a batch beyond its callback without copying; the kept one counts against the memory cap until released.
  // [delivery]
  sonde_status (*retain)(const sonde_batch_t *batch, const sonde_batch_t **out);

  // [any]
  sonde_status (*release)(const sonde_batch_t *kept);
} sonde_delivery_service_t;

// Walks a batch: NULL gives the first record; NULL comes back after the last. The host has checked every size.
// [any]
static inline const sonde_record_t *sonde_batch_next(const sonde_batch_t *batch, const sonde_record_t *record) {
  const uint8_t *const next = record == NULL ? batch->data : (const uint8_t *)record + SONDE_RECORD_BYTES(record);
  return next < batch->data + batch->bytes ? (const sonde_record_t *)(const void *)next : NULL;
}

SONDE_END_DECLS

#endif
