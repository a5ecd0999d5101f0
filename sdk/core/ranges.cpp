#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/claims.h"
#include "core/error.h"

namespace sonde::core {
namespace {

struct Watcher {
  uint64_t number;
  void (*changed)(void *user, const sonde_range_t *range, uint32_t live);
  void *user;
  sonde_drop_user_t drop_user;
};

// One mutex for the table and the calls, so that every watcher sees changes in the one order in which they happened.
struct Ranges {
  std::mutex mutex;
  std::atomic<uint32_t> watched{0};
  std::list<Watcher> watchers;
  std::map<std::pair<uint32_t, uint64_t>, sonde_range_t> live;  // by (kind, address)
  uint64_t last_ordinal = 0;
  uint64_t last_watch = 0;

  void tell(const sonde_range_t &range, uint32_t is_live) {
    for (const Watcher &watcher : watchers) watcher.changed(watcher.user, &range, is_live);
  }
};

// Never destroyed: allocators free while the process ends.
Ranges &ranges() {
  static Ranges *const instance = new Ranges;
  return *instance;
}

sonde_status announce(const sonde_range_t *range, uint64_t *ordinal) {
  if (ordinal != nullptr) *ordinal = 0;
  if (range == nullptr || range->struct_size < SONDE_NEED(sonde_range_t, name)) {
    return fail(SONDE_E_INVALID, "ranges.announce: no range, or its struct_size is too small");
  }
  Ranges &all = ranges();
  if (all.watched.load(std::memory_order_acquire) == 0) return SONDE_OK;
  if (range->bytes == 0 || range->address + range->bytes < range->address) {
    return fail(SONDE_E_INVALID, "ranges.announce: " + std::to_string(range->bytes) + " bytes at " +
                                     std::to_string(range->address) + " are no range of addresses");
  }
  return at_boundary([&]() -> sonde_status {
    const std::lock_guard lock(all.mutex);
    if (all.watchers.empty()) return SONDE_OK;
    sonde_range_t entry = {};
    entry.struct_size = sizeof(entry);
    entry.kind = range->kind;
    entry.address = range->address;
    entry.bytes = range->bytes;
    entry.device = range->device;
    entry.name = range->name;
    entry.ordinal = all.last_ordinal + 1;
    const auto [place, added] = all.live.try_emplace({entry.kind, entry.address}, entry);
    if (!added) {
      all.tell(place->second, 0);
      place->second = entry;
    }
    all.last_ordinal = entry.ordinal;
    if (ordinal != nullptr) *ordinal = entry.ordinal;
    all.tell(entry, 1);
    return SONDE_OK;
  });
}

sonde_status retire(uint32_t kind, uint64_t address) {
  Ranges &all = ranges();
  if (all.watched.load(std::memory_order_acquire) == 0) return SONDE_OK;
  return at_boundary([&]() -> sonde_status {
    const std::lock_guard lock(all.mutex);
    const auto found = all.live.find({kind, address});
    if (found == all.live.end()) {
      return fail(SONDE_E_NOT_FOUND, "ranges.retire: no live range of kind " + std::to_string(kind) + " begins at " +
                                         std::to_string(address));
    }
    const sonde_range_t gone = found->second;
    all.live.erase(found);
    all.tell(gone, 0);
    return SONDE_OK;
  });
}

sonde_status watch(void (*changed)(void *user, const sonde_range_t *range, uint32_t live), void *user,
                   sonde_drop_user_t drop_user, uint64_t *out) {
  if (changed == nullptr || out == nullptr) return fail(SONDE_E_INVALID, "ranges.watch: changed or watch is NULL");
  return at_boundary([&]() -> sonde_status {
    Ranges &all = ranges();
    const std::lock_guard lock(all.mutex);
    all.watchers.push_back({++all.last_watch, changed, user, drop_user});
    all.watched.store(1, std::memory_order_release);
    *out = all.last_watch;
    for (const auto &[key, range] : all.live) changed(user, &range, 1);
    return SONDE_OK;
  });
}

sonde_status unwatch(uint64_t number) {
  return at_boundary([&]() -> sonde_status {
    Ranges &all = ranges();
    Watcher gone = {};
    {
      const std::lock_guard lock(all.mutex);
      for (auto watcher = all.watchers.begin(); watcher != all.watchers.end(); ++watcher) {
        if (watcher->number != number) continue;
        gone = *watcher;
        all.watchers.erase(watcher);
        break;
      }
      if (gone.number == 0) return fail(SONDE_E_NOT_FOUND, "ranges.unwatch: no watch " + std::to_string(number));
      if (all.watchers.empty()) {
        all.watched.store(0, std::memory_order_release);
        all.live.clear();
      }
    }
    if (gone.drop_user != nullptr) gone.drop_user(gone.user);
    return SONDE_OK;
  });
}

uint32_t watched() { return ranges().watched.load(std::memory_order_acquire); }

const sonde_ranges_service_t kService = {sizeof(sonde_ranges_service_t), 0, announce, retire, watch, unwatch, watched};

}  // namespace

const sonde_ranges_service_t &ranges_service() { return kService; }

void lock_ranges() { ranges().mutex.lock(); }
void unlock_ranges() { ranges().mutex.unlock(); }

// Fresh containers over the old ones, whose nodes are left alone: a forked child must not free.
void forget_ranges() {
  ranges().watched.store(0, std::memory_order_release);
  std::construct_at(&ranges().watchers);
  std::construct_at(&ranges().live);
}

}  // namespace sonde::core
