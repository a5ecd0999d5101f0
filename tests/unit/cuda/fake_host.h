// A host that keeps what a port gives it: the capture and configuration services, over plain memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sonde/capture.h>
#include <sonde/config.h>
#include <sonde/host.h>
#include <sonde/ledger.h>

// One session of the fake host. Opaque to the port.
struct sonde_session_t {
  struct Stream {
    std::string name;
    uint32_t clock = 0;
    bool open = true;
  };
  struct Note {
    uint32_t severity;
    std::string text;
  };
  struct Pair {
    uint32_t clock;
    uint64_t stamp;
    uint64_t reading;
  };

  // What the session wants: bit t of word s. Read by the port through `demand` and `level`.
  std::atomic<uint64_t> words[SONDE_SPACE_COMM + 1] = {};
  // Submitted bytes that it still takes; afterwards acquire says FULL.
  std::atomic<uint64_t> room{UINT64_MAX};

  mutable std::mutex mutex;
  std::vector<Stream> streams;                // stream id - 1
  std::vector<std::vector<uint8_t>> batches;  // submitted
  std::vector<uint64_t> watermarks;           // of each batch
  std::vector<std::vector<uint8_t>> emitted;  // through writers and emit, one record each
  std::vector<Note> notes;
  std::vector<Pair> pairs;
  std::map<uint32_t, uint64_t> losses;  // cause -> records
  std::map<uint8_t *, std::unique_ptr<uint8_t[]>> acquired;
  uint64_t submitted_bytes = 0;
  bool keep = true;  // keep batches; else only count
  std::atomic<uint64_t> records{0};

  void want(uint32_t space, uint32_t type) { words[space] |= uint64_t{1} << type; }
  void want_all(uint32_t space) { words[space] = ~uint64_t{1}; }
  void unwant_all() {
    for (auto &word : words) word = 0;
  }

  // Records of `type` in all batches, in order.
  template <typename Record>
  std::vector<Record> submitted(uint32_t space, uint32_t type) const {
    std::lock_guard<std::mutex> hold(mutex);
    std::vector<Record> out;
    for (const auto &batch : batches) {
      for (size_t at = 0; at < batch.size();) {
        sonde_record_t header;
        std::memcpy(&header, batch.data() + at, sizeof(header));
        if (header.space == space && header.type == type) {
          Record record = {};
          std::memcpy(&record, batch.data() + at, std::min<size_t>(sizeof(record), header.size8 * size_t{8}));
          out.push_back(record);
        }
        at += header.size8 * size_t{8};
      }
    }
    return out;
  }

  // Records of `type` that threads emitted, in order.
  template <typename Record>
  std::vector<Record> emitted_of(uint32_t space, uint32_t type) const {
    std::lock_guard<std::mutex> hold(mutex);
    std::vector<Record> out;
    for (const auto &bytes : emitted) {
      Record record = {};
      std::memcpy(&record, bytes.data(), std::min(sizeof(record), bytes.size()));
      if (record.header.space == space && record.header.type == type) out.push_back(record);
    }
    return out;
  }

  std::string all_notes() const {
    std::lock_guard<std::mutex> hold(mutex);
    std::string text;
    for (const Note &note : notes) text += std::to_string(note.severity) + ": " + note.text + "\n";
    return text;
  }
  bool noted(uint32_t severity, const std::string &part) const {
    std::lock_guard<std::mutex> hold(mutex);
    for (const Note &note : notes) {
      if (note.severity == severity && note.text.find(part) != std::string::npos) return true;
    }
    return false;
  }
  uint64_t lost(uint32_t cause) const {
    std::lock_guard<std::mutex> hold(mutex);
    const auto found = losses.find(cause);
    return found != losses.end() ? found->second : 0;
  }
  std::vector<uint64_t> all_watermarks() const {
    std::lock_guard<std::mutex> hold(mutex);
    return watermarks;
  }
};

// A configuration: values by key, as text.
struct sonde_config_t {
  std::map<std::string, std::string> values;
};

namespace sonde::test {

const sonde_host_t *fake_host();
const sonde_capture_service_t *fake_capture();

// Text of an interned id.
std::string text_of(sonde_string_t id);

// The port's last set_error on this thread.
std::string last_error();

// The claim service of this host.
struct FakeClaims {
  bool present = true;  // else get_service does not know it; read by the plugin's init
  bool refuse = false;
  std::vector<std::string> calls;  // "take RESOURCE MODE HOLDER", "release RESOURCE MODE"
};
FakeClaims &fake_claims();

}  // namespace sonde::test
