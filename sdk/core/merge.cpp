// A merge is a subscription that holds batches back and walks their records through one heap.
//
// A record may go out when the newest one seen is kGraceNs ahead of it: by then every stream that is flushed in time
// has brought what came before. A stream that promises by watermarks holds the merge further back, up to the window.
#include "core/merge.h"

#include <sonde/merge.h>

#include <algorithm>
#include <map>
#include <memory>
#include <queue>
#include <vector>

#include "core/services.h"
#include "core/session.h"

namespace sonde::core {
namespace {

constexpr int64_t kGraceNs = 500'000'000;
constexpr uint64_t kDefaultWindow = 16 << 20;

// A kept batch and how many of its records have not gone out.
struct Held {
  const sonde_batch_t *batch = nullptr;
  uint64_t pending = 0;
};

struct Pending {
  int64_t begin_ns;
  uint64_t order;  // of arrival, to keep equal times stable
  Held *held;
  const sonde_record_t *record;
  int64_t end_ns;
  uint32_t repair;
};

struct Later {
  bool operator()(const Pending &left, const Pending &right) const {
    return left.begin_ns != right.begin_ns ? left.begin_ns > right.begin_ns : left.order > right.order;
  }
};

class Merge {
 public:
  Merge(const sonde_merge_options_t &options, Session &session)
      : interests_(options.interests, options.interests + options.interest_count),
        window_(options.window_bytes == 0 ? kDefaultWindow : options.window_bytes),
        on_record_(options.on_record),
        on_end_(options.on_end),
        user_(options.user),
        drop_user_(options.drop_user),
        session_(session),
        delivery_(service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE)) {}

  ~Merge() {
    while (!heap_.empty()) {
      release(heap_.top());
      heap_.pop();
    }
    if (drop_user_ != nullptr) drop_user_(user_);
  }

  // A registration that failed leaves `user` to its caller.
  void keep_user() { drop_user_ = nullptr; }

  const std::vector<sonde_interest_t> &interests() const { return interests_; }

  sonde_status take(const sonde_batch_t *batch) {
    if (stopped_) return SONDE_E_STOP;
    // The kept batch shares the records' memory with the delivered one, so pointers into it stay valid.
    auto held = std::make_unique<Held>();
    add_records(*batch, *held);
    if (held->pending != 0) {
      const sonde_batch_t *kept = nullptr;
      if (const sonde_status status = delivery_.retain(batch, &kept); status < 0) return status;
      held->batch = kept;
      held_bytes_ += kept->bytes;
      (void)held.release();
    }
    if (batch->watermark != 0)
      promises_[{batch->source, batch->stream}] = sonde_clock_ns(batch->clock, batch->watermark);
    newest_ = std::max(newest_, sonde_clock_ns(batch->clock, batch->last_time));
    int64_t frontier = newest_ - kGraceNs;
    for (const auto &[stream, promised] : promises_) frontier = std::min(frontier, promised);
    while (!heap_.empty() && !stopped_ && (heap_.top().begin_ns <= frontier || held_bytes_ > window_)) emit_first();
    return stopped_ ? SONDE_E_STOP : SONDE_OK;
  }

  void end() {
    while (!heap_.empty() && !stopped_) emit_first();
    if (on_end_ != nullptr) on_end_(user_);
  }

 private:
  bool wants(const sonde_record_t &record) const {
    for (const sonde_interest_t &interest : interests_) {
      if (interest.space == record.space && ((interest.types >> record.type) & 1) != 0) return true;
    }
    return false;
  }

  void add_records(const sonde_batch_t &batch, Held &held) {
    uint64_t next_repair = 0;
    for (const sonde_record_t *record = sonde_batch_next(&batch, nullptr); record != nullptr;
         record = sonde_batch_next(&batch, record)) {
      const auto offset = static_cast<uint64_t>(reinterpret_cast<const uint8_t *>(record) - batch.data);
      while (next_repair < batch.repair_count && batch.repairs[next_repair].offset < offset) ++next_repair;
      if (!wants(*record)) continue;
      Pending pending{sonde_clock_ns(batch.clock, record->time), order_++, &held, record, 0, 0};
      pending.end_ns = pending.begin_ns;
      if (next_repair < batch.repair_count && batch.repairs[next_repair].offset == offset) {
        const sonde_repair_t &repair = batch.repairs[next_repair];
        pending.begin_ns = sonde_clock_ns(batch.clock, repair.begin);
        pending.end_ns = sonde_clock_ns(batch.clock, repair.end);
        pending.repair = repair.reason;
      } else if (has_end(*record)) {
        const uint64_t end = *reinterpret_cast<const uint64_t *>(reinterpret_cast<const uint8_t *>(record) + 16);
        if (end > record->time) pending.end_ns = sonde_clock_ns(batch.clock, end);
      }
      heap_.push(pending);
      ++held.pending;
    }
  }

  // Types whose first fixed field is the end of their interval.
  static bool has_end(const sonde_record_t &record) {
    if (record.fixed8 < 3) return false;
    if (record.space == SONDE_SPACE_DEVICE) return true;
    if (record.space == SONDE_SPACE_HOST) return record.type == 1;
    return record.space == SONDE_SPACE_FRAMEWORK && record.type == 11;
  }

  void emit_first() {
    const Pending first = heap_.top();
    heap_.pop();
    sonde_merged_t merged{};
    merged.struct_size = sizeof(merged);
    merged.source = first.held->batch->source;
    merged.stream = first.held->batch->stream;
    merged.record = first.record;
    merged.clock = first.held->batch->clock;
    merged.begin_ns = first.begin_ns;
    merged.end_ns = first.end_ns;
    merged.repair = first.repair;
    merged.late = first.begin_ns < last_emitted_ ? 1 : 0;
    merged.session = first.held->batch->session;
    if (merged.late != 0) session_.ledger().add(merged.source, merged.stream, SONDE_LOSS_LATE, 0, 1, 0);
    last_emitted_ = std::max(last_emitted_, first.begin_ns);
    if (on_record_(user_, &merged) == SONDE_E_STOP) stopped_ = true;
    release(first);
  }

  void release(const Pending &pending) {
    Held *const held = pending.held;
    if (--held->pending != 0) return;
    held_bytes_ -= held->batch->bytes;
    (void)delivery_.release(held->batch);
    delete held;
  }

  const std::vector<sonde_interest_t> interests_;
  const uint64_t window_;
  sonde_status (*const on_record_)(void *, const sonde_merged_t *);
  void (*const on_end_)(void *);
  void *const user_;
  sonde_drop_user_t drop_user_;
  Session &session_;
  const sonde_delivery_service_t &delivery_;
  std::priority_queue<Pending, std::vector<Pending>, Later> heap_;
  std::map<std::pair<uint32_t, uint64_t>, int64_t> promises_;
  uint64_t order_ = 0;
  uint64_t held_bytes_ = 0;
  int64_t newest_ = 0;
  int64_t last_emitted_ = INT64_MIN;
  bool stopped_ = false;
};

sonde_status merge_subscribe(sonde_session_t *handle, const sonde_merge_options_t *options, uint64_t *out) {
  if (options == nullptr || out == nullptr) return fail(SONDE_E_INVALID, "merge.subscribe: options or out is NULL");
  if (options->struct_size < SONDE_NEED(sonde_merge_options_t, drop_user) || options->on_record == nullptr) {
    return fail(SONDE_E_INVALID, "merge.subscribe: struct_size is too small or on_record is NULL");
  }
  Session *const session = find_session(handle);
  if (session == nullptr) return SONDE_E_INVALID;
  return at_boundary([&]() -> sonde_status {
    auto merge = std::make_unique<Merge>(*options, *session);
    sonde_subscription_t subscription{};
    subscription.struct_size = sizeof(subscription);
    subscription.name = options->name == nullptr ? "merge" : options->name;
    subscription.interests = merge->interests().data();
    subscription.interest_count = static_cast<uint32_t>(merge->interests().size());
    subscription.on_batch = [](void *user, const sonde_batch_t *batch) -> sonde_status {
      return at_boundary([&] { return static_cast<Merge *>(user)->take(batch); });
    };
    subscription.on_end = [](void *user) { static_cast<Merge *>(user)->end(); };
    subscription.user = merge.get();
    subscription.drop_user = [](void *user) { delete static_cast<Merge *>(user); };
    auto id = session->subscribe(subscription);
    if (!id) {
      merge->keep_user();
      return fail(id.error());
    }
    (void)merge.release();
    *out = *id;
    return SONDE_OK;
  });
}

const sonde_merge_service_t kMerge = {sizeof(sonde_merge_service_t), 0, merge_subscribe};

}  // namespace

void install_merge() { add_service(SONDE_MERGE_SERVICE, &kMerge); }

}  // namespace sonde::core
