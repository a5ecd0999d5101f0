#include "store/tail.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

namespace sonde::store {
namespace {

void raise(std::vector<sonde_loss_t> &rows, uint64_t stream, uint32_t cause, uint64_t records) {
  if (records == 0) return;
  for (sonde_loss_t &row : rows) {
    if (row.stream == stream && row.cause == cause) {
      row.records = std::max(row.records, records);
      return;
    }
  }
  sonde_loss_t row{};
  row.stream = stream;
  row.cause = cause;
  row.records = records;
  rows.push_back(row);
}

void add_tail(std::vector<sonde_loss_t> &rows, uint64_t stream, uint64_t bytes) {
  sonde_loss_t row{};
  row.stream = stream;
  row.cause = SONDE_LOSS_TAIL;
  row.records = UINT64_MAX;
  row.bytes = bytes;
  rows.push_back(row);
}

}  // namespace

std::optional<LiveState> read_live_file(const std::string &path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (file == nullptr) return std::nullopt;
  core::LiveHeader header{};
  if (std::fread(&header, sizeof header, 1, file.get()) != 1 || header.magic != core::kLiveMagic ||
      header.version != core::kLiveVersion) {
    return std::nullopt;
  }
  LiveState state;
  state.overflow = header.overflow != 0;
  state.process = header.process;
  state.lost_other = header.lost_other;
  for (uint32_t row = 0; row < header.used; ++row) {
    core::LiveStream stream{};
    if (std::fread(&stream, sizeof stream, 1, file.get()) != 1) {
      state.overflow = true;
      break;
    }
    if (stream.stream != 0) state.streams.push_back(stream);
  }
  return state;
}

std::vector<sonde_loss_t> losses_of_unfinished(const std::vector<sonde_loss_t> &ledger,
                                               const std::map<uint64_t, uint64_t> &positions,
                                               const std::optional<LiveState> &live, uint64_t bound) {
  std::vector<sonde_loss_t> rows = ledger;
  if (live) {
    for (const core::LiveStream &stream : live->streams) {
      const auto position = positions.find(stream.stream);
      const uint64_t written = position == positions.end() ? 0 : position->second;
      if (stream.published > written) add_tail(rows, stream.stream, stream.published - written);
      raise(rows, stream.stream, SONDE_LOSS_RING_FULL, stream.lost_full);
      raise(rows, stream.stream, SONDE_LOSS_TOO_BIG, stream.lost_big);
      raise(rows, stream.stream, SONDE_LOSS_OVERWRITTEN, stream.lost_overwritten);
      raise(rows, stream.stream, SONDE_LOSS_VENDOR, stream.lost_vendor);
    }
  }
  if (!live || live->overflow) add_tail(rows, 0, bound == 0 ? UINT64_MAX : bound);
  return rows;
}

}  // namespace sonde::store
