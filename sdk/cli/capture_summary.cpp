#include "cli/capture_summary.h"

#include <fmt/format.h>
#include <toolkit/text.h>

#include <limits>

namespace sonde::cli {

OwnedCapture open_capture(const Host &host, const std::string &path) {
  const auto &store = host.service<sonde_store_service_t>();
  sonde_capture_t *capture = nullptr;
  host.check(store.open(path.c_str(), &capture));
  return {capture, CaptureDeleter{&store}};
}

std::vector<sonde_source_info_t> sources_of(const Host &host, sonde_capture_t *capture) {
  const auto &store = host.service<sonde_store_service_t>();
  uint64_t count = 0;
  host.check(store.source_count(capture, &count));
  std::vector<sonde_source_info_t> sources(count);
  for (uint64_t index = 0; index < count; ++index) {
    sources[index].struct_size = sizeof(sonde_source_info_t);
    host.check(store.source_at(capture, index, &sources[index]));
  }
  return sources;
}

std::vector<sonde_loss_t> losses_of(const Host &host, sonde_capture_t *capture) {
  const auto &store = host.service<sonde_store_service_t>();
  uint64_t count = 0;
  host.check(store.losses(capture, nullptr, 0, &count));
  std::vector<sonde_loss_t> losses(count);
  if (count != 0) host.check(store.losses(capture, losses.data(), losses.size(), &count));
  return losses;
}

std::string_view cause_words(uint32_t cause) {
  switch (cause) {
    case SONDE_LOSS_RING_FULL:
      return "ring full";
    case SONDE_LOSS_TOO_BIG:
      return "record too big";
    case SONDE_LOSS_QUEUE_FULL:
      return "queue full";
    case SONDE_LOSS_OVERWRITTEN:
      return "overwritten";
    case SONDE_LOSS_VENDOR:
      return "dropped by the runtime";
    case SONDE_LOSS_MEMORY_CAP:
      return "memory cap";
    case SONDE_LOSS_DISK:
      return "disk";
    case SONDE_LOSS_TAIL:
      return "end of the process";
    case SONDE_LOSS_MALFORMED:
      return "malformed record";
    case SONDE_LOSS_DEADLINE:
      return "deadline";
    case SONDE_LOSS_SUBSCRIBER:
      return "subscriber failed";
    case SONDE_LOSS_DAMAGED:
      return "damaged file";
    case SONDE_LOSS_LATE:
      return "late, out of order";
    default:
      return "unknown cause";
  }
}

std::string loss_words(const sonde_loss_t &loss) {
  if (loss.records == std::numeric_limits<uint64_t>::max()) {
    return fmt::format("an unknown number of records within {}", toolkit::format_bytes(loss.bytes));
  }
  return fmt::format("{} record{}", loss.records, loss.records == 1 ? "" : "s");
}

std::string visible(std::string_view text) {
  std::string shown;
  for (size_t index = 0; index < text.size(); ++index) {
    const auto byte = static_cast<unsigned char>(text[index]);
    const auto next = index + 1 < text.size() ? static_cast<unsigned char>(text[index + 1]) : 0u;
    if (byte < 0x20 || byte == 0x7F) {
      shown += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {
      // C1 controls, U+0080 to U+009F: some terminals obey them.
      shown += fmt::format("\\x{:02x}", next);
      ++index;
    } else {
      shown += text[index];
    }
  }
  return shown;
}

void print_capture_summary(const Host &host, const std::string &path, FILE *file) {
  const OwnedCapture capture = open_capture(host, path);
  const std::vector<sonde_source_info_t> sources = sources_of(host, capture.get());
  uint64_t bytes = 0;
  uint64_t records = 0;
  for (const sonde_source_info_t &source : sources) {
    bytes += source.file_bytes;
    records += source.records;
  }
  fmt::print(file, "sonde: {}: {} file{}, {}, {} records\n", visible(path), sources.size(),
             sources.size() == 1 ? "" : "s", toolkit::format_bytes(bytes), records);
  for (const sonde_source_info_t &source : sources) {
    fmt::print(file, "  process {}  {} records, {}{}  {}\n", source.process, source.records,
               toolkit::format_bytes(source.file_bytes), source.complete != 0 ? "" : ", not closed in order",
               visible(source.command));
  }
  const std::vector<sonde_loss_t> losses = losses_of(host, capture.get());
  fmt::print(file, "  losses: {}\n", losses.empty() ? "0" : "");
  for (const sonde_loss_t &loss : losses) {
    fmt::print(file, "    {}: {} (process {}, stream {})\n", cause_words(loss.cause), loss_words(loss),
               loss.source == 0 || loss.source > sources.size() ? 0 : sources[loss.source - 1].process, loss.stream);
  }
}

}  // namespace sonde::cli
