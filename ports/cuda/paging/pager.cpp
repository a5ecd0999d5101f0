#include "pager.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <sonde/spaces/memory.h>

#include "common/services.h"

namespace sonde::cuda::paging {

namespace {

constexpr char kOrigin[] = "cuda_paging";
constexpr char kResource[] = "cuda.device";
constexpr char kMode[] = "paging";
// Callbacks change no times, so tracing may go on beside them where the user asks for it.
constexpr char kSharedMode[] = "activity";
constexpr uint32_t kInfo = 0;
constexpr uint32_t kWarning = 1;
constexpr uint32_t kNoData = 3;
constexpr uint64_t kStopPatience = 2'000'000'000;

const LaunchCall *launch_call(uint32_t callback) {
  for (const LaunchCall &call : kLaunchCalls) {
    if (call.callback == callback) return &call;
  }
  return nullptr;
}

void *stream_of(const LaunchCall &kind, const void *parameters) {
  const char *from = static_cast<const char *>(parameters);
  if (from == nullptr || kind.place == StreamPlace::kNone) return nullptr;
  if (kind.place == StreamPlace::kInConfig) {
    std::memcpy(&from, parameters, sizeof(from));
    if (from == nullptr) return nullptr;
  }
  void *stream = nullptr;
  std::memcpy(&stream, from + kind.offset, sizeof(stream));
  if (stream == nullptr && kind.is_per_thread) stream = reinterpret_cast<void *>(kPerThreadStream);
  return stream;
}

}  // namespace

Pager::Pager(sonde_session_t *session, PagerOptions options)
    : session_(session), options_(std::move(options)), follower_(options_.plan, options_.follow) {}

Pager::~Pager() { stop(); }

// ---- beginning and ending ------------------------------------------------------------------------------------------

sonde_status Pager::start() {
  std::lock_guard<std::mutex> life(life_mutex_);
  if (running_) return services().host->set_error(SONDE_E_STATE, "cuda_paging: the port is started already");
  process_ = getpid();
  const char *const mode = options_.beside_activity ? kSharedMode : kMode;
  if (const auto *claim = services().claim; claim != nullptr && claim->take(kResource, mode, kOrigin) != SONDE_OK) {
    note(kNoData, std::string("the plan is not applied because ") + services().host->last_error());
    return SONDE_OK;
  }
  claim_ = mode;
  if (const std::string error = begin(); !error.empty()) {
    note(kNoData, "the plan is not applied because " + error);
    if (const auto *claim = services().claim) claim->release(kResource, mode);
    claim_.clear();
    return SONDE_OK;
  }
  running_ = true;
  return SONDE_OK;
}

std::string Pager::begin() {
  driver_ = open_driver();
  if (!driver_.error.empty()) return driver_.error;
  cupti_ = open_cupti(options_.cupti);
  if (!cupti_.complete()) return cupti_.error;
  if (cupti_.subscribe == nullptr || cupti_.enable_callback == nullptr || cupti_.unsubscribe == nullptr) {
    return cupti_.path + " has no callbacks";
  }
  mover_ = std::make_unique<Mover>(driver_, static_cast<int32_t>(options_.plan.device), [this](const Moved &moved) {
    emit(SONDE_MEMORY_PREFETCH, moved.address, moved.bytes, moved.stream, moved.device, 0);
  });
  const CuptiResult result = cupti_.subscribe(&subscriber_, &Pager::on_callback, this);
  if (result != kCuptiSuccess) {
    subscriber_ = nullptr;
    if (result == kCuptiMultipleSubscribers) return "another profiler holds CUPTI's subscription";
    return std::string("CUPTI refuses its callbacks: ") + cupti_.text(result);
  }
  for (const LaunchCall &call : kLaunchCalls) cupti_.enable_callback(1, subscriber_, kDomainDriver, call.callback);
  for (const uint32_t callback : {kMemAllocManaged, kMemFree, kMemFreeOld}) {
    cupti_.enable_callback(1, subscriber_, kDomainDriver, callback);
  }
  note(kInfo, "a plan of " + std::to_string(options_.plan.steps.size()) + " launches and " +
                  std::to_string(options_.plan.allocations.size()) + " allocations is applied by callbacks of CUPTI " +
                  version_text(cupti_.version));
  return "";
}

sonde_status Pager::stop() {
  std::lock_guard<std::mutex> life(life_mutex_);
  // A forked child has neither the thread nor a usable context.
  if (!running_ || getpid() != process_) return SONDE_OK;
  running_ = false;
  cupti_.unsubscribe(subscriber_);
  subscriber_ = nullptr;
  if (!mover_->stop(kStopPatience)) {
    is_abandoned_ = true;
    note(kWarning, "a call that moves memory did not return in time");
  }
  report();
  if (const auto *claim = services().claim; claim != nullptr && !claim_.empty()) {
    claim->release(kResource, claim_.c_str());
  }
  claim_.clear();
  return SONDE_OK;
}

void Pager::report() {
  std::lock_guard<std::mutex> hold(mutex_);
  const FollowCounts &seen = follower_.counts();
  const MoverCounts moved = mover_->counts();
  uint64_t planned = 0;
  for (const auto &step : options_.plan.steps) planned += step.moves.size();
  std::string text = "applied: " + std::to_string(seen.steps) + " of " + std::to_string(options_.plan.steps.size()) +
                     " planned launches came (" + std::to_string(seen.shifted) + " shifted), " +
                     std::to_string(moved.prefetches + moved.evictions) + " of " + std::to_string(planned) +
                     " moves were made: " + std::to_string(moved.prefetched_bytes) + " bytes to the device, " +
                     std::to_string(moved.evicted_bytes) + " to the host; " + std::to_string(waits_) + " waits, " +
                     std::to_string(advised_) + " pieces of advice; " + std::to_string(seen.launches) +
                     " launches and " + std::to_string(seen.allocations) + " managed allocations seen";
  note(kInfo, text);
  if (seen.missed + seen.other_size != 0) {
    text = follower_.has_departed() ? "the program departs from the plan, which was given up: "
                                    : "the program differs from the plan: ";
    text += std::to_string(seen.missed) + " planned launches did not come (at " + std::to_string(seen.other_kernel) +
            " another kernel was launched), " + std::to_string(seen.other_size) +
            " allocations have another size; the first: " + seen.first_mismatch;
    note(kWarning, text);
  }
  if (moved.failed + moved.unknown + moved.dropped + failed_advice_ + failed_waits_ != 0) {
    text = std::to_string(moved.failed) + " calls failed, " + std::to_string(moved.unknown) +
           " moves were of memory that was not there, " + std::to_string(moved.dropped) +
           " steps were dropped at the end, " + std::to_string(failed_advice_) + " pieces of advice were refused, " +
           std::to_string(failed_waits_) + " waits";
    if (!moved.first_failure.empty()) text += "; the first: " + moved.first_failure;
    note(kWarning, text);
  }
  if (late_ != 0) {
    note(kWarning, std::to_string(late_) +
                       " launches did not wait for their moves, because the moving thread did not get "
                       "on; moves were made on the launching threads from then on. See option thread");
  }
  if (captured_ != 0) {
    note(kInfo, std::to_string(captured_) + " launches into streams that were being captured were left alone");
  }
}

// ---- callbacks -----------------------------------------------------------------------------------------------------

void Pager::on_callback(void *user, uint32_t domain, uint32_t callback, const void *data) {
  if (domain != kDomainDriver || data == nullptr) return;
  auto &self = *static_cast<Pager *>(user);
  if (getpid() != self.process_) return;
  try {
    self.on_call(callback, *static_cast<const CallData *>(data));
  } catch (const std::exception &error) {
    self.note(kWarning, std::string("the plan is not followed at a call: ") + error.what());
  }
}

void Pager::on_call(uint32_t callback, const CallData &call) {
  if (const LaunchCall *kind = launch_call(callback); kind != nullptr) {
    if (call.site == kCallEnters) on_launch(*kind, call);
  } else if (callback == kMemAllocManaged) {
    if (call.site == kCallLeaves) on_allocate(call);
  } else if (call.site == kCallEnters && call.parameters != nullptr) {
    // The old form has addresses of 32 bits, of no managed memory that is known here.
    if (callback == kMemFree) mover_->end(static_cast<const FreeParameters *>(call.parameters)->address);
  }
}

void Pager::on_launch(const LaunchCall &kind, const CallData &call) {
  void *const stream = stream_of(kind, call.parameters);
  std::lock_guard<std::mutex> hold(mutex_);
  uint32_t capturing = 0;
  if (driver_.is_capturing != nullptr && driver_.is_capturing(stream, &capturing) == 0 && capturing != 0) {
    // Not launched now; the graph's launch counts.
    ++captured_;
    return;
  }
  const std::string_view kernel = kind.is_graph || call.symbol == nullptr ? "" : call.symbol;
  const size_t index = follower_.launch(kernel);
  void *context = call.context;
  if (index == Follower::kNothing && tickets_.empty()) return;
  if (context == nullptr && driver_.get_current(&context) != 0) return;
  if (index != Follower::kNothing) fire(options_.plan.steps[index], context, stream);
  wait_for_moves(context, stream);
}

void Pager::fire(const toolkit::PlannedStep &step, void *context, void *stream) {
  prepare(context);
  MoveJob job;
  job.step = &step;
  job.context = context;
  if (step.waits_for_device) {
    job.begin = mover_->take_event(context);
    if (job.begin != nullptr && driver_.record(job.begin, stream) != 0) {
      mover_->give_event(context, job.begin);
      job.begin = nullptr;
      ++failed_waits_;
    }
  }
  std::vector<uint64_t> needed;
  for (const auto &move : step.moves) {
    if (!move.is_eviction && move.needed != toolkit::PlannedMove::kNobody) needed.push_back(move.needed);
  }
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  for (const uint64_t launch : needed) {
    auto ticket = std::make_shared<Ticket>();
    ticket->needed = launch;
    ticket->event = mover_->take_event(context);
    job.tickets.push_back(ticket);
    tickets_.push_back(std::move(ticket));
  }
  mover_->run(std::move(job), is_inline_);
}

void Pager::wait_for_moves(void *context, void *stream) {
  const uint64_t position = follower_.position();
  for (const auto &ticket : tickets_) {
    if (ticket->needed > position) continue;
    const Mover::Waited waited = mover_->wait(*ticket, is_inline_ ? 0 : options_.patience_ns);
    if (waited != Mover::Waited::kRecorded) {
      // The launch goes on: the driver's faults bring in what is missing.
      if (waited == Mover::Waited::kLate) ++late_, is_inline_ = true;
      continue;
    }
    if (driver_.wait(stream, ticket->event, 0) == 0) {
      ++waits_;
    } else {
      ++failed_waits_;
    }
    mover_->give_event(context, ticket->event);
  }
  std::erase_if(tickets_, [position](const auto &ticket) { return ticket->needed <= position; });
}

void Pager::on_allocate(const CallData &call) {
  if (call.parameters == nullptr || call.result == nullptr) return;
  DriverResult result = -1;
  std::memcpy(&result, call.result, sizeof(result));
  if (result != 0) return;
  const auto &parameters = *static_cast<const AllocateParameters *>(call.parameters);
  if (parameters.address == nullptr) return;
  const uint64_t address = *parameters.address;
  std::lock_guard<std::mutex> hold(mutex_);
  const toolkit::PlannedAllocation *const planned = follower_.allocate(parameters.bytes);
  // Streams and the thread are made now, before the first launch is timed by anybody.
  void *context = call.context;
  if (context != nullptr || driver_.get_current(&context) == 0) prepare(context);
  if (planned == nullptr) return;
  mover_->allocate(planned->allocation, address, parameters.bytes);
  advise(*planned, address);
}

void Pager::advise(const toolkit::PlannedAllocation &planned, uint64_t address) {
  const auto device = static_cast<int32_t>(options_.plan.device);
  for (const toolkit::PlannedAdvice &one : planned.advise) {
    uint32_t advice = kSetReadMostly;
    int32_t target = device;
    switch (one.advice) {
      case toolkit::PagingAdvice::kReadMostly:
        break;
      case toolkit::PagingAdvice::kPreferDevice:
        advice = kSetPreferredLocation;
        break;
      case toolkit::PagingAdvice::kPreferHost:
        advice = kSetPreferredLocation;
        target = kHostDevice;
        break;
      case toolkit::PagingAdvice::kAccessedBy:
        advice = kSetAccessedBy;
        break;
    }
    if (driver_.advise(address + one.offset, one.bytes, advice, target) == 0) {
      ++advised_;
      emit(SONDE_MEMORY_ADVISE, address + one.offset, one.bytes, nullptr, target, advice);
    } else {
      ++failed_advice_;
    }
  }
}

void Pager::prepare(void *context) {
  if (context == nullptr || std::find(prepared_.begin(), prepared_.end(), context) != prepared_.end()) return;
  prepared_.push_back(context);
  mover_->prepare(context, options_.has_thread);
}

// ---- what the session is told --------------------------------------------------------------------------------------

void Pager::emit(uint32_t type, uint64_t address, uint64_t bytes, void *stream, int32_t device, uint32_t advice) const {
  const auto *capture = services().capture;
  const uint64_t *demand = nullptr;
  if (capture->demand(session_, SONDE_SPACE_MEMORY, &demand) != SONDE_OK || sonde_wants(demand, type) == 0) return;
  sonde_memory_advise_t record = {};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_MEMORY, type, sonde_stamp());
  record.address = address;
  record.bytes = bytes;
  record.stream = reinterpret_cast<uint64_t>(stream);
  record.device = device;
  record.advice = advice;
  capture->emit(session_, &record.header);
}

void Pager::note(uint32_t severity, const std::string &text) const {
  services().capture->note(session_, severity, kOrigin, text.c_str());
}

}  // namespace sonde::cuda::paging
