// Capture files: how fast records are written and replayed, and how small they are.
//
// Replay is measured through the public services with one counting subscriber; beside it, on the same chunks, stand
// the column decoder alone and the decompression alone of every zstd frame in them. records_per_second of
// Replay/small is the bar (20 million); bytes_per_record of Encode/kernels is the other (16).
#include <benchmark/benchmark.h>
#include <sonde/capture.h>
#include <sonde/delivery.h>
#include <sonde/session.h>
#include <sonde/store.h>
#include <unistd.h>
#include <zstd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "../unit/store/streams.h"
#include "core/error.h"
#include "core/services.h"
#include "store/chunk_writer.h"
#include "store/file_reader.h"
#include "store/install.h"

namespace sonde::store {
namespace {

using testing::Records;

constexpr uint64_t kKernels = 1'000'000;
constexpr uint64_t kSmall = 4'000'000;

void require(sonde_status status) {
  if (status == SONDE_OK) return;
  std::fprintf(stderr, "store_bench: %s\n", last_error());
  std::exit(1);
}

uint32_t small_space() {
  const sonde_field_t fields[] = {{"value", 16, 8, SONDE_KIND_ADDRESS, 0, "", ""},
                                  {"counter", 24, 8, SONDE_KIND_UINT, 0, "", ""}};
  const sonde_record_type_t type = {1, 32, "small", "", fields, 2, sizeof(sonde_field_t)};
  const sonde_schema_t schema = {sizeof(sonde_schema_t),      1, "com.example.small", "", &type,
                                 sizeof(sonde_record_type_t), 0};
  uint32_t space = 0;
  require(service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE).register_space(&schema, &space));
  return space;
}

// Records of both kinds, made once. `small` has number 64, the first that a third party's space gets.
const Records &records_of(bool kernels) {
  static const Records kernel_records = testing::TrainingStream().take(kKernels);
  static const Records small_records = testing::small_records(kSmall);
  return kernels ? kernel_records : small_records;
}

uint64_t record_bytes(bool kernels) { return kernels ? sizeof(sonde_device_kernel_t) : sizeof(testing::SmallRecord); }

// Writes a file of all records, in batches of 512 KiB as ports submit them.
uint64_t write_file(const std::string &path, bool kernels, bool spill) {
  const Records &records = records_of(kernels);
  const uint64_t each = record_bytes(kernels);
  const uint64_t batch_bytes = (512 << 10) / each * each;
  ChunkWriterOptions options;
  options.path = path;
  ChunkWriterHooks hooks;
  hooks.ledger = [] { return std::vector<sonde_loss_t>(); };
  hooks.lose = [](uint64_t, uint64_t, uint64_t) { std::abort(); };
  hooks.fail = [](const Error &) { std::abort(); };
  ChunkWriter writer(options, hooks);
  sonde_clock_t clock{};
  clock.struct_size = sizeof clock;
  clock.id = SONDE_CLOCK_UNIX_NS;
  clock.multiplier = 1;
  uint64_t sequence = 0;
  for (uint64_t at = 0; at < records.size(); at += batch_bytes) {
    sonde_batch_t batch{};
    batch.struct_size = sizeof batch;
    batch.stream = 1;
    batch.sequence = sequence++;
    batch.data = records.data() + at;
    batch.bytes = std::min(batch_bytes, records.size() - at);
    batch.count = batch.bytes / each;
    batch.first_time = reinterpret_cast<const sonde_record_t *>(batch.data)->time;
    batch.last_time = reinterpret_cast<const sonde_record_t *>(batch.data + batch.bytes - each)->time;
    batch.position = at + batch.bytes;
    batch.spaces = kernels ? uint64_t{1} << SONDE_SPACE_DEVICE : 1;
    batch.clock = &clock;
    writer.add(batch, spill);
  }
  if (!writer.finish(1)) std::abort();
  return std::filesystem::file_size(path);
}

// Both files, in a folder that is removed at exit.
const std::string &file_of(bool kernels) {
  static const std::string folder = [] {
    std::string name = (std::filesystem::temp_directory_path() / "store_bench_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    static std::string kept;
    kept = name;
    std::atexit([] {
      std::error_code ignored;
      std::filesystem::remove_all(kept, ignored);
    });
    return name;
  }();
  static const std::string paths[2] = {folder + "/small.sonde", folder + "/kernels.sonde"};
  static const bool made = [] {
    if (small_space() != SONDE_SPACE_FIRST_DYNAMIC) std::abort();
    write_file(paths[0], false, false);
    write_file(paths[1], true, false);
    return true;
  }();
  (void)made;
  return paths[kernels ? 1 : 0];
}

std::unique_ptr<FileReader> open_reader(bool kernels) {
  Result<std::unique_ptr<ByteSource>> source = open_source(file_of(kernels));
  if (!source) std::abort();
  Result<std::unique_ptr<FileReader>> reader = FileReader::open(std::move(*source));
  if (!reader) std::abort();
  return std::move(*reader);
}

// Payloads of the record chunks in memory, so that decoding is measured without the disk.
struct Chunks {
  struct One {
    Bytes encoded;
    uint64_t bytes;
    uint64_t count;
  };
  std::vector<One> all;
};

const Chunks &chunks_of(bool kernels) {
  static const auto load = [](bool which) {
    const std::unique_ptr<FileReader> reader = open_reader(which);
    Chunks chunks;
    BatchTable table;
    for (const FoundChunk &chunk : reader->chunks()) {
      if (chunk.header.type != static_cast<uint32_t>(ChunkType::kRecords)) continue;
      std::span<const uint8_t> encoded;
      if (!reader->read_batches(chunk, table, encoded)) std::abort();
      chunks.all.push_back(
          {Bytes(encoded.begin(), encoded.end()), chunk.header.record_bytes, chunk.header.record_count});
    }
    return chunks;
  };
  static const Chunks small = load(false);
  static const Chunks large = load(true);
  return kernels ? large : small;
}

void set_rates(benchmark::State &state, bool kernels) {
  const uint64_t records = kernels ? kKernels : kSmall;
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * records));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * records * record_bytes(kernels)));
}

void BM_Encode(benchmark::State &state, bool kernels) {
  const Records &records = records_of(kernels);
  const uint64_t each = record_bytes(kernels);
  const uint64_t chunk_bytes = (kDefaultChunkRecordBytes - 64) / each * each;
  RecordEncoder encoder(3);
  Bytes out;
  uint64_t stored = 0;
  for (auto _ : state) {
    stored = 0;
    for (uint64_t at = 0; at < records.size(); at += chunk_bytes) {
      out.clear();
      encoder.encode(std::span(records).subspan(at, std::min(chunk_bytes, records.size() - at)), out);
      stored += out.size();
    }
  }
  set_rates(state, kernels);
  state.counters["bytes_per_record"] = static_cast<double>(stored * each) / static_cast<double>(records.size());
}

void BM_WriteFile(benchmark::State &state, bool kernels, bool spill) {
  file_of(kernels);
  const std::string path = file_of(kernels) + ".again";
  uint64_t bytes = 0;
  for (auto _ : state) {
    bytes = write_file(path, kernels, spill);
    state.PauseTiming();
    std::filesystem::remove(path);
    state.ResumeTiming();
  }
  set_rates(state, kernels);
  state.counters["bytes_per_record"] = static_cast<double>(bytes) / static_cast<double>(kernels ? kKernels : kSmall);
}

// The decompressor's own time on these chunks: every zstd frame in them, nothing else.
void BM_Decompress(benchmark::State &state, bool kernels) {
  const Chunks &chunks = chunks_of(kernels);
  struct Frame {
    const uint8_t *at;
    size_t bytes;
  };
  std::vector<Frame> frames;
  uint64_t frame_bytes = 0;
  for (const Chunks::One &chunk : chunks.all) {
    constexpr uint8_t kMagic[4] = {0x28, 0xb5, 0x2f, 0xfd};
    const uint8_t *const end = chunk.encoded.data() + chunk.encoded.size();
    for (const uint8_t *at = chunk.encoded.data(); end - at > 4;) {
      const size_t bytes =
          std::memcmp(at, kMagic, 4) == 0 ? ZSTD_findFrameCompressedSize(at, static_cast<size_t>(end - at)) : 0;
      if (bytes == 0 || ZSTD_isError(bytes) != 0) {
        ++at;
        continue;
      }
      frames.push_back({at, bytes});
      frame_bytes += ZSTD_getFrameContentSize(at, bytes);
      at += bytes;
    }
  }
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  Bytes out(kDefaultChunkRecordBytes * 2);
  for (auto _ : state) {
    for (const Frame &frame : frames) {
      const size_t size = ZSTD_decompressDCtx(context.get(), out.data(), out.size(), frame.at, frame.bytes);
      if (ZSTD_isError(size) != 0) std::abort();
    }
  }
  set_rates(state, kernels);
  state.counters["unpacked_bytes_per_record"] =
      static_cast<double>(frame_bytes) / static_cast<double>(kernels ? kKernels : kSmall);
}

void BM_Decode(benchmark::State &state, bool kernels) {
  const Chunks &chunks = chunks_of(kernels);
  RecordDecoder decoder;
  const SpaceMap spaces;
  Records rows(kDefaultChunkRecordBytes);
  for (auto _ : state) {
    for (const Chunks::One &chunk : chunks.all) {
      if (!decoder.decode_columns(chunk.encoded, spaces, std::span(rows).first(chunk.bytes), chunk.count)) std::abort();
    }
  }
  set_rates(state, kernels);
}

// Walks every record, as a subscriber that counts does.
sonde_status count_batch(void *user, const sonde_batch_t *batch) {
  uint64_t count = 0;
  for (const sonde_record_t *record = sonde_batch_next(batch, nullptr); record != nullptr;
       record = sonde_batch_next(batch, record)) {
    ++count;
  }
  *static_cast<uint64_t *>(user) += count;
  return SONDE_OK;
}

// The whole of a replay: read, check, decode, deliver to a subscriber on its own thread. Time is that of all threads
// together (process CPU), so the rate is that of one core.
void BM_Replay(benchmark::State &state, bool kernels) {
  const auto &sessions = service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
  const auto &delivery = service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE);
  const auto &store = service<sonde_store_service_t>(SONDE_STORE_SERVICE);
  sonde_capture_t *capture = nullptr;
  require(store.open(file_of(kernels).c_str(), &capture));
  for (auto _ : state) {
    sonde_session_t *session = nullptr;
    sonde_session_options_t options{};
    options.struct_size = sizeof options;
    require(sessions.open(&options, &session));
    uint64_t count = 0;
    const sonde_interest_t interest = {kernels ? SONDE_SPACE_DEVICE : SONDE_SPACE_FIRST_DYNAMIC, SONDE_LEVEL_RECORDS,
                                       UINT64_MAX};
    sonde_subscription_t subscription{};
    subscription.struct_size = sizeof subscription;
    subscription.name = "count";
    subscription.interests = &interest;
    subscription.interest_count = 1;
    subscription.on_batch = count_batch;
    subscription.user = &count;
    uint64_t id = 0;
    require(delivery.subscribe(session, &subscription, &id));
    require(sessions.start(session));
    require(store.replay(capture, session, nullptr, nullptr));
    require(sessions.stop(session, 0));
    if (count != (kernels ? kKernels : kSmall)) std::abort();
    require(sessions.close(session));
  }
  require(store.close(capture));
  set_rates(state, kernels);
}

void BM_Open(benchmark::State &state, bool kernels) {
  file_of(kernels);
  for (auto _ : state) open_reader(kernels);
  set_rates(state, kernels);
}

BENCHMARK_CAPTURE(BM_Encode, kernels, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Encode, small, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_WriteFile, kernels, true, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_WriteFile, small, false, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_WriteFile, small_spilled, false, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Decompress, kernels, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Decompress, small, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Decode, kernels, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Decode, small, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Open, small, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Replay, kernels, true)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(BM_Replay, small, false)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace
}  // namespace sonde::store

int main(int argc, char **argv) {
  sonde::core::install();
  sonde::store::install();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
