#include "port.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <sonde/ledger.h>
#include <sonde/spaces/device.h>
#include <sonde/spaces/framework.h>
#include <sonde/spaces/host.h>
#include <sonde/spaces/memory.h>
#include <sonde/spaces/object.h>
#include <sonde/spaces/session.h>

#include "common/services.h"
#include "launches.h"
#include "nvtx.h"

namespace sonde::cuda {

namespace {

constexpr char kOrigin[] = "cuda";
constexpr uint32_t kForeignClock = SONDE_CLOCK_FIRST_FOREIGN;

// Records of one activity buffer, as buffers of the session.
class SubmitOutput final : public RecordOutput {
 public:
  SubmitOutput(const Port &port, size_t activity_bytes, uint64_t watermark)
      : port_(port), watermark_(watermark), left_(activity_bytes) {}

  void finish() {
    if (base_ == nullptr) return;
    const auto *capture = services().capture;
    const auto bytes = static_cast<uint64_t>(cursor_ - base_);
    if (bytes != 0) {
      capture->submit(port_.session(), port_.stream(), base_, bytes, watermark_);
    } else {
      capture->discard(port_.session(), base_);
    }
    base_ = cursor_ = limit_ = nullptr;
  }

  uint64_t lost_records() const { return lost_records_; }
  uint64_t lost_bytes() const { return lost_bytes_; }

 private:
  // Batches of this size are large enough to cost little each, and small enough to leave the cap to others.
  static constexpr size_t kMostBytes = 256 << 10;
  static constexpr size_t kLeastBytes = 4 << 10;

  bool refill(uint32_t bytes) override {
    finish();
    if (!full_) {
      const size_t ask = std::max<size_t>(std::clamp(left_, kLeastBytes, kMostBytes), bytes);
      left_ -= std::min(left_, ask);
      if (services().capture->acquire(port_.session(), port_.stream(), ask, &base_) == SONDE_OK) {
        cursor_ = base_;
        limit_ = base_ + ask;
        return true;
      }
      // The session has no room and acquire has waited for it already: the rest of this buffer is lost.
      full_ = true;
      base_ = nullptr;
    }
    ++lost_records_;
    lost_bytes_ += bytes;
    return false;
  }

  const Port &port_;
  uint64_t watermark_;
  size_t left_;  // of the activity buffer, by estimate: records shrink or stay on their way
  uint8_t *base_ = nullptr;
  bool full_ = false;
  uint64_t lost_records_ = 0;
  uint64_t lost_bytes_ = 0;
};

}  // namespace

// ---- what the session wants ----------------------------------------------------------------------------------------

Wants Port::read_wants() const {
  Wants wants;
  const auto ask = [&](uint32_t space, uint32_t last_type) {
    for (uint32_t type = 1; type <= last_type; ++type) {
      uint32_t level = SONDE_LEVEL_NONE;
      if (services().capture->level(session_, space, type, &level) == SONDE_OK && level != SONDE_LEVEL_NONE) {
        wants.add(space, type);
      }
    }
  };
  ask(SONDE_SPACE_DEVICE, SONDE_DEVICE_THRASH);
  ask(SONDE_SPACE_HOST, SONDE_HOST_CALL);
  ask(SONDE_SPACE_OBJECT, SONDE_OBJECT_GRAPH);
  if (options_.memory) ask(SONDE_SPACE_MEMORY, SONDE_MEMORY_POOL_TRIM);
  const auto drop = [&](uint32_t type) { wants.types[SONDE_SPACE_DEVICE] &= ~(uint64_t{1} << type); };
  if (!options_.sync) drop(SONDE_DEVICE_SYNC);
  if (options_.graph_nodes) drop(SONDE_DEVICE_GRAPH_LAUNCH);
  if (!options_.managed) {
    for (const uint32_t type : {SONDE_DEVICE_PAGE_FAULT, SONDE_DEVICE_MIGRATION, SONDE_DEVICE_THRASH}) drop(type);
  }
  if (!options_.api && !options_.launches) wants.types[SONDE_SPACE_HOST] = 0;
  return wants;
}

CollectorNeeds Port::needs_of(const Wants &wants) const {
  CollectorNeeds needs;
  const auto map = [&](uint32_t space, uint32_t type, uint32_t kind) {
    if (wants.has(space, type)) needs.kinds.set(kind);
  };
  map(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, kind::kConcurrentKernel);
  map(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY, kind::kMemcpy);
  map(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY, kind::kMemcpyPeer);
  map(SONDE_SPACE_DEVICE, SONDE_DEVICE_SET, kind::kMemset);
  map(SONDE_SPACE_DEVICE, SONDE_DEVICE_SYNC, kind::kSynchronization);
  map(SONDE_SPACE_DEVICE, SONDE_DEVICE_GRAPH_LAUNCH, kind::kGraphTrace);
  map(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, kind::kMemory);
  map(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, kind::kMemory);
  map(SONDE_SPACE_MEMORY, SONDE_MEMORY_POOL_CREATE, kind::kMemoryPool);
  map(SONDE_SPACE_MEMORY, SONDE_MEMORY_POOL_DESTROY, kind::kMemoryPool);
  map(SONDE_SPACE_MEMORY, SONDE_MEMORY_POOL_TRIM, kind::kMemoryPool);
  map(SONDE_SPACE_OBJECT, SONDE_OBJECT_DEVICE, kind::kDevice);
  map(SONDE_SPACE_OBJECT, SONDE_OBJECT_CONTEXT, kind::kContext);
  map(SONDE_SPACE_OBJECT, SONDE_OBJECT_STREAM, kind::kStream);
  if (wants.has(SONDE_SPACE_HOST, SONDE_HOST_CALL)) {
    if (options_.api) {
      for (const uint32_t kind : {kind::kRuntime, kind::kDriver, kind::kOverhead}) needs.kinds.set(kind);
    } else {
      needs.runtime_launches = needs.driver_launches = true;
    }
  }
  needs.budget = options_.budget;
  needs.managed = wants.has(SONDE_SPACE_DEVICE, SONDE_DEVICE_PAGE_FAULT) ||
                  wants.has(SONDE_SPACE_DEVICE, SONDE_DEVICE_MIGRATION) ||
                  wants.has(SONDE_SPACE_DEVICE, SONDE_DEVICE_THRASH);
  if (options_.objects) {
    needs.graphs = wants.has(SONDE_SPACE_OBJECT, SONDE_OBJECT_GRAPH);
    needs.modules = wants.has(SONDE_SPACE_OBJECT, SONDE_OBJECT_MODULE);
    needs.streams = wants.has(SONDE_SPACE_OBJECT, SONDE_OBJECT_STREAM);
  } else {
    map(SONDE_SPACE_OBJECT, SONDE_OBJECT_MODULE, kind::kModule);
  }
  return needs;
}

// ---- life ----------------------------------------------------------------------------------------------------------

sonde_status Port::start() {
  std::unique_lock<std::mutex> hold(life_mutex_);
  if (running_) return services().host->set_error(SONDE_E_STATE, "cuda: the port is started already");
  Sink sink;
  sink.session = session_;
  sink.nvtx = options_.nvtx;
  const auto *capture = services().capture;
  capture->demand(session_, SONDE_SPACE_FRAMEWORK, &sink.framework);
  capture->demand(session_, SONDE_SPACE_OBJECT, &sink.object);
  sink_ = sinks().add(sink);
  if (sink_ == Sinks::kNone) {
    return services().host->set_error(SONDE_E_FULL, "cuda: more than 16 sessions capture CUDA in this process");
  }
  process_ = getpid();
  running_ = true;
  hold.unlock();
  return demand();
}

sonde_status Port::demand() {
  if (getpid() != process_) return SONDE_OK;
  std::lock_guard<std::mutex> life(life_mutex_);
  if (!running_) return SONDE_OK;
  const Wants wants = read_wants();
  CollectorNeeds needs = needs_of(wants);
  {
    std::lock_guard<std::mutex> hold(wants_mutex_);
    if (wants == wants_) return SONDE_OK;
    wants_ = wants;
    needs_ = needs;
  }
  if (attached_) {
    Collector::instance().refresh();
  } else if (needs.any()) {
    attached_ = true;
    Collector::instance().attach(this, options_.collector);
  }
  return SONDE_OK;
}

CollectorNeeds Port::needs() const {
  std::lock_guard<std::mutex> hold(wants_mutex_);
  return needs_;
}

sonde_status Port::flush(bool forced) {
  if (!attached_ || getpid() != process_) return SONDE_OK;
  const sonde_status status = Collector::instance().flush(forced);
  if (status != SONDE_OK) services().host->set_error(status, "cuda: CUPTI did not return from a flush in time");
  return status;
}

sonde_status Port::stop() {
  const bool forked = getpid() != process_;
  std::unique_lock<std::mutex> life(life_mutex_, std::defer_lock);
  if (!forked) life.lock();
  if (!running_) return SONDE_OK;
  running_ = false;
  sinks().remove(sink_);
  sink_ = Sinks::kNone;
  if (!attached_ || forked) return SONDE_OK;
  attached_ = false;
  const sonde_status status = Collector::instance().detach(this);
  if (status != SONDE_OK) services().host->set_error(status, "cuda: CUPTI did not return from the last flush in time");
  return status;
}

// ---- for the collector ---------------------------------------------------------------------------------------------

void Port::attached(bool vendor_clock) {
  const uint32_t clock = vendor_clock ? kForeignClock : SONDE_CLOCK_STAMP;
  const auto *capture = services().capture;
  if (stream_ != 0 && clock == clock_) return;
  if (stream_ != 0) capture->close_stream(session_, stream_);
  clock_ = clock;
  stream_ = 0;
  attached_stamp_ = Collector::instance().now();
  attached_launches_ = launches_counted();
  if (vendor_clock) {
    if (const CuptiApi *api = Collector::instance().api()) pair_clock(*api);
  }
  if (capture->open_stream(session_, kOrigin, clock, &stream_) != SONDE_OK) {
    note(2, std::string("the session takes no stream: ") + services().host->last_error());
    stream_ = 0;
  }
}

// late_after in raw units: one second of a stamp clock is 10^9 << shift / multiplier.
uint64_t Port::lag() const {
  if (clock_ != SONDE_CLOCK_STAMP) return options_.late_after_ns;
  sonde_clock_t line = {};
  line.struct_size = sizeof(line);
  if (services().capture->clock(session_, SONDE_CLOCK_STAMP, &line) != SONDE_OK || line.multiplier == 0) {
    return UINT64_MAX;
  }
  const auto raw = (static_cast<sonde_wide_t>(options_.late_after_ns) << line.shift) / line.multiplier;
  return static_cast<uint64_t>(raw);
}

void Port::consume(Decoder &decoder, uint8_t *buffer, size_t valid_bytes, uint64_t now, uint64_t flushed) {
  if (stream_ == 0) return;
  Wants wants;
  {
    std::lock_guard<std::mutex> hold(wants_mutex_);
    wants = wants_;
  }
  if (lag_ == 0) lag_ = lag();
  SubmitOutput output(*this, valid_bytes, flushed > lag_ ? flushed - lag_ : 0);
  const DecodeCounts counts = decoder.decode(buffer, valid_bytes, wants, now, output);
  output.finish();
  if (output.lost_records() != 0) lose(SONDE_LOSS_MEMORY_CAP, output.lost_records(), output.lost_bytes());
  if (counts.malformed != 0) lose(SONDE_LOSS_MALFORMED, counts.malformed, 0);
  unknown_ += counts.unknown;
  if (counts.unknown != 0) unknown_kind_ = counts.unknown_kind;
}

void Port::end_window(const Window &window) {
  if (options_.budget <= 0 || stream_ == 0) return;
  const auto *capture = services().capture;
  uint8_t *room = nullptr;
  if (capture->acquire(session_, stream_, sizeof(sonde_session_window_t), &room) != SONDE_OK) {
    lose(SONDE_LOSS_MEMORY_CAP, 1, sizeof(sonde_session_window_t));
    return;
  }
  sonde_session_window_t record = {};
  // A session that began within the window knows only the rest of it.
  SONDE_RECORD_INIT(&record, SONDE_SPACE_SESSION, SONDE_SESSION_WINDOW, std::max(window.begin, attached_stamp_));
  record.end = window.end;
  record.stratum = window.stratum;
  record.launches = window.end_launches == SONDE_LAUNCHES_UNKNOWN
                        ? SONDE_LAUNCHES_UNKNOWN
                        : window.end_launches - std::max(window.begin_launches, attached_launches_);
  record.slots = window.slots;
  record.collected = window.chosen;
  record.state = window.collected ? SONDE_WINDOW_COLLECTED : SONDE_WINDOW_LEFT_OUT;
  record.next = window.next_collected ? SONDE_WINDOW_COLLECTED : SONDE_WINDOW_LEFT_OUT;
  capture->intern(kOrigin, sizeof(kOrigin) - 1, &record.origin);
  std::memcpy(room, &record, sizeof(record));
  capture->submit(session_, stream_, room, sizeof(record), 0);
  ++windows_;
}

void Port::note_budget() const {
  const BudgetReport report = Collector::instance().budget_report();
  char text[640];
  if (windows_ == 0) {
    std::snprintf(text, sizeof(text),
                  "the budget of %.3g %% was not kept, because another session of the process collects everything",
                  options_.budget * 100);
    return note(1, text);
  }
  char standing[120] = "what goes on in between was not measured";
  if (report.standing_ns > 0) {
    std::snprintf(standing, sizeof(standing), "what goes on in between costs %.2g %% (%.0f ns of %.0f ns a launch)",
                  report.standing * 100, report.standing_ns, report.launch_ns);
  }
  std::snprintf(text, sizeof(text),
                "sampled to keep the budget of %.3g %%: kernels, copies, sets, synchronisations and launch calls were "
                "collected in %.3g %% of the time, in windows chosen at random. Slow-down by collecting: %.2g %%, %s; "
                "%s. Counts and sums need scaling",
                report.budget * 100, report.collected_share * 100, report.collecting * 100,
                report.counted ? "measured" : "assumed", standing);
  note(1, text);
  if (!report.out_of_reach) return;
  std::snprintf(text, sizeof(text),
                "the budget of %.3g %% cannot be reached: a stopped CUPTI and the counting of launches alone cost "
                "%.2g %% (%.0f ns of %.0f ns a launch)",
                report.budget * 100, report.standing * 100, report.standing_ns, report.launch_ns);
  note(1, text);
}

void Port::finish(uint64_t late_buffers) {
  if (options_.budget > 0 && stream_ != 0) {
    const Window window = Collector::instance().window();
    if (window.stratum != 0) end_window(window);
    note_budget();
  }
  if (unknown_ != 0) {
    note(0, std::to_string(unknown_) +
                " activity records of kinds that Sonde did not ask for were skipped, the last of kind " +
                std::to_string(unknown_kind_));
    unknown_ = 0;
  }
  if (late_buffers != 0) note(1, std::to_string(late_buffers) + " activity buffers came while no session was running");
  if (stream_ != 0) services().capture->close_stream(session_, stream_);
  stream_ = 0;
}

void Port::lose(uint32_t cause, uint64_t records, uint64_t bytes) const {
  services().capture->lose(session_, stream_, cause, records, bytes);
}

void Port::note(uint32_t severity, const std::string &text) const {
  services().capture->note(session_, severity, kOrigin, text.c_str());
}

void Port::pair_clock(const CuptiApi &api) {
  if (api.get_timestamp == nullptr) return;
  // The tightest of a few readings: a pair is as good as the time between its two host stamps.
  uint64_t best_stamp = 0;
  uint64_t best_reading = 0;
  uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    uint64_t reading = 0;
    const uint64_t before = sonde_stamp();
    if (api.get_timestamp(&reading) != kCuptiSuccess) return;
    const uint64_t width = sonde_stamp() - before;
    if (width >= best_width) continue;
    best_width = width;
    best_stamp = before + width / 2;
    best_reading = reading;
  }
  sonde_clock_t line = {};
  line.struct_size = sizeof(line);
  uint64_t uncertainty = best_width;
  if (services().capture->clock(session_, SONDE_CLOCK_STAMP, &line) == SONDE_OK) {
    uncertainty = static_cast<uint64_t>(sonde_clock_duration_ns(&line, 0, best_width));
  }
  services().capture->pair_clock(session_, kForeignClock, best_stamp, best_reading, uncertainty);
}

}  // namespace sonde::cuda
