#include "stream_order.h"

#include <sonde/spaces/device.h>

#include <algorithm>

namespace sonde::memory {
namespace {

// The legacy default stream, as 0 or by its handle (cudaStreamLegacy).
bool is_default(uint64_t stream) { return stream <= 1; }

}  // namespace

void StreamOrder::sync(uint32_t source, uint32_t kind, uint64_t stream, int64_t begin_ns, int64_t end_ns) {
  Syncs &syncs = syncs_[source];
  if (syncs.items.size() == kMostSyncs) {
    syncs.items.pop_front();
    syncs.is_cut = true;
  }
  syncs.items.push_back({begin_ns, std::max(begin_ns, end_ns), stream, kind});
}

void StreamOrder::free_elsewhere(const StreamCase &found) {
  if (cases_.size() == kMostCases) {
    ++not_kept_;
    return;
  }
  cases_.push_back(found);
}

Ordering StreamOrder::order(const StreamCase &found, const Syncs &syncs) {
  const auto first = std::lower_bound(syncs.items.begin(), syncs.items.end(), found.use.time_ns,
                                      [](const Sync &sync, int64_t time) { return sync.begin_ns < time; });
  if (syncs.is_cut && first == syncs.items.begin()) return Ordering::kUnknown;
  const bool has_default = is_default(found.use.stream) || is_default(found.free_stream);
  Ordering best = has_default ? Ordering::kPossible : Ordering::kNotShown;
  for (auto sync = first; sync != syncs.items.end() && sync->begin_ns <= found.free_ns; ++sync) {
    switch (sync->kind) {
      case SONDE_SYNC_CONTEXT:
        if (sync->end_ns <= found.free_ns) return Ordering::kShown;
        break;
      case SONDE_SYNC_STREAM:
        if (sync->stream == found.use.stream && sync->end_ns <= found.free_ns) return Ordering::kShown;
        break;
      case SONDE_SYNC_STREAM_WAIT_EVENT:
        if (sync->stream == found.free_stream) best = Ordering::kPossible;
        break;
      case SONDE_SYNC_EVENT:
        if (sync->end_ns <= found.free_ns) best = Ordering::kPossible;
        break;
      default:
        break;
    }
  }
  return best;
}

void StreamOrder::finish() {
  for (auto &[source, syncs] : syncs_) {
    std::stable_sort(syncs.items.begin(), syncs.items.end(),
                     [](const Sync &a, const Sync &b) { return a.begin_ns < b.begin_ns; });
  }
  for (StreamCase &found : cases_) {
    const auto syncs = syncs_.find(found.source);
    found.ordering = syncs == syncs_.end() ? Ordering::kUnknown : order(found, syncs->second);
  }
}

uint64_t StreamOrder::count(Ordering ordering) const {
  return static_cast<uint64_t>(
      std::count_if(cases_.begin(), cases_.end(), [&](const StreamCase &found) { return found.ordering == ordering; }));
}

const char *name_of(Ordering ordering) {
  switch (ordering) {
    case Ordering::kShown:
      return "shown";
    case Ordering::kPossible:
      return "possible";
    case Ordering::kNotShown:
      return "not_shown";
    case Ordering::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace sonde::memory
