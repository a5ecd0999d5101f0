#include "core/batch.h"

#include <sonde/spaces/device.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace sonde::core {
namespace {

constexpr uint64_t kHourNs = 3'600'000'000'000;
constexpr uint64_t kMonthNs = 30 * 24 * kHourNs;

// Device records begin with their end stamp, so one check serves all of them.
static_assert(offsetof(sonde_device_kernel_t, end) == 16 && offsetof(sonde_device_copy_t, end) == 16 &&
              offsetof(sonde_device_set_t, end) == 16 && offsetof(sonde_device_sync_t, end) == 16 &&
              offsetof(sonde_device_graph_launch_t, end) == 16);

bool is_interval(const sonde_record_t &record) {
  return record.space == SONDE_SPACE_DEVICE && record.type <= SONDE_DEVICE_GRAPH_LAUNCH && record.fixed8 >= 3;
}

bool is_sentinel(uint64_t stamp) { return stamp == UINT64_MAX || stamp == uint64_t{1} << 63; }

bool is_well_formed(const sonde_record_t &record, uint64_t room) {
  return record.fixed8 >= 2 && record.fixed8 <= record.size8 && SONDE_RECORD_BYTES(&record) <= room &&
         record.space != 0 && record.space < SONDE_SPACE_COUNT && record.type != 0 && record.type < SONDE_TYPE_COUNT;
}

uint32_t doubt(uint64_t begin, uint64_t end, const sonde_clock_t &clock) {
  if (begin == 0 || end == 0) return SONDE_REPAIR_ZERO;
  if (is_sentinel(begin) || is_sentinel(end)) return SONDE_REPAIR_SENTINEL;
  if (end < begin) return SONDE_REPAIR_REVERSED;
  if (clock.base_raw != 0) {
    const int64_t since = sonde_clock_duration_ns(&clock, clock.base_raw, begin);
    if (since < -static_cast<int64_t>(kHourNs) || since > static_cast<int64_t>(kMonthNs)) return SONDE_REPAIR_OUTSIDE;
  }
  return 0;
}

}  // namespace

Survey survey(const uint8_t *data, uint64_t bytes, uint64_t enough) {
  Survey totals;
  uint64_t at = 0;
  // Neighbours mostly have the same sizes, space and type, which are one word: it is judged once, and the next
  // record's place does not wait for a load.
  uint64_t judged = 0;
  uint64_t size = 0;
  while (at < bytes && at < enough) {
    uint64_t word = 0;
    if (bytes - at < sizeof(sonde_record_t)) {
      totals.malformed = true;
      break;
    }
    const auto *const record = reinterpret_cast<const sonde_record_t *>(data + at);
    std::memcpy(&word, record, sizeof(word));
    if (size == 0 || word != judged) {
      if (!is_well_formed(*record, UINT64_MAX)) {
        totals.malformed = true;
        break;
      }
      judged = word;
      size = SONDE_RECORD_BYTES(record);
      totals.spaces |= uint64_t{1} << (record->space < 64 ? record->space : 0);
    }
    if (size > bytes - at) {
      totals.malformed = true;
      break;
    }
    ++totals.count;
    totals.first_time = std::min(totals.first_time, record->time);
    totals.last_time = std::max(totals.last_time, record->time);
    at += size;
  }
  totals.bytes = at;
  totals.has_device = ((totals.spaces >> SONDE_SPACE_DEVICE) & 1) != 0;
  if (totals.count == 0) totals.first_time = 0;
  return totals;
}

Survey survey_part(const uint8_t *data, uint64_t bytes, uint64_t available) {
  Survey totals = survey(data, bytes, bytes);
  if (totals.malformed && bytes < available) {
    const uint64_t rest = bytes - totals.bytes;
    const auto *const record = reinterpret_cast<const sonde_record_t *>(data + totals.bytes);
    totals.malformed = rest >= sizeof(sonde_record_t) && !is_well_formed(*record, available - totals.bytes);
  }
  return totals;
}

std::vector<sonde_repair_t> find_repairs(const uint8_t *data, uint64_t bytes, const sonde_clock_t &clock) {
  std::vector<sonde_repair_t> repairs;
  uint64_t last_good_end = 0;
  for (uint64_t at = 0; at < bytes;) {
    const auto *const record = reinterpret_cast<const sonde_record_t *>(data + at);
    if (is_interval(*record)) {
      const uint64_t begin = record->time;
      const uint64_t end = *reinterpret_cast<const uint64_t *>(data + at + 16);
      const uint32_t reason = doubt(begin, end, clock);
      if (reason == 0) {
        last_good_end = end;
      } else {
        // A reversed interval keeps its begin; one without any time is put where its neighbour ended. Its length is
        // unknown in every case, so it is 0.
        const uint64_t place = reason == SONDE_REPAIR_REVERSED ? begin
                               : last_good_end != 0            ? last_good_end
                                                               : clock.base_raw;
        repairs.push_back({at, place, place, reason, 0});
      }
    }
    at += SONDE_RECORD_BYTES(record);
  }
  return repairs;
}

BatchRef make_batch(const BatchInfo &info, const Survey &totals, BufferRef buffer, sonde_session_t *session) {
  auto *const batch = new Batch;
  batch->buffer = std::move(buffer);
  batch->clock = info.clock;
  sonde_batch_t &view = batch->view;
  view.struct_size = sizeof(sonde_batch_t);
  view.source = info.source;
  view.stream = info.stream;
  view.sequence = info.sequence;
  view.data = batch->buffer.data();
  view.bytes = totals.bytes;
  view.count = totals.count;
  view.first_time = totals.first_time;
  view.last_time = totals.last_time;
  view.position = info.position;
  view.watermark = info.watermark;
  view.spaces = totals.spaces;
  view.clock = &batch->clock;
  if (totals.has_device) batch->repairs = find_repairs(view.data, view.bytes, batch->clock);
  view.repairs = batch->repairs.data();
  view.repair_count = batch->repairs.size();
  view.lost_ring = info.lost_ring;
  view.lost_overwritten = info.lost_overwritten;
  view.session = session;
  return BatchRef(batch);
}

}  // namespace sonde::core
