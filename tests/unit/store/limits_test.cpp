// Full disks, limits of size and memory, and processes that are killed: what is lost is counted, what was sealed
// is read.
#include <sonde/spaces/host.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core/live.h"
#include "house.h"
#include "store/file_reader.h"
#include "streams.h"

namespace sonde::store::testing {
namespace {

// Emits `count` host calls with contents that do not compress, through a writer of this thread; how many were taken.
uint64_t emit_noise(sonde_session_t *session, uint64_t count, uint64_t seed = 1) {
  sonde_writer_t *writer = nullptr;
  EXPECT_EQ(capture().writer(session, &writer), SONDE_OK) << last_error();
  std::mt19937_64 random(seed);
  uint64_t taken = 0;
  for (uint64_t index = 0; index < count; ++index) {
    sonde_host_call_t record{};
    SONDE_RECORD_INIT(&record, SONDE_SPACE_HOST, SONDE_HOST_CALL, sonde_stamp());
    record.end = random();
    record.thread = random();
    record.correlation = index;
    taken += static_cast<uint64_t>(sonde_write(&capture(), writer, &record, sizeof record));
  }
  return taken;
}

uint64_t count_of(const std::vector<uint8_t> &records, size_t bytes_each) { return records.size() / bytes_each; }

uint64_t sum(const std::vector<sonde_loss_t> &rows, uint32_t cause) {
  uint64_t records = 0;
  for (const sonde_loss_t &row : rows) records += row.cause == cause ? row.records : 0;
  return records;
}

struct Child {
  pid_t process = 0;
  int pipe = -1;

  // Runs `body` in a forked child with the writing end of a pipe.
  static Child start(const std::function<void(int)> &body) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    const pid_t process = ::fork();
    if (process == 0) {
      ::close(ends[0]);
      body(ends[1]);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    ::close(ends[1]);
    return {process, ends[0]};
  }

  template <typename T>
  bool read(T &out) const {
    return ::read(pipe, &out, sizeof out) == static_cast<ssize_t>(sizeof out);
  }

  int wait() const {
    int status = 0;
    ::waitpid(process, &status, 0);
    ::close(pipe);
    return status;
  }
};

template <typename T>
void tell(int pipe, const T &value) {
  if (::write(pipe, &value, sizeof value) != static_cast<ssize_t>(sizeof value)) ::_exit(3);
}

TEST(Limits, AtTheLimitOfTheFileRecordsAreDroppedAndCounted) {
  const Folder folder;
  const std::string path = folder.file("a.sonde");
  TestSession session(0, {}, 8 << 20);
  sonde_writer_options_t options{};
  options.struct_size = sizeof options;
  options.file_limit = 300'000;
  options.chunk_bytes = 65536;
  sonde_recording_t *recording = nullptr;
  SONDE_ASSERT_OK(store_service().record(session, path.c_str(), "sonde.host", &options, &recording));
  SONDE_ASSERT_OK(sessions().start(session));
  const uint64_t taken = emit_noise(session, 50'000);
  SONDE_ASSERT_OK(sessions().stop(session, kPatienceNs));
  SONDE_ASSERT_OK(store_service().finish(recording));
  const TestCapture file(path);
  EXPECT_EQ(file.info().complete, 1u);
  EXPECT_LE(file.info().file_bytes, 300'000u + 8192) << "ledger and index may lie behind the limit";
  EXPECT_GT(file.info().file_bytes, 200'000u);
  const uint64_t kept = count_of(file.replay().of_space(SONDE_SPACE_HOST), sizeof(sonde_host_call_t));
  EXPECT_GT(kept, 1000u);
  EXPECT_LT(kept, taken);
  // Records of the session itself may be among the lost, so count the streams of threads.
  uint64_t lost = 0;
  for (const sonde_loss_t &row : file.losses()) lost += row.cause == SONDE_LOSS_DISK ? row.bytes / 48 : 0;
  EXPECT_GE(kept + lost + sum(file.losses(), SONDE_LOSS_QUEUE_FULL), taken);
  EXPECT_GE(sum(session.losses(), SONDE_LOSS_DISK), taken - kept - sum(file.losses(), SONDE_LOSS_QUEUE_FULL));
}

// RLIMIT_FSIZE makes write fail in the middle of a chunk, as a full disk does, and sends a deadly signal besides.
TEST(Limits, AFullDiskEndsNothingAndIsCounted) {
  const Folder folder;
  const std::string path = folder.file("a.sonde");
  const Child child = Child::start([&](int pipe) {
    TestSession session(0, {}, 8 << 20);
    sonde_writer_options_t options{};
    options.struct_size = sizeof options;
    options.chunk_bytes = 65536;
    sonde_recording_t *recording = nullptr;
    EXPECT_EQ(store_service().record(session, path.c_str(), "sonde.host", &options, &recording), SONDE_OK);
    EXPECT_EQ(sessions().start(session), SONDE_OK);
    uint64_t taken = emit_noise(session, 1);
    // From here on: the thread's ring is a file too, and is there by now.
    const rlimit limit{400'000, 400'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(3);
    taken += emit_noise(session, 50'000);
    EXPECT_EQ(sessions().stop(session, kPatienceNs), SONDE_OK);
    const uint64_t lost = sum(session.losses(), SONDE_LOSS_DISK) + sum(session.losses(), SONDE_LOSS_QUEUE_FULL);
    store_service().finish(recording);
    tell(pipe, taken);
    tell(pipe, lost);
  });
  uint64_t taken = 0;
  uint64_t lost = 0;
  ASSERT_TRUE(child.read(taken));
  ASSERT_TRUE(child.read(lost));
  EXPECT_EQ(child.wait(), 0);
  EXPECT_LE(std::filesystem::file_size(path), 400'000u);
  const TestCapture file(path);
  ASSERT_EQ(file.status(), SONDE_OK) << file.error();
  EXPECT_EQ(file.info().damaged_bytes, 0u) << "no part of a chunk remains";
  const uint64_t kept = count_of(file.replay().of_space(SONDE_SPACE_HOST), sizeof(sonde_host_call_t));
  EXPECT_GT(kept, 1000u);
  EXPECT_GE(kept + lost, taken);
  EXPECT_LE(kept + lost, taken + 20) << "records of the session itself";
}

// 10^7 records through a small cap: nothing grows, and every record is in the file or in the ledger.
TEST(Limits, MemoryStaysBelowTheCapWithTenMillionEvents) {
  constexpr uint64_t kCap = 16 << 20;
  constexpr uint64_t kEvents = kSanitized ? 500'000 : 10'000'000;
  const Folder folder;
  const std::string path = folder.file("a.sonde");
  const Child child = Child::start([&](int pipe) {
    const auto resident = [] {
      rusage usage{};
      ::getrusage(RUSAGE_SELF, &usage);
      return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    };
    TestSession session(kCap, {}, 1 << 20);
    sonde_recording_t *recording = nullptr;
    EXPECT_EQ(store_service().record(session, path.c_str(), "sonde.host", nullptr, &recording), SONDE_OK);
    EXPECT_EQ(sessions().start(session), SONDE_OK);
    const uint64_t before = resident();
    sonde_writer_t *writer = nullptr;
    EXPECT_EQ(capture().writer(session, &writer), SONDE_OK);
    uint64_t taken = 0;
    for (uint64_t index = 0; index < kEvents; ++index) {
      sonde_host_call_end_t record{};
      SONDE_RECORD_INIT(&record, SONDE_SPACE_HOST, SONDE_HOST_CALL_END, sonde_stamp());
      record.thread = 5;
      record.correlation = index;
      taken += static_cast<uint64_t>(sonde_write(&capture(), writer, &record, sizeof record));
    }
    EXPECT_EQ(sessions().stop(session, kPatienceNs), SONDE_OK);
    const uint64_t peak = session.status().memory_peak;
    const std::vector<sonde_loss_t> losses = session.losses();
    EXPECT_EQ(store_service().finish(recording), SONDE_OK);
    tell(pipe, taken);
    tell(pipe, sum(losses, SONDE_LOSS_QUEUE_FULL) + sum(losses, SONDE_LOSS_MEMORY_CAP));
    tell(pipe, sum(losses, SONDE_LOSS_RING_FULL));
    tell(pipe, peak);
    tell(pipe, resident() - before);
  });
  uint64_t taken = 0, lost = 0, ring_full = 0, peak = 0, growth = 0;
  ASSERT_TRUE(child.read(taken) && child.read(lost) && child.read(ring_full) && child.read(peak) && child.read(growth));
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(taken + ring_full, kEvents);
  EXPECT_LE(peak, kCap * 11 / 10);
  if (!kSanitized) {
    EXPECT_LE(growth, kCap * 11 / 10);
  }
  const TestCapture file(path);
  EXPECT_EQ(file.info().complete, 1u);
  const uint64_t kept = file.info().records;
  EXPECT_GE(kept + lost, taken);
  EXPECT_LE(kept + lost, taken + 100) << "records of the session itself";
  RecordProperty("peak_bytes", std::to_string(peak));
  RecordProperty("resident_growth_bytes", std::to_string(growth));
  RecordProperty("records_lost", std::to_string(lost));
}

// With a queue that is too small for the encoder's speed, chunks are written as they are before anything is dropped.
// How many records outrun the encoder depends on the machine's other work, so more are emitted until they do.
TEST(Limits, WhenCompressionIsTooSlowChunksAreWrittenUncompressed) {
  const auto codecs = [&](const std::string &path, uint32_t when_full, uint64_t records) {
    TestSession session(8 << 20, {}, 1 << 20, SONDE_POLICY_STALL, 1'000'000'000);
    sonde_writer_options_t options{};
    options.struct_size = sizeof options;
    options.when_full = when_full;
    options.level = 19;  // some hundred times slower than the default
    sonde_recording_t *recording = nullptr;
    EXPECT_EQ(store_service().record(session, path.c_str(), "sonde.host", &options, &recording), SONDE_OK);
    EXPECT_EQ(sessions().start(session), SONDE_OK);
    emit_noise(session, records);
    EXPECT_EQ(sessions().stop(session, kPatienceNs), SONDE_OK);
    EXPECT_EQ(store_service().finish(recording), SONDE_OK);
    Result<std::unique_ptr<ByteSource>> source = open_source(path);
    EXPECT_TRUE(source);
    Result<std::unique_ptr<FileReader>> reader = FileReader::open(std::move(*source));
    EXPECT_TRUE(reader);
    std::map<uint32_t, uint64_t> chunks;
    for (const FoundChunk &chunk : (*reader)->chunks()) {
      if (chunk.header.type == static_cast<uint32_t>(ChunkType::kRecords)) ++chunks[chunk.header.codec];
    }
    return chunks[static_cast<uint32_t>(Codec::kRows)];
  };
  uint64_t spilled = 0;
  uint64_t dropped = 0;
  // A checked program emits more slowly than even this encoder writes: there one round has to do.
  for (uint64_t records = 200'000; records <= (kSanitized ? 200'000u : 3'200'000u); records *= 2) {
    const Folder folder;
    spilled = codecs(folder.file("spill.sonde"), SONDE_FULL_SPILL, records);
    EXPECT_EQ(codecs(folder.file("drop.sonde"), SONDE_FULL_DROP, records), 0u);
    const TestCapture drop(folder.file("drop.sonde"));
    dropped = sum(drop.losses(), SONDE_LOSS_QUEUE_FULL);
    const TestCapture spill(folder.file("spill.sonde"));
    const uint64_t accounted = count_of(spill.replay().of_space(SONDE_SPACE_HOST), sizeof(sonde_host_call_t)) +
                               sum(spill.losses(), SONDE_LOSS_QUEUE_FULL);
    EXPECT_GE(accounted, records);
    EXPECT_LE(accounted, records + 16) << "a batch that is lost may hold a few of the session's own records too";
    if (spilled > 3 && dropped > 0) break;
  }
  if (!kSanitized) {
    EXPECT_GT(spilled, 3u);
    EXPECT_GT(dropped, 0u);
  }
}

// kill -9 while recording: what the child said it emitted is in the file or in the tail, to the byte.
TEST(Crash, AfterKillTheTailIsKnownToTheByte) {
  for (int round = 0; round < 5; ++round) {
    const Folder folder;
    const std::string path = folder.file("a.sonde");
    const Child child = Child::start([&](int pipe) {
      TestSession session(0, path + ".live", 8 << 20);
      sonde_writer_options_t options{};
      options.struct_size = sizeof options;
      options.seal_ns = 20'000'000;
      options.chunk_bytes = 65536;
      sonde_recording_t *recording = nullptr;
      EXPECT_EQ(store_service().record(session, path.c_str(), "sonde.host", &options, &recording), SONDE_OK);
      EXPECT_EQ(sessions().start(session), SONDE_OK);
      uint64_t emitted = 0;
      for (int burst = 0; burst < 60; ++burst) {
        emitted += emit_noise(session, 300);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      tell(pipe, emitted);
      for (;;) ::pause();
    });
    uint64_t emitted = 0;
    ASSERT_TRUE(child.read(emitted));
    ::kill(child.process, SIGKILL);
    const int status = child.wait();
    ASSERT_TRUE(WIFSIGNALED(status));

    const TestCapture file(path);
    ASSERT_EQ(file.status(), SONDE_OK) << file.error();
    EXPECT_EQ(file.info().complete, 0u);
    const Collector replayed = file.replay();
    const uint64_t kept = replayed.of_space(SONDE_SPACE_HOST).size();
    EXPECT_GT(kept, 0u);
    uint64_t thread_stream = 0;
    for (const Collector::Batch &batch : replayed.batches) {
      if (reinterpret_cast<const sonde_record_t *>(batch.data.data())->space == SONDE_SPACE_HOST) {
        thread_stream = batch.stream;
      }
    }
    uint64_t tail = 0;
    for (const sonde_loss_t &row : file.losses(SONDE_LOSS_TAIL)) {
      EXPECT_NE(row.stream, 0u) << "nothing is unknown";
      EXPECT_EQ(row.records, UINT64_MAX);
      if (row.stream == thread_stream) tail = row.bytes;
    }
    EXPECT_EQ(kept + tail, emitted * sizeof(sonde_host_call_t));
    EXPECT_EQ(sum(file.losses(), SONDE_LOSS_QUEUE_FULL), 0u);

    // Without the live file the loss is not known, and the file says by what it is bounded.
    std::filesystem::remove(path + ".live");
    const TestCapture alone(path);
    const std::vector<sonde_loss_t> rows = alone.losses(SONDE_LOSS_TAIL);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].stream, 0u);
    EXPECT_EQ(rows[0].records, UINT64_MAX);
    EXPECT_GE(rows[0].bytes, uint64_t{64} << 20) << "the memory cap bounds it";
    EXPECT_LE(rows[0].bytes, uint64_t{66} << 20);
  }
}

TEST(Crash, AProcessThatEndsBeforeItsFirstChunkIsASourceWithATail) {
  const Folder folder;
  const std::string path = folder.file("a.sonde");
  const Child child = Child::start([&](int pipe) {
    TestSession session(0, path + ".live", 1 << 20);
    sonde_writer_options_t options{};
    options.struct_size = sizeof options;
    options.seal_ns = 60'000'000'000;
    sonde_recording_t *recording = nullptr;
    EXPECT_EQ(store_service().record(session, path.c_str(), "sonde.host", &options, &recording), SONDE_OK);
    EXPECT_EQ(sessions().start(session), SONDE_OK);
    tell(pipe, emit_noise(session, 100));
    for (;;) ::pause();
  });
  uint64_t emitted = 0;
  ASSERT_TRUE(child.read(emitted));
  ::kill(child.process, SIGKILL);
  child.wait();
  const TestCapture run(folder.path());
  ASSERT_EQ(run.status(), SONDE_OK) << run.error();
  ASSERT_EQ(run.sources(), 1u);
  EXPECT_STRNE(run.info().damage, "");
  uint64_t bytes = 0;
  for (const sonde_loss_t &row : run.losses(SONDE_LOSS_TAIL)) bytes += row.bytes;
  EXPECT_GE(bytes, emitted * sizeof(sonde_host_call_t));
  EXPECT_TRUE(run.replay().batches.empty());
}

}  // namespace
}  // namespace sonde::store::testing
