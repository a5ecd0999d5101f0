#include "warp_records.h"

namespace sonde::toolkit {

namespace {

constexpr uint64_t padded(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

// Bytes of a lane's address that follow the head.
constexpr uint64_t address_bytes(uint32_t form) {
  return form == SONDE_WARP_OFFSETS32 ? 4 : form == SONDE_WARP_ADDRESS64 ? 8 : 0;
}

// The record's `data`; `damaged` when the record is none of `type` or its span lies outside.
std::span<const uint8_t> data_of(const sonde_record_t *record, uint32_t type, bool &damaged) {
  const auto *const bytes = reinterpret_cast<const uint8_t *>(record);
  static_assert(sizeof(sonde_access_warps_t) == sizeof(sonde_access_events_t));
  static_assert(offsetof(sonde_access_warps_t, data) == offsetof(sonde_access_events_t, data));
  const uint64_t size = SONDE_RECORD_BYTES(record);
  damaged = true;
  if (record->space != SONDE_SPACE_ACCESS || record->type != type || record->fixed8 > record->size8) return {};
  if (!SONDE_RECORD_HAS(record, sonde_access_warps_t, data)) return {};
  sonde_span_t span;
  std::memcpy(&span, bytes + offsetof(sonde_access_warps_t, data), sizeof(span));
  if (span.count != 0 && (span.offset < record->fixed8 * uint64_t{8} || span.offset > size)) return {};
  if (span.count != 0 && span.count > size - span.offset) return {};
  damaged = false;
  return span.count != 0 ? std::span(bytes + span.offset, span.count) : std::span<const uint8_t>();
}

}  // namespace

uint64_t WarpAccess::address_of(uint32_t lane, uint32_t rank) const {
  switch (head_.form) {
    case SONDE_WARP_OFFSETS32: {
      int32_t offset;
      std::memcpy(&offset, addresses_ + rank * sizeof(offset), sizeof(offset));
      return head_.base + static_cast<uint64_t>(int64_t{offset});
    }
    case SONDE_WARP_ADDRESS64: {
      uint64_t address;
      std::memcpy(&address, addresses_ + rank * sizeof(address), sizeof(address));
      return address;
    }
    default:
      return head_.base + static_cast<uint64_t>(int64_t{head_.stride} * lane);
  }
}

uint64_t WarpAccess::address(uint32_t lane) const { return has(lane) ? address_of(lane, rank(lane)) : 0; }

std::span<const uint8_t> WarpAccess::value(uint32_t lane) const {
  if (values_ == nullptr || !has(lane)) return {};
  return {values_ + uint64_t{rank(lane)} * head_.size, head_.size};
}

WarpRecords::WarpRecords(const sonde_record_t *record) : data_(data_of(record, SONDE_ACCESS_WARPS, damaged_)) {}

bool WarpRecords::next(WarpAccess &out) {
  if (damaged_ || at_ == data_.size()) return false;
  damaged_ = true;
  const uint64_t left = data_.size() - at_;
  if (left < sizeof(sonde_warp_access_t)) return false;
  const uint8_t *const entry = data_.data() + at_;
  sonde_warp_access_t head;
  std::memcpy(&head, entry, sizeof(head));
  const uint64_t bytes = head.size8 * uint64_t{8};
  if (bytes > left || head.form > SONDE_WARP_ADDRESS64 || head.values > 1) return false;
  const auto lanes = static_cast<uint64_t>(std::popcount(head.mask));
  const uint64_t addresses = padded(lanes * address_bytes(head.form));
  const uint64_t values = head.values != 0 ? padded(lanes * head.size) : 0;
  if (sizeof(head) + addresses + values > bytes) return false;
  damaged_ = false;
  at_ += bytes;
  out.head_ = head;
  out.addresses_ = entry + sizeof(head);
  out.values_ = head.values != 0 ? entry + sizeof(head) + addresses : nullptr;
  return true;
}

DeviceEvents::DeviceEvents(const sonde_record_t *record) : data_(data_of(record, SONDE_ACCESS_EVENTS, damaged_)) {}

bool DeviceEvents::next(sonde_device_event_t &out) {
  if (damaged_ || at_ == data_.size()) return false;
  if (unread() < sizeof(out)) {
    damaged_ = true;
    return false;
  }
  std::memcpy(&out, data_.data() + at_, sizeof(out));
  at_ += sizeof(out);
  return true;
}

}  // namespace sonde::toolkit
