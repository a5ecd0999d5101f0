#include "store/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

namespace sonde::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".sonde";
constexpr std::string_view kLiveExtension = ".sonde.live";
constexpr std::string_view kLiveSuffix = ".live";

bool ends_with(const std::string &text, std::string_view end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Paths of the capture files of a directory, made or not, sorted.
Result<std::set<std::string>> files_of(const std::string &directory) {
  std::set<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().string();
    if (ends_with(path, kExtension)) paths.insert(path);
    if (ends_with(path, kLiveExtension)) paths.insert(path.substr(0, path.size() - kLiveSuffix.size()));
  }
  if (error) return Error{SONDE_E_IO, "cannot read directory '" + directory + "': " + error.message()};
  return paths;
}

std::string damage_text(const FileReader &reader) {
  std::string text;
  for (const Damage &damage : reader.damages()) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{} bytes at {} {}", damage.bytes, damage.offset,
                        damage.at_end ? "are the begin of a chunk that was not written to its end" : "are damaged");
    if (text.size() > 400) {
      text += "; ...";
      break;
    }
  }
  return text;
}

bool emitted_anything(const LiveState &live) {
  return live.overflow || std::any_of(live.streams.begin(), live.streams.end(),
                                      [](const core::LiveStream &stream) { return stream.published != 0; });
}

}  // namespace

Result<std::unique_ptr<Capture>> Capture::open(const std::string &path) {
  auto capture = std::make_unique<Capture>();
  std::error_code error;
  const bool directory = fs::is_directory(path, error);
  std::set<std::string> paths;
  if (directory) {
    Result<std::set<std::string>> found = files_of(path);
    if (!found) return found.error();
    paths = std::move(*found);
  } else {
    paths.insert(path);
  }

  Error first{SONDE_E_NOT_FOUND, "directory '" + path + "' holds no capture file (*.sonde)"};
  bool readable = false;
  for (const std::string &file : paths) {
    Source source;
    source.path = file;
    source.live = read_live_file(file + std::string(kLiveSuffix));
    Result<std::unique_ptr<ByteSource>> bytes = open_source(file);
    if (!bytes) {
      const bool never_made = bytes.error().code == SONDE_E_NOT_FOUND && source.live;
      if (never_made && !emitted_anything(*source.live)) continue;
      if (!never_made) first = bytes.error();
      source.failure =
          never_made ? "the process ended before its capture file was made" : std::string(bytes.error().text);
      readable = readable || never_made;
    } else {
      source.file_bytes = (*bytes)->size();
      Result<std::unique_ptr<FileReader>> reader = FileReader::open(std::move(*bytes));
      if (reader) {
        source.reader = std::move(*reader);
        readable = true;
      } else {
        first = {reader.error().code, "'" + file + "': " + reader.error().text};
        source.failure = reader.error().text;
      }
    }
    capture->sources_.push_back(std::move(source));
  }
  if (!readable) return first;
  return capture;
}

Result<sonde_source_info_t> Capture::info(uint64_t index) {
  if (index >= sources_.size()) {
    return Error{SONDE_E_RANGE, fmt::format("source {} of a capture with {} sources", index, sources_.size())};
  }
  const std::lock_guard lock(mutex_);
  Source &source = sources_[index];
  sonde_source_info_t info{};
  info.struct_size = sizeof info;
  info.path = source.path.c_str();
  info.file_bytes = source.file_bytes;
  info.host = info.program = info.command = info.boot = "";
  if (source.reader == nullptr) {
    info.damage = source.failure.c_str();
    info.damaged_bytes = source.file_bytes;
    info.process = source.live ? source.live->process : 0;
    return info;
  }
  const FileReader &reader = *source.reader;
  std::string damage = damage_text(reader);
  if (source.damage.empty() || source.damage.back() != damage) source.damage.push_back(std::move(damage));
  info.complete = reader.complete() ? 1 : 0;
  info.host = reader.texts().host.c_str();
  info.program = reader.texts().program.c_str();
  info.command = reader.texts().command.c_str();
  info.boot = reader.texts().boot.c_str();
  info.process = reader.header().process;
  info.parent_process = reader.header().parent_process;
  info.start_ns = reader.header().start_ns;
  info.stop_ns = reader.stop_ns();
  info.records = reader.records();
  info.chunks = reader.chunks().size();
  info.record_bytes = reader.record_bytes();
  for (const Damage &damage : reader.damages()) info.damaged_bytes += damage.bytes;
  info.damage = source.damage.back().c_str();
  return info;
}

std::vector<sonde_loss_t> Capture::losses_of(uint64_t index) {
  const std::lock_guard lock(mutex_);
  const Source &source = sources_[index];
  std::vector<sonde_loss_t> rows;
  const auto damaged = [&](uint64_t records, uint64_t bytes) {
    sonde_loss_t row{};
    row.cause = SONDE_LOSS_DAMAGED;
    row.records = records;
    row.bytes = bytes;
    rows.push_back(row);
  };
  if (source.reader == nullptr) {
    if (source.live) rows = losses_of_unfinished({}, {}, source.live, 0);
    if (source.file_bytes != 0) damaged(UINT64_MAX, source.file_bytes);
  } else {
    const FileReader &reader = *source.reader;
    rows = reader.complete()
               ? reader.ledger()
               : losses_of_unfinished(reader.ledger(), reader.positions(), source.live, reader.header().memory_bound);
    uint64_t records = 0;
    uint64_t bytes = 0;
    for (const Damage &damage : reader.damages()) {
      bytes += damage.bytes;
      // Records of a chunk that was being written when the process ended count in its tail already.
      const bool in_tail = damage.at_end && !reader.complete() && source.live;
      if (in_tail || damage.records == 0) continue;
      records = damage.records == UINT64_MAX || records == UINT64_MAX ? UINT64_MAX : records + damage.records;
    }
    if (bytes != 0) damaged(records, bytes);
  }
  for (sonde_loss_t &row : rows) row.source = static_cast<uint32_t>(index + 1);
  std::sort(rows.begin(), rows.end(), [](const sonde_loss_t &a, const sonde_loss_t &b) {
    return std::tie(a.stream, a.cause, a.subscriber) < std::tie(b.stream, b.cause, b.subscriber);
  });
  return rows;
}

std::vector<sonde_loss_t> Capture::losses() {
  std::vector<sonde_loss_t> all;
  for (uint64_t index = 0; index < sources_.size(); ++index) {
    const std::vector<sonde_loss_t> rows = losses_of(index);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace sonde::store
