#include "sampling_port.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <sonde/ledger.h>
#include <sonde/spaces/object.h>
#include <sonde/spaces/sample.h>

#include "common/services.h"

namespace sonde::cuda {

namespace {

constexpr char kOrigin[] = "cuda_sampling";
constexpr size_t kBatchBytes = 256 << 10;
constexpr size_t kPieceBytes = 128 << 10;  // of a code object in one record; a record takes 512 KiB at most

}  // namespace

// ---- life ----------------------------------------------------------------------------------------------------------

bool SamplingPort::wants(uint32_t space, uint32_t type) const {
  uint32_t level = SONDE_LEVEL_NONE;
  return services().capture->level(session_, space, type, &level) == SONDE_OK && level != SONDE_LEVEL_NONE;
}

bool SamplingPort::wanted() const { return wants(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_PC); }

sonde_status SamplingPort::start() {
  {
    std::lock_guard<std::mutex> life(life_mutex_);
    if (running_) return services().host->set_error(SONDE_E_STATE, "cuda_sampling: the port is started already");
    process_ = getpid();
    running_ = true;
  }
  return demand();
}

sonde_status SamplingPort::demand() {
  if (getpid() != process_) return SONDE_OK;
  std::lock_guard<std::mutex> life(life_mutex_);
  if (!running_) return SONDE_OK;
  const bool want = wanted();
  if (want && !attached_) {
    attached_ = true;
    Sampler::instance().attach(this, options_.sampler);
  } else if (!want && attached_) {
    attached_ = false;
    return Sampler::instance().detach(this);
  }
  return SONDE_OK;
}

sonde_status SamplingPort::flush() {
  if (getpid() != process_) return SONDE_OK;
  {
    std::lock_guard<std::mutex> life(life_mutex_);
    if (!attached_) return SONDE_OK;
  }
  const sonde_status status = Sampler::instance().flush();
  if (status != SONDE_OK) services().host->set_error(status, "cuda_sampling: CUPTI did not return in time");
  return status;
}

sonde_status SamplingPort::stop() {
  if (getpid() != process_) return SONDE_OK;
  std::lock_guard<std::mutex> life(life_mutex_);
  if (!running_) return SONDE_OK;
  running_ = false;
  if (!attached_) return SONDE_OK;
  attached_ = false;
  const sonde_status status = Sampler::instance().detach(this);
  if (status != SONDE_OK) services().host->set_error(status, "cuda_sampling: CUPTI did not return in time");
  return status;
}

void SamplingPort::attached() {
  if (services().capture->open_stream(session_, kOrigin, SONDE_CLOCK_STAMP, &stream_) != SONDE_OK) {
    note(2, std::string("the session takes no stream: ") + services().host->last_error());
    stream_ = 0;
  }
  codes_ = &Sampler::instance().codes();
  stored_codes_ = 0;
}

void SamplingPort::detached() {
  send();
  if (codes_ != nullptr) {
    for (const std::string &error : codes_->take_errors()) note(1, error);
  }
  if (!strange_modules_.empty()) {
    note(1, std::to_string(strange_modules_.size()) +
                " sampled modules were loaded before sampling began: their code is not in the capture, and their "
                "samples carry the vendor's checksum");
  }
  if (stream_ != 0) services().capture->close_stream(session_, stream_);
  stream_ = 0;
  described_.clear();
}

void SamplingPort::lose(uint32_t cause, uint64_t records) const {
  services().capture->lose(session_, stream_, cause, records, 0);
}

void SamplingPort::note(uint32_t severity, const std::string &text) const {
  services().capture->note(session_, severity, kOrigin, text.c_str());
}

// ---- records -------------------------------------------------------------------------------------------------------

template <typename Record>
void SamplingPort::put(uint32_t space, uint32_t type, uint64_t time, Record &record, const void *data,
                       size_t data_bytes) {
  const size_t padded = (data_bytes + 7) & ~size_t{7};
  const size_t bytes = sizeof(record) + padded;
  if (batch_.size() + bytes > kBatchBytes) send();
  SONDE_RECORD_INIT(&record, space, type, time);
  record.header.size8 = static_cast<uint16_t>(bytes / 8);
  const size_t at = batch_.size();
  batch_.resize(at + bytes);  // padding is zero
  std::memcpy(batch_.data() + at, &record, sizeof(record));
  if (data_bytes != 0) std::memcpy(batch_.data() + at + sizeof(record), data, data_bytes);
  ++batch_records_;
}

void SamplingPort::send() {
  if (batch_.empty()) return;
  uint8_t *buffer = nullptr;
  const auto *capture = services().capture;
  if (stream_ != 0 && capture->acquire(session_, stream_, batch_.size(), &buffer) == SONDE_OK) {
    std::memcpy(buffer, batch_.data(), batch_.size());
    capture->submit(session_, stream_, buffer, batch_.size(), 0);
  } else {
    lose(SONDE_LOSS_MEMORY_CAP, batch_records_);
  }
  batch_.clear();
  batch_records_ = 0;
}

void SamplingPort::reasons(uint32_t context, const std::vector<StallReason> &reasons) {
  if (!wants(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_STALL_REASON) || !described_.insert(context).second) return;
  const uint64_t now = sonde_stamp();
  for (const StallReason &reason : reasons) {
    sonde_sample_stall_reason_t record = {};
    record.index = reason.index;
    record.context = context;
    record.stall = reason.stall;
    record.vendor = reason.vendor;
    record.flags = reason.not_issued ? 1 : 0;
    put(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_STALL_REASON, now, record);
  }
}

void SamplingPort::store(CodeCache &codes) {
  if (!options_.code || !wants(SONDE_SPACE_OBJECT, SONDE_OBJECT_CODE)) return;
  for (const auto &code : codes.since(stored_codes_)) {
    ++stored_codes_;
    const uint64_t now = sonde_stamp();
    for (size_t at = 0; at < code->bytes.size(); at += kPieceBytes) {
      const size_t bytes = std::min(kPieceBytes, code->bytes.size() - at);
      sonde_object_code_t record = {};
      record.hash = code->hash;
      record.bytes = code->bytes.size();
      record.offset = at;
      record.data = {sizeof(record), static_cast<uint32_t>(bytes)};
      put(SONDE_SPACE_OBJECT, SONDE_OBJECT_CODE, now, record, code->bytes.data() + at, bytes);
    }
  }
}

void SamplingPort::add_line(const SampledPc &pc, uint64_t time) {
  if (!lines_.insert({pc.module, pc.function, pc.pc}).second) return;
  const char *function = nullptr;
  if (services().capture->text(session_, 0, pc.function, &function) != SONDE_OK) return;
  const auto frames = codes_->lines(pc.module, function, pc.pc);
  if (frames.empty()) return;
  const auto intern = [](const std::string &text) {
    sonde_string_t id = 0;
    services().capture->intern(text.data(), text.size(), &id);
    return id;
  };
  std::vector<sonde_string_t> texts;
  for (const toolkit::SourceFrame &frame : frames) texts.push_back(intern(toolkit::frame_text(frame)));
  sonde_sample_line_t record = {};
  record.module = pc.module;
  record.pc = pc.pc;
  record.function = pc.function;
  record.file = intern(frames.front().file);
  record.line = frames.front().line;
  record.frames = {sizeof(record), static_cast<uint32_t>(texts.size())};
  put(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_LINE, time, record, texts.data(), texts.size() * sizeof(texts[0]));
}

void SamplingPort::deliver(const SampledWindow &window, const Sampler &sampler) {
  uint64_t recorded = 0;
  const bool lines = options_.lines && wants(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_LINE);
  for (const SampledPc &pc : window.pcs) {
    sonde_sample_pc_t record = {};
    record.end = window.end;
    record.module = pc.module;
    record.pc = pc.pc;
    record.correlation = pc.correlation;
    record.samples = pc.samples;
    record.latency = pc.latency;
    record.function = pc.function;
    record.stall = pc.stall;
    record.function_index = pc.function_index;
    record.context = window.context;
    record.device = window.device;
    record.flags = pc.flags;
    put(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_PC, window.begin, record);
    recorded += pc.samples;
    if (pc.flags != 0) strange_modules_.insert(pc.module);
    if (lines && pc.flags == 0) add_line(pc, window.begin);
  }
  if (wants(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_WINDOW)) {
    sonde_sample_window_t record = {};
    record.end = window.end;
    record.samples = window.samples;
    record.recorded = recorded;
    record.dropped = window.dropped;
    record.foreign = window.foreign;
    record.pcs = window.pc_count;
    record.range = window.range;
    record.context = window.context;
    record.device = window.device;
    record.period_log2 = sampler.period_log2();
    record.mode = static_cast<uint32_t>(sampler.mode());
    record.flags = window.full ? 1 : 0;
    put(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_WINDOW, window.begin, record);
  }
  if (window.dropped != 0) lose(SONDE_LOSS_VENDOR, window.dropped);
  if (window.full) {
    note(2,
         "the hardware's buffer of PC samples was full, and CUPTI hands out no later ones: raise period, or "
         "hardware_bytes");
    if (window.dropped == 0) lose(SONDE_LOSS_VENDOR, UINT64_MAX);
  }
  send();
}

}  // namespace sonde::cuda
