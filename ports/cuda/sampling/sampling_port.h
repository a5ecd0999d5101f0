// One session's PC samples.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <sonde/session.h>

#include "sampler.h"

namespace sonde::cuda {

struct SamplingPortOptions {
  SamplingSettings sampler;
  bool code = true;   // store code objects
  bool lines = true;  // say where sampled instructions come from
};

class SamplingPort {
 public:
  SamplingPort(sonde_session_t *session, SamplingPortOptions options)
      : session_(session), options_(std::move(options)) {}

  sonde_status start();
  sonde_status demand();
  sonde_status flush();
  sonde_status stop();

  // For the sampler, on one thread at a time.
  void attached();
  void reasons(uint32_t context, const std::vector<StallReason> &reasons);
  void deliver(const SampledWindow &window, const Sampler &sampler);
  void store(CodeCache &codes);
  void detached();
  void lose(uint32_t cause, uint64_t records) const;
  void note(uint32_t severity, const std::string &text) const;

 private:
  bool wanted() const;
  bool wants(uint32_t space, uint32_t type) const;
  void add_line(const SampledPc &pc, uint64_t time);
  template <typename Record>
  void put(uint32_t space, uint32_t type, uint64_t time, Record &record, const void *data = nullptr,
           size_t data_bytes = 0);
  void send();

  sonde_session_t *session_;
  SamplingPortOptions options_;
  std::mutex life_mutex_;
  int process_ = 0;
  bool running_ = false;
  bool attached_ = false;
  uint64_t stream_ = 0;
  std::vector<uint8_t> batch_;
  uint64_t batch_records_ = 0;
  size_t stored_codes_ = 0;
  std::set<uint32_t> described_;                                    // contexts whose stall reasons were recorded
  std::set<std::tuple<uint64_t, sonde_string_t, uint64_t>> lines_;  // instructions whose source was recorded
  std::set<uint64_t> strange_modules_;                              // sampled but loaded before the port looked
  CodeCache *codes_ = nullptr;
};

}  // namespace sonde::cuda
