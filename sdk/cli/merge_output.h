// The file that `sonde merge` writes, and the order in which two captures are written to it.
#pragma once

#include <sonde/sonde.hpp>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>

namespace sonde::cli {

// A capture file made from batches.
class OutputFile {
 public:
  // Throws where the host cannot write captures, or the file cannot be made.
  OutputFile(const Host &host, const std::string &path, const sonde_source_info_t &source);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  // What is left of a batch: `words` as a batch of `stream` in `clock`. Losses and gaps of batches of which nothing is
  // left go with the next one of the stream.
  void append(const sonde_batch_t &original, std::span<const uint64_t> words, uint64_t stream,
              const sonde_clock_t &clock, uint64_t watermark);
  void lose(const sonde_loss_t &row);
  void complete(int64_t stop_ns);

 private:
  struct Stream {
    uint64_t next_in = 0;   // expected of the original
    uint64_t next_out = 0;  // of the file
    uint64_t lost_ring = 0;
    uint64_t lost_overwritten = 0;
  };

  Host host_;
  const sonde_store_service_t &store_;
  sonde_file_writer_t *writer_ = nullptr;
  std::map<uint64_t, Stream> streams_;
};

// Lets two threads write in order of time: the one whose next item is earlier goes first. Between two calls of wait
// a thread is alone. [any], one thread for each side
class TurnTaking {
 public:
  // False when the other side failed.
  bool wait(int side, int64_t time_ns);
  void done(int side, bool has_failed);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t next_ns_[2] = {INT64_MIN, INT64_MIN};
  bool is_done_[2] = {false, false};
  bool has_failed_ = false;
};

}  // namespace sonde::cli
