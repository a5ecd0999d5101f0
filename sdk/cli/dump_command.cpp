// `sonde dump`: the records of a capture as they are, through their schemas.
#include <fmt/format.h>

#include <limits>

#include "cli/capture_feed.h"
#include "cli/command.h"
#include "cli/record_reader.h"

namespace sonde::cli {
namespace {

using nlohmann::ordered_json;

struct Flags {
  std::string capture;
  std::string space;
  std::string type;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  std::string format = "text";
};

// A JSON value as a field of a line or a CSV row: text without quotes and in valid UTF-8, nothing for null.
std::string plain(const ordered_json &value) {
  if (value.is_string()) return ordered_json::parse(one_line(value)).get<std::string>();
  return value.is_null() ? std::string() : one_line(value);
}

// RFC 4180: quotes where a comma, a quote or a line end is inside.
std::string csv_field(const std::string &text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text) {
    if (character == '"') quoted += '"';
    quoted += character;
  }
  return quoted + "\"";
}

class Dump {
 public:
  Dump(const Host &host, sonde_session_t *session, const Flags &flags)
      : reader_(host, session), capture_(host.service<sonde_capture_service_t>()), flags_(flags), left_(flags.limit) {
    resolve(host);
  }

  void head() const {
    if (flags_.format != "csv") return;
    std::string line = "source,stream,space,type,time_ns,time,repair";
    if (wanted_type_ == nullptr) {
      line += ",fields";
    } else {
      for (uint32_t index = 0; index < wanted_type_->field_count; ++index) {
        const sonde_field_t &field = field_at(*wanted_type_, index);
        line += fmt::format(",{}", field.name);
        if (field.kind == SONDE_KIND_TIME) line += fmt::format(",{}_ns", field.name);
      }
    }
    put(line + "\r\n");
  }

  sonde_status on_batch(const Batch &batch) {
    if (left_ == 0) return SONDE_E_STOP;
    for (const Record &record : batch) {
      const sonde_record_t *const header = record.header();
      if (header->space == 0) continue;  // padding
      if (space_ != 0 && header->space != space_) continue;
      if (!flags_.type.empty() && reader_.type_name(header->space, header->type) != flags_.type) continue;
      put(line_of(reader_.read(record, batch.raw())));
      if (--left_ == 0) return SONDE_E_STOP;
    }
    return SONDE_OK;
  }

 private:
  // Finds the space and type named; "device" stands for "sonde.device".
  void resolve(const Host &host) {
    if (!flags_.space.empty()) {
      if (capture_.find_space(flags_.space.c_str(), &space_) != SONDE_OK) {
        host.check(capture_.find_space(("sonde." + flags_.space).c_str(), &space_));
      }
    }
    if (flags_.type.empty()) return;
    std::string known;
    uint32_t matches = 0;
    for (uint32_t space = 1; space < SONDE_SPACE_COUNT; ++space) {
      if (space_ != 0 && space != space_) continue;
      for (uint32_t type = 1; type < SONDE_TYPE_COUNT; ++type) {
        const sonde_record_type_t *const candidate = reader_.type_of(space, type);
        if (candidate == nullptr) continue;
        known += fmt::format("{}{}", known.empty() ? "" : ", ", candidate->name);
        if (flags_.type != candidate->name) continue;
        wanted_type_ = candidate;
        ++matches;
      }
    }
    if (matches == 0)
      throw CommandError(kUsage, fmt::format("no record type \"{}\"; there are: {}", flags_.type, known));
    // Two spaces may use one word; their fields then stand as in a dump of all types.
    if (matches > 1) wanted_type_ = nullptr;
  }

  std::string line_of(const ordered_json &record) const {
    if (flags_.format == "json") return one_line(record) + "\n";
    const ordered_json &fields = record.at("fields");
    if (flags_.format == "csv") {
      std::string line;
      for (const char *name : {"source", "stream", "space", "type", "time_ns", "time", "repair"}) {
        line += fmt::format("{}{}", line.empty() ? "" : ",",
                            record.contains(name) ? csv_field(plain(record.at(name))) : "");
      }
      if (wanted_type_ == nullptr) return fmt::format("{},{}\r\n", line, csv_field(one_line(fields)));
      for (const auto &[name, value] : fields.items()) line += "," + csv_field(plain(value));
      return line + "\r\n";
    }
    std::string line = fmt::format("{} {}:{} {}.{}", plain(record.at("time_ns")), plain(record.at("source")),
                                   plain(record.at("stream")), plain(record.at("space")), plain(record.at("type")));
    if (record.contains("repair")) line += fmt::format(" REPAIRED({})", plain(record.at("repair")));
    for (const auto &[name, value] : fields.items()) line += fmt::format(" {}={}", name, one_line(value));
    return visible(line) + "\n";
  }

  static void put(const std::string &line) {
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) {
      throw CommandError(kInput, "cannot write to standard output");
    }
  }

  RecordReader reader_;
  const sonde_capture_service_t &capture_;
  const Flags &flags_;
  uint64_t left_;
  uint32_t space_ = 0;
  const sonde_record_type_t *wanted_type_ = nullptr;
};

}  // namespace

Subcommand add_dump(CLI::App &root) {
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = root.add_subcommand("dump", "Show the records of a capture");
  app->footer(
      "Records come stream by stream. JSON is one object a line, integers with all their digits.\n"
      "Examples:\n"
      "  sonde dump capture --limit 20\n"
      "  sonde dump capture --space device --type kernel --format csv\n"
      "  sonde dump capture --format json | jq 'select(.type == \"copy\") | .fields.bytes'");
  app->add_option("CAPTURE", flags->capture, "Run directory or .sonde file")->required();
  app->add_option("--space", flags->space, "Only this space: device, memory, com.example.thing");
  app->add_option("--type", flags->type, "Only this record type: kernel, allocate");
  app->add_option("--limit", flags->limit, "At most so many records");
  app->add_option("--format", flags->format, "text, json or csv")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->capture_default_str();
  return {app, [flags](const Context &context) {
            CaptureFeed feed(context.host, flags->capture);
            Dump dump(context.host, feed.session().get(), *flags);
            dump.head();
            feed.subscribe_all("dump", [&](const Batch &batch) { return dump.on_batch(batch); });
            feed.run();
            return kOk;
          }};
}

}  // namespace sonde::cli
