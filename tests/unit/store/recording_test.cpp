// Recording a session and replaying the file: what listeners of the replay get is what listeners of the session got.
#include <sonde/spaces/framework.h>
#include <sonde/spaces/host.h>
#include <sonde/spaces/memory.h>
#include <sonde/spaces/object.h>
#include <sonde/spaces/session.h>

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "house.h"
#include "streams.h"

namespace sonde::store::testing {
namespace {

using std::chrono::milliseconds;

// Runs a session that is recorded and listened to, and finishes the file.
void run_recorded(const std::string &path, Collector &live, const std::function<void(sonde_session_t *)> &body,
                  const sonde_writer_options_t *options = nullptr) {
  TestSession session;
  live.attach(session);
  sonde_recording_t *recording = nullptr;
  SONDE_ASSERT_OK(store_service().record(session, path.c_str(), nullptr, options, &recording));
  SONDE_ASSERT_OK(sessions().start(session));
  body(session);
  SONDE_ASSERT_OK(sessions().stop(session, kPatienceNs));
  SONDE_ASSERT_OK(store_service().finish(recording));
}

void emit(sonde_session_t *session, const void *record) {
  SONDE_ASSERT_OK(capture().emit(session, static_cast<const sonde_record_t *>(record)));
}

template <typename Record>
Record filled(uint16_t space, uint16_t type, uint8_t with) {
  Record record;
  std::memset(&record, with, sizeof record);
  SONDE_RECORD_INIT(&record, space, type, sonde_stamp());
  return record;
}

// Same records by stream, and the same batches up to those that were put together.
void expect_same(const Collector &live, const Collector &replayed) {
  std::map<uint64_t, std::vector<uint8_t>> expected;
  std::map<uint64_t, std::vector<uint8_t>> got;
  for (const Collector::Batch &batch : live.batches) {
    auto &all = expected[batch.stream];
    all.insert(all.end(), batch.data.begin(), batch.data.end());
  }
  std::map<uint64_t, uint64_t> position;
  std::map<uint64_t, uint64_t> sequence;
  for (const Collector::Batch &batch : replayed.batches) {
    EXPECT_EQ(batch.source, 1u);
    auto &all = got[batch.stream];
    all.insert(all.end(), batch.data.begin(), batch.data.end());
    position[batch.stream] += batch.data.size();
    EXPECT_EQ(batch.position, position[batch.stream]);
    EXPECT_EQ(batch.sequence, sequence[batch.stream]++);
  }
  EXPECT_EQ(got, expected);
}

TEST(Recording, EveryBuiltinRecordTypeComesBack) {
  const Folder folder;
  Collector live;
  run_recorded(folder.file("a.sonde"), live, [](sonde_session_t *session) {
    uint8_t with = 1;
    for (uint32_t space = 2; space < SONDE_SPACE_FIRST_DYNAMIC; ++space) {
      const sonde_schema_t *schema = nullptr;
      if (capture().schema(space, &schema) != SONDE_OK) continue;
      for (uint32_t index = 0; index < schema->type_count; ++index) {
        const auto &type = *reinterpret_cast<const sonde_record_type_t *>(
            reinterpret_cast<const char *>(schema->types) + uint64_t{schema->type_stride} * index);
        for (int repeat = 0; repeat < 20; ++repeat) {
          std::vector<uint64_t> words(type.fixed_bytes / 8,
                                      uint64_t{0x0101010101010101} * static_cast<uint64_t>(with++));
          auto *const record = reinterpret_cast<sonde_record_t *>(words.data());
          record->size8 = record->fixed8 = static_cast<uint16_t>(words.size());
          record->space = static_cast<uint16_t>(space);
          record->type = static_cast<uint16_t>(type.type);
          record->time = sonde_stamp();
          emit(session, record);
        }
      }
    }
  });
  const TestCapture file(folder.file("a.sonde"));
  ASSERT_EQ(file.status(), SONDE_OK) << file.error();
  const Collector replayed = file.replay();
  EXPECT_GT(replayed.of_space(SONDE_SPACE_DEVICE).size(), 0u);
  expect_same(live, replayed);
  EXPECT_TRUE(file.losses().empty());
}

TEST(Recording, TheSourceTellsWhoMadeIt) {
  const Folder folder;
  Collector live;
  run_recorded(folder.file("a.sonde"), live, [](sonde_session_t *session) {
    const auto record = filled<sonde_host_call_t>(SONDE_SPACE_HOST, SONDE_HOST_CALL, 3);
    emit(session, &record);
  });
  const TestCapture file(folder.file("a.sonde"));
  ASSERT_EQ(file.sources(), 1u);
  const sonde_source_info_t info = file.info();
  EXPECT_EQ(info.complete, 1u);
  EXPECT_EQ(info.process, static_cast<uint64_t>(::getpid()));
  EXPECT_EQ(info.parent_process, static_cast<uint64_t>(::getppid()));
  EXPECT_NE(std::string(info.program).find("store_recording"), std::string::npos) << info.program;
  EXPECT_NE(std::string(info.command).find("store_recording"), std::string::npos) << info.command;
  EXPECT_STRNE(info.host, "");
  EXPECT_STRNE(info.boot, "");
  EXPECT_STREQ(info.damage, "");
  EXPECT_EQ(info.path, folder.file("a.sonde"));
  EXPECT_EQ(info.file_bytes, std::filesystem::file_size(folder.file("a.sonde")));
  EXPECT_GT(info.stop_ns, info.start_ns);
  EXPECT_LT(info.stop_ns - info.start_ns, 60'000'000'000);
  uint64_t records = 0;
  for (const Collector::Batch &batch : live.batches) records += batch.count;
  EXPECT_EQ(info.records, records);
  sonde_source_info_t none{};
  none.struct_size = sizeof none;
  EXPECT_EQ(store_service().source_at(file, 1, &none), SONDE_E_RANGE);
}

TEST(Recording, StringsClocksLossesAndTailsComeBack) {
  const Folder folder;
  Collector live;
  sonde_string_t name = 0;
  run_recorded(folder.file("a.sonde"), live, [&](sonde_session_t *session) {
    SONDE_ASSERT_OK(capture().intern("kernel<\"x\", \x9f>", UINT64_MAX, &name));
    uint64_t stream = 0;
    SONDE_ASSERT_OK(capture().pair_clock(session, 16, sonde_stamp(), 5000, 10));
    SONDE_ASSERT_OK(capture().open_stream(session, "port", 16, &stream));
    uint8_t *buffer = nullptr;
    struct Path {
      sonde_object_call_path_t fixed;
      uint64_t tail[3];
    } path{};
    SONDE_RECORD_INIT(&path.fixed, SONDE_SPACE_OBJECT, SONDE_OBJECT_CALL_PATH, 6000);
    path.fixed.header.size8 = sizeof path / 8;
    path.fixed.path = 7;
    path.fixed.frames = {sizeof path.fixed, 6};
    path.tail[0] = name;
    SONDE_ASSERT_OK(capture().acquire(session, stream, sizeof path, &buffer));
    std::memcpy(buffer, &path, sizeof path);
    SONDE_ASSERT_OK(capture().submit(session, stream, buffer, sizeof path, 5999));
    SONDE_ASSERT_OK(capture().lose(session, stream, SONDE_LOSS_VENDOR, 12, 0));
  });
  const TestCapture file(folder.file("a.sonde"));
  Collector replayed;
  TestSession session;
  replayed.attach(session);
  SONDE_ASSERT_OK(sessions().start(session));
  SONDE_ASSERT_OK(store_service().replay(file, session, nullptr, nullptr));
  const char *text = nullptr;
  SONDE_ASSERT_OK(capture().text(session, 1, name, &text));
  EXPECT_STREQ(text, "kernel<\"x\", \x9f>");
  const std::vector<sonde_loss_t> losses = session.losses();
  ASSERT_EQ(losses.size(), 1u) << "the ledger of the replaying session holds what the file says";
  EXPECT_EQ(losses[0].source, 1u);
  EXPECT_EQ(losses[0].cause, SONDE_LOSS_VENDOR);
  EXPECT_EQ(losses[0].records, 12u);
  SONDE_ASSERT_OK(sessions().stop(session, kPatienceNs));

  const auto of_port = [](const Collector &collector) {
    for (const Collector::Batch &batch : collector.batches) {
      if (batch.clock.id == 16) return batch;
    }
    return Collector::Batch{};
  };
  const Collector::Batch was = of_port(live);
  const Collector::Batch is = of_port(replayed);
  EXPECT_EQ(was.data.size(), sizeof(sonde_object_call_path_t) + 24);
  EXPECT_EQ(is.data, was.data);
  EXPECT_EQ(is.watermark, 5999u);
  EXPECT_EQ(std::make_tuple(is.clock.base_raw, is.clock.base_ns, is.clock.multiplier, is.clock.shift),
            std::make_tuple(was.clock.base_raw, was.clock.base_ns, was.clock.multiplier, was.clock.shift));
}

TEST(Recording, RandomRecordsOfManyThreadsComeBack) {
  const Folder folder;
  std::mt19937_64 random(77);
  for (uint64_t one = 0; one < std::min<uint64_t>(cases() / 20 + 1, 200); ++one) {
    const std::string path = folder.file(std::to_string(one) + ".sonde");
    Collector live;
    sonde_writer_options_t options{};
    options.struct_size = sizeof options;
    options.chunk_bytes = one % 2 == 0 ? 65536 : 0;
    options.seal_ns = one % 3 == 0 ? 1 : 0;  // every batch a chunk
    const uint64_t seeds[3] = {random(), random(), random()};
    run_recorded(
        path, live,
        [&](sonde_session_t *session) {
          std::vector<std::thread> threads;
          for (const uint64_t seed : seeds) {
            threads.emplace_back([=] {
              std::mt19937_64 own(seed);
              for (int round = 0; round < 4; ++round) {
                Records records = random_records(own);
                for (size_t at = 0; at < records.size();) {
                  auto *const record = reinterpret_cast<sonde_record_t *>(records.data() + at);
                  record->space = static_cast<uint16_t>(2 + record->space % 5);  // spaces that somebody wants
                  capture().emit(session, record);
                  at += SONDE_RECORD_BYTES(record);
                }
              }
            });
          }
          for (std::thread &thread : threads) thread.join();
        },
        &options);
    const TestCapture file(path);
    ASSERT_EQ(file.status(), SONDE_OK) << file.error();
    const Collector replayed = file.replay();
    expect_same(live, replayed);
    if (HasFailure()) FAIL() << "case " << one;
  }
}

// A space of a third party, as two programs know it.
uint32_t register_example(const char *name, uint32_t fixed_bytes) {
  const sonde_field_t fields[] = {{"value", 16, 8, SONDE_KIND_UINT, 0, "", ""},
                                  {"more", 24, 8, SONDE_KIND_UINT, 0, "", ""}};
  const sonde_record_type_t type = {1, fixed_bytes, "tick", "", fields, (fixed_bytes - 16) / 8, sizeof(sonde_field_t)};
  const sonde_schema_t schema = {sizeof(sonde_schema_t), 1, name, "", &type, sizeof(sonde_record_type_t), 0};
  uint32_t number = 0;
  EXPECT_EQ(capture().register_space(&schema, &number), SONDE_OK) << last_error();
  return number;
}

// Records `count` ticks of five words in another process, whose numbers of spaces are its own.
void record_ticks_elsewhere(const std::string &path, const char *name, uint64_t count) {
  const pid_t child = ::fork();
  if (child == 0) {
    register_example("com.example.only_there", 24);
    const uint32_t space = register_example(name, 32);
    Collector live;
    run_recorded(path, live, [&](sonde_session_t *session) {
      for (uint64_t index = 0; index < count; ++index) {
        const uint64_t words[5] = {5u | 4u << 16 | uint64_t{space} << 32 | uint64_t{1} << 48, 1000 + index, index, 11,
                                   12};
        emit(session, words);
      }
    });
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// A file from a program that knows more: spaces of third parties and records longer than their schema come back
// whole, under the number that the space has here.
TEST(Recording, SpacesOfOthersAreKeptUnderTheirNumberHere) {
  const Folder folder;
  record_ticks_elsewhere(folder.file("a.sonde"), "com.example.ticks", 100);
  if (HasFatalFailure()) return;
  const uint32_t here = register_example("com.example.ticks", 24);  // an older version of the schema
  const TestCapture file(folder.file("a.sonde"));
  const Collector replayed = file.replay();
  const std::vector<uint8_t> ticks = replayed.of_space(here);
  ASSERT_EQ(ticks.size(), 100u * 40);
  for (uint64_t index = 0; index < 100; ++index) {
    uint64_t words[5];
    std::memcpy(words, ticks.data() + index * 40, 40);
    EXPECT_EQ(words[0], 5u | 4u << 16 | uint64_t{here} << 32 | uint64_t{1} << 48);
    EXPECT_EQ(words[2], index);
    EXPECT_EQ(words[3], 11u);
    EXPECT_EQ(words[4], 12u) << "the tail";
  }
  const sonde_schema_t *schema = nullptr;
  SONDE_ASSERT_OK(capture().schema(here, &schema));
  EXPECT_EQ(schema->types[0].fixed_bytes, 32u) << "the longer schema of the file continues the one here";
  uint32_t other = 0;
  EXPECT_EQ(capture().find_space("com.example.only_there", &other), SONDE_E_NOT_FOUND) << "no record was of it";
}

TEST(Recording, RecordsOfAContradictingSpaceComeUnderANameOfTheirOwn) {
  const Folder folder;
  record_ticks_elsewhere(folder.file("a.sonde"), "com.example.beats", 10);
  if (HasFatalFailure()) return;
  const pid_t child = ::fork();
  if (child == 0) {
    const sonde_field_t field = {"value", 16, 4, SONDE_KIND_INT, 0, "", ""};
    const sonde_record_type_t type = {1, 24, "tick", "", &field, 1, sizeof(sonde_field_t)};
    const sonde_schema_t schema = {sizeof(sonde_schema_t),      1, "com.example.beats", "", &type,
                                   sizeof(sonde_record_type_t), 0};
    uint32_t here = 0;
    EXPECT_EQ(capture().register_space(&schema, &here), SONDE_OK) << last_error();
    const TestCapture file(folder.file("a.sonde"));
    // The replay itself registers the other name, so listen to every number.
    std::vector<uint32_t> all;
    for (uint32_t space = 1; space < SONDE_SPACE_COUNT; ++space) all.push_back(space);
    const Collector replayed = file.replay(all);
    uint32_t renamed = 0;
    EXPECT_EQ(capture().find_space("com.example.beats.conflict1", &renamed), SONDE_OK) << last_error();
    EXPECT_EQ(replayed.of_space(here).size(), 0u);
    EXPECT_EQ(replayed.of_space(renamed).size(), 10u * 40);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Recording, ASessionWithoutEventsMakesNoFile) {
  const Folder folder;
  Collector live;
  run_recorded(folder.file("a.sonde"), live, [](sonde_session_t *session) {
    SONDE_EXPECT_OK(capture().note(session, 0, "test", "nothing of weight"));
    SONDE_EXPECT_OK(sessions().flush(session, kPatienceNs));
  });
  EXPECT_FALSE(std::filesystem::exists(folder.file("a.sonde")));
}

TEST(Recording, ANoteThatSaysWhyThereIsNoDataMakesAFile) {
  const Folder folder;
  Collector live;
  run_recorded(folder.file("a.sonde"), live, [](sonde_session_t *session) {
    SONDE_EXPECT_OK(capture().note(session, 3, "test", "no data because there is no device"));
    SONDE_EXPECT_OK(sessions().flush(session, kPatienceNs));
  });
  EXPECT_TRUE(std::filesystem::exists(folder.file("a.sonde")));
}

TEST(Recording, AChunkIsSealedAfterItsTimeWithoutFurtherEvents) {
  const Folder folder;
  TestSession session;
  sonde_recording_t *recording = nullptr;
  sonde_writer_options_t options{};
  options.struct_size = sizeof options;
  options.seal_ns = 50'000'000;
  SONDE_ASSERT_OK(store_service().record(session, folder.file("a.sonde").c_str(), nullptr, &options, &recording));
  SONDE_ASSERT_OK(sessions().start(session));
  const auto record = filled<sonde_host_call_t>(SONDE_SPACE_HOST, SONDE_HOST_CALL, 3);
  emit(session, &record);
  SONDE_ASSERT_OK(sessions().flush(session, kPatienceNs));
  bool sealed = false;
  for (int tries = 0; tries < 2000 && !sealed; ++tries) {
    std::this_thread::sleep_for(milliseconds(10));
    const TestCapture file(folder.file("a.sonde"));
    sealed = file.status() == SONDE_OK && file.info().records != 0;
  }
  EXPECT_TRUE(sealed);
  const TestCapture file(folder.file("a.sonde"));
  EXPECT_EQ(file.info().complete, 0u);
  SONDE_ASSERT_OK(sessions().stop(session, kPatienceNs));
  SONDE_ASSERT_OK(store_service().finish(recording));
}

TEST(Recording, WrongUseIsAnError) {
  const Folder folder;
  const std::string path = folder.file("a.sonde");
  sonde_recording_t *recording = nullptr;
  TestSession session;
  write_file(path, {1});
  EXPECT_EQ(store_service().record(session, path.c_str(), nullptr, nullptr, &recording), SONDE_E_EXISTS);
  EXPECT_EQ(store_service().record(session, folder.file("no/a.sonde").c_str(), nullptr, nullptr, &recording),
            SONDE_E_IO);
  EXPECT_EQ(store_service().record(session, folder.file("b.sonde").c_str(), "no.such.space", nullptr, &recording),
            SONDE_E_NOT_FOUND);
  sonde_writer_options_t options{};
  options.struct_size = sizeof options;
  options.when_full = 7;
  EXPECT_EQ(store_service().record(session, folder.file("b.sonde").c_str(), nullptr, &options, &recording),
            SONDE_E_INVALID);
  EXPECT_EQ(recording, nullptr);
  EXPECT_EQ(store_service().finish(nullptr), SONDE_E_INVALID);
  SONDE_ASSERT_OK(store_service().record(session, folder.file("b.sonde").c_str(), nullptr, nullptr, &recording));
  SONDE_ASSERT_OK(sessions().start(session));
  EXPECT_EQ(store_service().finish(recording), SONDE_E_STATE) << "the session runs";
  sonde_recording_t *late = nullptr;
  EXPECT_EQ(store_service().record(session, folder.file("c.sonde").c_str(), nullptr, nullptr, &late), SONDE_E_STATE);
  SONDE_ASSERT_OK(sessions().stop(session, kPatienceNs));
  SONDE_ASSERT_OK(store_service().finish(recording));
  EXPECT_EQ(store_service().finish(recording), SONDE_E_INVALID) << "finished already";
  EXPECT_EQ(TestCapture(folder.file("none.sonde")).status(), SONDE_E_NOT_FOUND);
  EXPECT_EQ(TestCapture(path).status(), SONDE_E_CORRUPT);
  EXPECT_EQ(TestCapture(folder.path()).status(), SONDE_E_CORRUPT) << "the only file in it is none";
  EXPECT_EQ(store_service().close(nullptr), SONDE_E_INVALID);
}

TEST(Recording, FinishAfterTheSessionIsClosedStillWritesTheLedger) {
  const Folder folder;
  sonde_recording_t *recording = nullptr;
  TestSession session;
  SONDE_ASSERT_OK(store_service().record(session, folder.file("a.sonde").c_str(), nullptr, nullptr, &recording));
  SONDE_ASSERT_OK(sessions().start(session));
  const auto record = filled<sonde_host_call_t>(SONDE_SPACE_HOST, SONDE_HOST_CALL, 3);
  emit(session, &record);
  SONDE_ASSERT_OK(capture().lose(session, 0, SONDE_LOSS_VENDOR, 9, 0));
  session.close();
  SONDE_ASSERT_OK(store_service().finish(recording));
  const TestCapture file(folder.file("a.sonde"));
  EXPECT_EQ(file.info().complete, 1u);
  ASSERT_EQ(file.losses(SONDE_LOSS_VENDOR).size(), 1u);
  EXPECT_EQ(file.losses(SONDE_LOSS_VENDOR)[0].records, 9u);
}

TEST(Recording, FinishRemovesTheLiveFile) {
  const Folder folder;
  const std::string path = folder.file("a.sonde");
  TestSession session(0, path + ".live");
  sonde_recording_t *recording = nullptr;
  SONDE_ASSERT_OK(store_service().record(session, path.c_str(), nullptr, nullptr, &recording));
  SONDE_ASSERT_OK(sessions().start(session));
  EXPECT_TRUE(std::filesystem::exists(path + ".live"));
  SONDE_ASSERT_OK(sessions().stop(session, kPatienceNs));
  SONDE_ASSERT_OK(store_service().finish(recording));
  EXPECT_FALSE(std::filesystem::exists(path + ".live"));
}

}  // namespace
}  // namespace sonde::store::testing
