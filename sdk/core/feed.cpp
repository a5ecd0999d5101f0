#include "core/feed.h"

#include "core/session.h"

namespace sonde::core {

Feed::Feed(sonde_session_t *session) : session_(*find_session(session)) {}

uint32_t Feed::add_source() { return session_.add_source(); }

void Feed::set_string(uint32_t source, uint32_t id, std::string_view text) { session_.set_string(source, id, text); }

BufferRef Feed::acquire(uint64_t bytes) { return session_.pool().acquire(bytes, UINT64_MAX); }

void Feed::deliver(FedBatch batch) {
  BatchInfo info;
  info.source = batch.source;
  info.stream = batch.stream;
  info.sequence = batch.sequence;
  info.position = batch.position;
  info.watermark = batch.watermark;
  info.bytes = batch.bytes;
  info.lost_ring = batch.lost_ring;
  info.lost_overwritten = batch.lost_overwritten;
  info.clock = batch.clock;
  session_.feed(info, std::move(batch.buffer), true);
}

void Feed::lose(const sonde_loss_t &loss) {
  session_.ledger().add(loss.source, loss.stream, loss.cause, loss.subscriber, loss.records, loss.bytes);
}

void Feed::drain() { session_.drain_subscribers(UINT64_MAX); }

}  // namespace sonde::core
