#include "store/batch_table.h"

#include <algorithm>
#include <unordered_map>

namespace sonde::store {
namespace {

constexpr uint64_t kHasWatermark = 1;
constexpr uint64_t kHasLosses = 2;
constexpr uint64_t kClockBytes = 36;

constexpr int64_t kHourNs = 3'600'000'000'000;
constexpr int64_t kDecadeNs = 10 * 366 * 24 * kHourNs;

// As sonde_clock_ns, for clocks and stamps that make no sense too: the sum wraps.
int64_t ns_of(const sonde_clock_t &clock, uint64_t raw) {
  const auto since = static_cast<uint64_t>(sonde_clock_duration_ns(&clock, clock.base_raw, raw));
  return static_cast<int64_t>(static_cast<uint64_t>(clock.base_ns) + since);
}

struct StreamState {
  uint64_t sequence = UINT64_MAX;
  uint64_t position = 0;
};

}  // namespace

uint32_t BatchTable::clock_index(const sonde_clock_t &clock) {
  for (size_t index = clocks.size(); index-- > 0;) {
    const sonde_clock_t &known = clocks[index];
    if (known.id == clock.id && known.base_raw == clock.base_raw && known.base_ns == clock.base_ns &&
        known.multiplier == clock.multiplier && known.shift == clock.shift && known.error_ppb == clock.error_ppb) {
      return static_cast<uint32_t>(index);
    }
  }
  clocks.push_back(clock);
  return static_cast<uint32_t>(clocks.size() - 1);
}

bool BatchTable::time_range(int64_t start_ns, int64_t &first_ns, int64_t &last_ns) const {
  bool found = false;
  for (const StoredBatch &batch : batches) {
    for (const uint64_t stamp : {batch.first_time, batch.last_time}) {
      const int64_t time = ns_of(clocks[batch.clock], stamp);
      const auto since = static_cast<int64_t>(static_cast<uint64_t>(time) - static_cast<uint64_t>(start_ns));
      if (since < -kHourNs || since > kDecadeNs) continue;
      first_ns = found ? std::min(first_ns, time) : time;
      last_ns = found ? std::max(last_ns, time) : time;
      found = true;
    }
  }
  return found;
}

void write_batch_table(const BatchTable &table, Bytes &out) {
  put_varint(out, table.clocks.size());
  for (const sonde_clock_t &clock : table.clocks) {
    put(out, clock.id);
    put(out, clock.base_raw);
    put(out, clock.base_ns);
    put(out, clock.multiplier);
    put(out, clock.shift);
    put(out, clock.error_ppb);
  }
  put_varint(out, table.batches.size());
  std::unordered_map<uint64_t, StreamState> streams;
  uint64_t time = 0;
  for (const StoredBatch &batch : table.batches) {
    StreamState &before = streams[batch.stream];
    const bool losses = batch.lost_ring != 0 || batch.lost_overwritten != 0;
    put_varint(out, (batch.watermark != 0 ? kHasWatermark : 0) | (losses ? kHasLosses : 0));
    put_varint(out, batch.stream);
    put_varint(out, batch.clock);
    put_varint(out, batch.bytes / 8);
    put_varint(out, batch.count);
    put_varint(out, zigzag(batch.sequence - (before.sequence + 1)));
    put_varint(out, zigzag(batch.position - (before.position + batch.bytes)));
    put_varint(out, zigzag(batch.first_time - time));
    put_varint(out, batch.last_time - batch.first_time);
    if (batch.watermark != 0) put_varint(out, zigzag(batch.watermark - batch.last_time));
    if (losses) {
      put_varint(out, batch.lost_ring);
      put_varint(out, batch.lost_overwritten);
    }
    before = {batch.sequence, batch.position};
    time = batch.first_time;
  }
}

bool read_batch_table(std::span<const uint8_t> encoded, uint64_t record_bytes, uint64_t record_count, BatchTable &out) {
  out.clear();
  ByteReader in(encoded);
  const uint64_t clocks = in.varint_up_to(encoded.size() / kClockBytes);
  for (uint64_t index = 0; index < clocks && in.good(); ++index) {
    sonde_clock_t clock{};
    clock.struct_size = sizeof clock;
    clock.id = in.get<uint32_t>();
    clock.base_raw = in.get<uint64_t>();
    clock.base_ns = in.get<int64_t>();
    clock.multiplier = in.get<uint64_t>();
    clock.shift = in.get<uint32_t>();
    clock.error_ppb = in.get<uint32_t>();
    if (clock.shift > 63) return false;
    out.clocks.push_back(clock);
  }
  const uint64_t batches = in.varint_up_to(record_count);
  std::unordered_map<uint64_t, StreamState> streams;
  uint64_t time = 0;
  uint64_t bytes = 0;
  uint64_t records = 0;
  for (uint64_t index = 0; index < batches && in.good(); ++index) {
    StoredBatch batch;
    const uint64_t flags = in.varint_up_to(kHasWatermark | kHasLosses);
    batch.stream = in.varint();
    batch.clock = static_cast<uint32_t>(in.varint_up_to(UINT32_MAX));
    batch.bytes = in.varint_up_to((record_bytes - bytes) / 8) * 8;
    batch.count = in.varint_up_to(record_count - records);
    StreamState &before = streams[batch.stream];
    batch.sequence = before.sequence + 1 + unzigzag(in.varint());
    batch.position = before.position + batch.bytes + unzigzag(in.varint());
    batch.first_time = time + unzigzag(in.varint());
    batch.last_time = batch.first_time + in.varint();
    if ((flags & kHasWatermark) != 0) batch.watermark = batch.last_time + unzigzag(in.varint());
    if ((flags & kHasLosses) != 0) {
      batch.lost_ring = in.varint();
      batch.lost_overwritten = in.varint();
    }
    if (batch.clock >= out.clocks.size() || batch.count == 0 || batch.bytes < batch.count * 16) return false;
    before = {batch.sequence, batch.position};
    time = batch.first_time;
    bytes += batch.bytes;
    records += batch.count;
    out.batches.push_back(batch);
  }
  return in.good() && in.at_end() && bytes == record_bytes && records == record_count;
}

}  // namespace sonde::store
