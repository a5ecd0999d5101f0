// One session's capture of CUDA.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include <sonde/port.h>
#include <sonde/session.h>

#include "collector.h"
#include "decode.h"
#include "sinks.h"

namespace sonde::cuda {

struct PortOptions {
  bool api = false;         // every call of runtime and driver, and CUPTI's own overheads
  bool launches = true;     // the calls that launch kernels and graphs
  bool memory = true;       // allocations, frees, pools
  bool nvtx = true;         // ranges and marks of NVTX
  bool graph_nodes = true;  // each node of a graph; else one interval a graph launch
  bool sync = true;         // synchronisations
  bool managed = false;     // faults and migrations of managed memory
  bool objects = true;      // callbacks for graphs, modules and streams
  uint64_t late_after_ns = 1'000'000'000;
  double budget = 0;  // greatest slow-down of the program, as a part; 0: collect everything
  CollectorSettings collector;
};

class Port {
 public:
  Port(sonde_session_t *session, PortOptions options) : session_(session), options_(std::move(options)) {}

  sonde_status start();
  sonde_status demand();
  sonde_status flush(bool forced);
  sonde_status stop();

  // For the collector.
  CollectorNeeds needs() const;
  void attached(bool vendor_clock);
  void consume(Decoder &decoder, uint8_t *buffer, size_t valid_bytes, uint64_t now, uint64_t flushed);
  void end_window(const Window &window);
  void finish(uint64_t late_buffers);
  void lose(uint32_t cause, uint64_t records, uint64_t bytes) const;
  void note(uint32_t severity, const std::string &text) const;
  void pair_clock(const CuptiApi &api);

  sonde_session_t *session() const { return session_; }
  uint64_t stream() const { return stream_; }

 private:
  Wants read_wants() const;
  CollectorNeeds needs_of(const Wants &wants) const;
  uint64_t lag() const;
  void note_budget() const;

  sonde_session_t *session_;
  PortOptions options_;
  CollectorNeeds needs_;
  mutable std::mutex wants_mutex_;
  Wants wants_;
  uint32_t sink_ = Sinks::kNone;
  uint64_t stream_ = 0;
  uint32_t clock_ = 0;
  uint64_t lag_ = 0;       // late_after in raw units of the stream's clock
  int process_ = 0;        // that called start
  std::mutex life_mutex_;  // start, demand, stop
  bool running_ = false;
  std::atomic<bool> attached_{false};
  uint64_t attached_stamp_ = 0;
  uint64_t attached_launches_ = 0;
  uint64_t windows_ = 0;  // written
  uint64_t unknown_ = 0;
  uint32_t unknown_kind_ = 0;
};

}  // namespace sonde::cuda
