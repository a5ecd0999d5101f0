// Makes a capture file from JSON on standard input, so that a test can say what is in it:
//
//   {"path": "a.sonde", "process": 7, "host": "h", "program": "/bin/p", "command": "p", "boot": "b",
//    "start_ns": 1000, "stop_ns": 2000,
//    "batches": [{"stream": 1, "clock": {"id": 0, "base_raw": 0, "base_ns": 0, "multiplier": 1, "shift": 0},
//                 "records": [{"type": "sonde.device.kernel", "time": 1500, "end": 1600, "name": "add", ...}]}],
//    "losses": [{"stream": 1, "cause": 1, "records": 3, "bytes": 0}]}
//
// Fields are those of the schema; what is not named is 0. Spans are lists, of bytes a string of hexadecimal digits.
// Without a clock, times are ns since 1970.
#include <sonde/sonde.hpp>

#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using nlohmann::json;

class CaptureMaker {
 public:
  explicit CaptureMaker(const sonde::Host &host)
      : host_(host), capture_(host.service<sonde_capture_service_t>()), store_(host.service<sonde_store_service_t>()) {}

  void make(const json &wanted) {
    const std::string host = wanted.value("host", "host");
    const std::string program = wanted.value("program", "/bin/program");
    const std::string command = wanted.value("command", "program");
    const std::string boot = wanted.value("boot", "boot");
    sonde_source_info_t source{};
    source.struct_size = sizeof source;
    source.host = host.c_str();
    source.program = program.c_str();
    source.command = command.c_str();
    source.boot = boot.c_str();
    source.process = wanted.value("process", uint64_t{1});
    source.parent_process = wanted.value("parent_process", uint64_t{0});
    source.start_ns = wanted.value("start_ns", int64_t{0});
    sonde_file_writer_t *writer = nullptr;
    host_.check(store_.create(wanted.at("path").get<std::string>().c_str(), &source, nullptr, &writer));
    std::map<uint64_t, uint64_t> sequences;
    for (const json &batch : wanted.at("batches")) append(writer, batch, sequences);
    for (const json &loss : wanted.value("losses", json::array())) {
      sonde_loss_t row{};
      row.stream = loss.value("stream", uint64_t{0});
      row.cause = loss.value("cause", uint32_t{0});
      row.records = loss.value("records", uint64_t{0});
      row.bytes = loss.value("bytes", uint64_t{0});
      host_.check(store_.lose(writer, &row));
    }
    host_.check(store_.complete(writer, wanted.value("stop_ns", int64_t{0})));
  }

 private:
  void append(sonde_file_writer_t *writer, const json &wanted, std::map<uint64_t, uint64_t> &sequences) {
    sonde_clock_t clock{sizeof(sonde_clock_t), SONDE_CLOCK_UNIX_NS, 0, 0, 1, 0, 0};
    if (wanted.contains("clock")) {
      const json &line = wanted.at("clock");
      clock.id = line.at("id").get<uint32_t>();
      clock.base_raw = line.at("base_raw").get<uint64_t>();
      clock.base_ns = line.at("base_ns").get<int64_t>();
      clock.multiplier = line.at("multiplier").get<uint64_t>();
      clock.shift = line.at("shift").get<uint32_t>();
    }
    std::vector<uint64_t> words;
    for (const json &record : wanted.at("records")) add(words, record);
    sonde_batch_t batch{};
    batch.struct_size = sizeof batch;
    batch.stream = wanted.value("stream", uint64_t{1});
    batch.sequence = sequences[batch.stream]++;
    batch.data = reinterpret_cast<const uint8_t *>(words.data());
    batch.bytes = words.size() * 8;
    batch.clock = &clock;
    batch.watermark = wanted.value("watermark", uint64_t{0});
    host_.check(store_.append(writer, &batch));
  }

  void add(std::vector<uint64_t> &words, const json &wanted) {
    const std::string full = wanted.at("type").get<std::string>();
    const size_t dot = full.rfind('.');
    uint32_t space = 0;
    host_.check(capture_.find_space(full.substr(0, dot).c_str(), &space));
    const sonde_schema_t *schema = nullptr;
    host_.check(capture_.schema(space, &schema));
    for (uint32_t index = 0; index < schema->type_count; ++index) {
      const auto &type = *reinterpret_cast<const sonde_record_type_t *>(reinterpret_cast<const char *>(schema->types) +
                                                                        size_t{index} * schema->type_stride);
      if (full.substr(dot + 1) == type.name) {
        add(words, wanted, space, type);
        return;
      }
    }
    throw std::runtime_error("no record type " + full);
  }

  void add(std::vector<uint64_t> &words, const json &wanted, uint32_t space, const sonde_record_type_t &type) {
    std::vector<uint8_t> record(type.fixed_bytes, 0);
    for (const auto &[name, value] : wanted.items()) {
      if (name == "type" || name == "time") continue;
      const sonde_field_t &field = field_of(type, name);
      if (field.kind >= SONDE_KIND_SPAN_UINT) {
        const std::vector<uint8_t> bytes = span_bytes(field, value);
        const uint32_t element = field.kind == SONDE_KIND_SPAN_BYTES ? 1 : field.kind == SONDE_KIND_SPAN_STRING ? 4 : 8;
        sonde_span_t span{static_cast<uint32_t>(record.size()), static_cast<uint32_t>(bytes.size() / element)};
        if (span.count == 0) span.offset = 0;
        std::memcpy(record.data() + field.offset, &span, sizeof span);
        record.insert(record.end(), bytes.begin(), bytes.end());
        record.resize((record.size() + 7) / 8 * 8, 0);
        continue;
      }
      const uint64_t number = number_of(field, value);
      std::memcpy(record.data() + field.offset, &number, field.width);
    }
    sonde_record_t header{};
    header.size8 = static_cast<uint16_t>(record.size() / 8);
    header.fixed8 = static_cast<uint16_t>(type.fixed_bytes / 8);
    header.space = static_cast<uint16_t>(space);
    header.type = static_cast<uint16_t>(type.type);
    header.time = wanted.at("time").get<uint64_t>();
    std::memcpy(record.data(), &header, sizeof header);
    const size_t at = words.size();
    words.resize(at + record.size() / 8);
    std::memcpy(words.data() + at, record.data(), record.size());
  }

  static const sonde_field_t &field_of(const sonde_record_type_t &type, const std::string &name) {
    for (uint32_t index = 0; index < type.field_count; ++index) {
      const auto &field = *reinterpret_cast<const sonde_field_t *>(reinterpret_cast<const char *>(type.fields) +
                                                                   size_t{index} * type.field_stride);
      if (name == field.name) return field;
    }
    throw std::runtime_error(std::string(type.name) + " has no field " + name);
  }

  sonde_string_t intern(const json &text) {
    sonde_string_t id = 0;
    host_.check(capture_.intern(text.get<std::string>().c_str(), UINT64_MAX, &id));
    return id;
  }

  uint64_t number_of(const sonde_field_t &field, const json &value) {
    if (field.kind == SONDE_KIND_STRING) return intern(value);
    if (value.is_number_unsigned()) return value.get<uint64_t>();
    return static_cast<uint64_t>(value.get<int64_t>());
  }

  std::vector<uint8_t> span_bytes(const sonde_field_t &field, const json &value) {
    std::vector<uint8_t> bytes;
    if (field.kind == SONDE_KIND_SPAN_BYTES) {
      const std::string digits = value.get<std::string>();
      for (size_t at = 0; at + 1 < digits.size(); at += 2) {
        bytes.push_back(static_cast<uint8_t>(std::stoul(digits.substr(at, 2), nullptr, 16)));
      }
      return bytes;
    }
    for (const json &element : value) {
      const uint64_t number = field.kind == SONDE_KIND_SPAN_STRING ? intern(element) : element.get<uint64_t>();
      const auto *const from = reinterpret_cast<const uint8_t *>(&number);
      bytes.insert(bytes.end(), from, from + (field.kind == SONDE_KIND_SPAN_STRING ? 4 : 8));
    }
    return bytes;
  }

  sonde::Host host_;
  const sonde_capture_service_t &capture_;
  const sonde_store_service_t &store_;
};

}  // namespace

int main() {
  try {
    CaptureMaker(sonde::Host(sonde_host())).make(json::parse(std::cin));
    return 0;
  } catch (const std::exception &exception) {
    std::fprintf(stderr, "write_capture: %s\n", exception.what());
    return 1;
  }
}
