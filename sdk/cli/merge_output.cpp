#include "cli/merge_output.h"

#include <algorithm>
#include <utility>

#include "cli/command.h"

namespace sonde::cli {

OutputFile::OutputFile(const Host &host, const std::string &path, const sonde_source_info_t &source)
    : host_(host), store_(host.service<sonde_store_service_t>()) {
  if (!SONDE_HAS(&store_, sonde_store_service_t, complete)) {
    throw Failure(SONDE_E_TOO_OLD, "this libsonde cannot write a capture without a session");
  }
  host_.check(store_.create(path.c_str(), &source, nullptr, &writer_));
}

OutputFile::~OutputFile() {
  if (writer_ != nullptr) store_.complete(writer_, 0);
}

void OutputFile::append(const sonde_batch_t &original, std::span<const uint64_t> words, uint64_t stream,
                        const sonde_clock_t &clock, uint64_t watermark) {
  Stream &state = streams_[stream];
  const uint64_t gap = original.sequence > state.next_in ? original.sequence - state.next_in : 0;
  state.next_in = original.sequence + 1;
  state.next_out += gap;
  state.lost_ring += original.lost_ring;
  state.lost_overwritten += original.lost_overwritten;
  if (words.empty()) return;
  sonde_batch_t batch{};
  batch.struct_size = sizeof batch;
  batch.stream = stream;
  batch.sequence = state.next_out++;
  batch.data = reinterpret_cast<const uint8_t *>(words.data());
  batch.bytes = words.size_bytes();
  batch.clock = &clock;
  batch.watermark = watermark;
  batch.lost_ring = std::exchange(state.lost_ring, 0);
  batch.lost_overwritten = std::exchange(state.lost_overwritten, 0);
  host_.check(store_.append(writer_, &batch));
}

void OutputFile::lose(const sonde_loss_t &row) { host_.check(store_.lose(writer_, &row)); }

void OutputFile::complete(int64_t stop_ns) { host_.check(store_.complete(std::exchange(writer_, nullptr), stop_ns)); }

bool TurnTaking::wait(int side, int64_t time_ns) {
  const int other = 1 - side;
  std::unique_lock lock(mutex_);
  // Streams of one capture are not in order among each other; what comes late goes at once.
  next_ns_[side] = std::max(next_ns_[side], time_ns);
  changed_.notify_all();
  changed_.wait(lock, [&] {
    if (has_failed_ || is_done_[other]) return true;
    return side == 0 ? next_ns_[0] <= next_ns_[1] : next_ns_[1] < next_ns_[0];
  });
  return !has_failed_;
}

void TurnTaking::done(int side, bool has_failed) {
  const std::lock_guard lock(mutex_);
  is_done_[side] = true;
  has_failed_ = has_failed_ || has_failed;
  changed_.notify_all();
}

}  // namespace sonde::cli
