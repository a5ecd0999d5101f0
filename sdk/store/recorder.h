// A recording: a subscription of a session whose batches go to a capture file.
//
//   subscriber's thread --keeps batches--> queue --> recording's thread: encodes, writes
//
// The subscriber's own queue and this one share one bound. While this one is more than two thirds full chunks are
// written as they are (SONDE_FULL_SPILL), until it is down to a third. When both are full the session drops batches
// and counts them for this subscriber. Kept batches count against the session's memory cap, and so does what the
// encoder holds.
#pragma once

#include <sonde/delivery.h>
#include <sonde/store.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "store/chunk_writer.h"

namespace sonde::core {
class Session;
}

namespace sonde::store {

class Recorder : public std::enable_shared_from_this<Recorder> {
 public:
  // Subscribes; see sonde_store_service_t.record. [control]
  static Result<std::shared_ptr<Recorder>> start(sonde_session_t *session, const std::string &path, const char *spaces,
                                                 const sonde_writer_options_t &options);
  ~Recorder();
  Recorder(const Recorder &) = delete;
  Recorder &operator=(const Recorder &) = delete;

  // After the session stopped. SONDE_E_STATE before; SONDE_E_IO when the end could not be written. [control]
  Result<void> finish();

 private:
  struct Kept {
    const sonde_batch_t *batch;
    uint64_t bytes;
  };

  Recorder(sonde_session_t *session, std::string path, const sonde_writer_options_t &options, uint64_t queue_bytes);
  Result<void> subscribe(const char *spaces);
  static sonde_status on_batch(void *user, const sonde_batch_t *batch);
  static void on_end(void *user);
  sonde_status keep(const sonde_batch_t &batch);
  void end();
  void run();
  void count_memory();
  std::vector<sonde_loss_t> ledger();
  void detach();
  core::Session *open_session() const;

  const std::string path_;
  const uint64_t process_;
  const uint64_t queue_bytes_;  // of this queue
  const uint64_t seal_ns_;
  const bool spills_;

  std::mutex session_mutex_;
  sonde_session_t *session_;               // NULL after its close
  std::vector<sonde_loss_t> last_ledger_;  // taken at its close
  std::atomic<uint64_t> subscription_{0};
  uint64_t counted_memory_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Kept> queue_;
  uint64_t queued_bytes_ = 0;
  bool spilling_ = false;
  bool ending_ = false;
  bool ended_ = false;

  std::unique_ptr<ChunkWriter> writer_;
  bool failure_noted_ = false;
  std::thread thread_;
};

}  // namespace sonde::store
