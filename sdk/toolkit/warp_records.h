// Readers of the packed entries in records sonde.access.warps and sonde.access.events, checked against their bounds.
//
//   toolkit::WarpAccess access;
//   for (toolkit::WarpRecords entries(record); entries.next(access);) {
//     access.for_each_lane([&](uint32_t lane, uint64_t address) { ... });
//   }
//
// Nothing is copied but the head of an entry; the views are valid as long as the bytes that they were made of.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <sonde/spaces/access.h>
#include <sonde/spaces/access_packed.h>

namespace sonde::toolkit {

// One access of a warp.
class WarpAccess {
 public:
  // Fields that are the same for all lanes; see access_packed.h.
  const sonde_warp_access_t &head() const { return head_; }

  uint32_t lanes() const { return static_cast<uint32_t>(std::popcount(head_.mask)); }
  bool has(uint32_t lane) const { return lane < 32 && (head_.mask >> lane & 1) != 0; }

  // 1 read, 2 write, 3 atomic, without the bits for scope and memory.
  uint32_t kind() const { return head_.access & 3u; }
  // 0 global, 1 shared, 2 local.
  uint32_t memory() const { return head_.access >> 4 & 3u; }

  // The address that a lane of the mask touches; 0 for another lane.
  uint64_t address(uint32_t lane) const;

  // The bytes that a lane of the mask wrote, `head().size` of them; empty for another lane or where no values follow.
  std::span<const uint8_t> value(uint32_t lane) const;

  // give(lane, address) for each lane of the mask, in order of lanes.
  template <typename Give>
  void for_each_lane(Give &&give) const {
    uint32_t rank = 0;
    for (uint32_t rest = head_.mask; rest != 0; rest &= rest - 1, ++rank) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
      give(lane, address_of(lane, rank));
    }
  }

 private:
  friend class WarpRecords;

  uint32_t rank(uint32_t lane) const {
    return static_cast<uint32_t>(std::popcount(head_.mask & ((uint32_t{1} << lane) - 1)));
  }
  uint64_t address_of(uint32_t lane, uint32_t rank) const;

  sonde_warp_access_t head_ = {};
  const uint8_t *addresses_ = nullptr;  // of lanes of the mask, where the form has any
  const uint8_t *values_ = nullptr;
};

// The entries of one record, first to last. An entry that contradicts its sizes ends the walk.
class WarpRecords {
 public:
  // Of a whole record of the type SONDE_ACCESS_WARPS; nothing when its span does not lie in it.
  explicit WarpRecords(const sonde_record_t *record);
  explicit WarpRecords(std::span<const uint8_t> data) : data_(data) {}

  // The next entry into `out`; false at the end, or where `damaged` is true from then on.
  bool next(WarpAccess &out);

  bool damaged() const { return damaged_; }
  // Bytes that were not read: 0 at the end of a good record.
  uint64_t unread() const { return data_.size() - at_; }

 private:
  bool damaged_ = false;  // before what its constructor finds out
  std::span<const uint8_t> data_;
  uint64_t at_ = 0;
};

// The entries of one record of device events.
class DeviceEvents {
 public:
  // Of a whole record of the type SONDE_ACCESS_EVENTS; nothing when its span does not lie in it.
  explicit DeviceEvents(const sonde_record_t *record);
  explicit DeviceEvents(std::span<const uint8_t> data) : data_(data) {}

  bool next(sonde_device_event_t &out);

  // The record's span is wrong, or bytes are left that are no whole entry.
  bool damaged() const { return damaged_; }
  uint64_t unread() const { return data_.size() - at_; }

 private:
  bool damaged_ = false;  // before what its constructor finds out
  std::span<const uint8_t> data_;
  uint64_t at_ = 0;
};

}  // namespace sonde::toolkit
