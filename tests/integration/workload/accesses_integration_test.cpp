// Accesses through the module: demand, a recorded run with counts known beforehand, a capture made here, options.
#include <gtest/gtest.h>
#include <sonde/spaces/access_packed.h>
#include <unistd.h>
#include <nlohmann/json.hpp>
#include <sonde/sonde.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "module.h"

namespace sonde {
namespace {

namespace files = std::filesystem;

class WorkloadAccesses : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto *const test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = files::temp_directory_path() / ("sonde-workload-" + std::to_string(getpid()) + "-" + test->name());
    files::remove_all(folder_);
    files::create_directories(folder_);
  }
  void TearDown() override { files::remove_all(folder_); }

  static uint32_t level(const Session &session, uint32_t type) {
    uint32_t out = 0;
    host().check(host().service<sonde_capture_service_t>().level(session.get(), SONDE_SPACE_ACCESS, type, &out));
    return out;
  }

  // Replays into `session`, which the analysis listens to.
  static void replay(const files::path &path, Session &session, Analysis &analysis) {
    const auto &store = host().service<sonde_store_service_t>();
    sonde_capture_t *capture = nullptr;
    host().check(store.open(path.c_str(), &capture));
    session.start();
    host().check(store.replay(capture, session.get(), nullptr, nullptr));
    session.stop();
    analysis.finish();
    store.close(capture);
  }

  files::path folder_;
};

TEST_F(WorkloadAccesses, APlainRunAsksForNothingThatPatchesDeviceCode) {
  Session session = Session::open(host());
  Analysis analysis(session);
  session.start();
  for (const uint32_t type : {SONDE_ACCESS_OBJECT, SONDE_ACCESS_PAGES, SONDE_ACCESS_INTERVALS, SONDE_ACCESS_INSTRUCTION,
                              SONDE_ACCESS_WARPS, SONDE_ACCESS_INVALID, SONDE_ACCESS_EVENTS}) {
    EXPECT_EQ(level(session, type), SONDE_LEVEL_NONE) << type;
  }
  session.stop();
}

TEST_F(WorkloadAccesses, TheOptionAsksForLevels) {
  Session session = Session::open(host());
  Analysis analysis(session, "{accesses: 'pages, records'}");
  session.start();
  EXPECT_EQ(level(session, SONDE_ACCESS_OBJECT), SONDE_LEVEL_OBJECT_SUMMARY);
  EXPECT_EQ(level(session, SONDE_ACCESS_PAGES), SONDE_LEVEL_PAGE_SUMMARY);
  EXPECT_EQ(level(session, SONDE_ACCESS_INTERVALS), SONDE_LEVEL_NONE);
  EXPECT_EQ(level(session, SONDE_ACCESS_WARPS), SONDE_LEVEL_RECORDS);
  session.stop();
}

// Recorded on an H200; what each kernel must have done was computed from its indexing (tests/data/access/README.md).
TEST_F(WorkloadAccesses, AgreesWithTheIndexingOfRecordedKernels) {
  const files::path data = files::path(SONDE_TEST_SOURCE_DIR) / "tests" / "data" / "access";
  Session session = Session::open(host());
  Analysis analysis(session);
  replay(data / "kernels", session, analysis);
  std::map<std::string, Row> traffic, sets;
  for (const Row &row : rows(session, "traffic")) traffic[row.at("kernel").as.text] = row;
  for (const Row &row : rows(session, "working_sets")) sets[row.at("kernel").as.text] = row;
  std::ifstream file(data / "kernels.expected.json");
  const nlohmann::json expected = nlohmann::json::parse(file);
  uint64_t compared = 0;
  for (const auto &kernel : expected["kernels"]) {
    const std::string name = kernel["kernel"];
    if (kernel["launches"] != 1 || kernel["incomplete"]) continue;
    uint64_t accesses = 0, read = 0, written = 0, copied = 0;
    for (const auto &object : kernel["objects"]) {
      accesses +=
          object["reads"].get<uint64_t>() + object["writes"].get<uint64_t>() + object["atomics"].get<uint64_t>();
      read += object["read_bytes"].get<uint64_t>();
      written += object["write_bytes"].get<uint64_t>();
      copied += object["copy_bytes"].get<uint64_t>();
    }
    ASSERT_TRUE(traffic.contains(name)) << name;
    EXPECT_EQ(traffic[name].at("read").as.u64, read) << name;
    EXPECT_EQ(traffic[name].at("written").as.u64, written) << name;
    EXPECT_EQ(traffic[name].at("copied").as.u64, copied) << name;
    if (copied == 0) {
      EXPECT_EQ(traffic[name].at("accesses").as.u64, accesses) << name;
    }
    EXPECT_EQ(sets[name].at("objects").as.f64, static_cast<double>(kernel["objects"].size())) << name;
    ++compared;
  }
  EXPECT_GE(compared, 13u);
}

// A record with variable data behind its fixed part.
template <typename T>
std::vector<uint64_t> with_data(uint32_t space, uint32_t type, T fixed, sonde_span_t T::*span,
                                const std::vector<uint64_t> &words, uint32_t count) {
  std::vector<uint64_t> out(sizeof(T) / 8 + words.size());
  SONDE_RECORD_INIT(&fixed, space, type, sonde_stamp());
  fixed.header.size8 = static_cast<uint16_t>(out.size());
  fixed.*span = {sizeof(T), count};
  std::memcpy(out.data(), &fixed, sizeof(T));
  std::copy(words.begin(), words.end(), out.begin() + sizeof(T) / 8);
  return out;
}

// Two launches over two allocations, with everything that the port can say about them.
void emit_accesses(const Session &session) {
  Writer writer = session.writer();
  const sonde_string_t names[] = {session.intern("produce"), session.intern("consume")};
  for (const uint64_t address : {uint64_t{0x100000}, uint64_t{0x200000}}) {
    sonde_memory_allocate_t allocate{};
    allocate.address = address;
    allocate.bytes = 8192;
    allocate.kind = SONDE_MEMORY_DEVICE;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, allocate));
  }
  for (uint64_t number = 1; number <= 2; ++number) {
    sonde_warp_access_t access{};
    access.size8 = sizeof(access) / 8;
    access.form = SONDE_WARP_AFFINE;
    access.mask = UINT32_MAX;
    access.base = 0x100000;
    access.stride = 4;
    access.pc = 0x40;
    access.size = 4;
    access.access = number == 1 ? 2 : 1;
    std::vector<uint64_t> packed(sizeof(access) / 8);
    std::memcpy(packed.data(), &access, sizeof(access));
    sonde_access_warps_t warps{};
    warps.launch = number;
    warps.count = 1;
    const auto warp_record =
        with_data(SONDE_SPACE_ACCESS, SONDE_ACCESS_WARPS, warps, &sonde_access_warps_t::data, packed, sizeof(access));
    ASSERT_TRUE(writer.emit(reinterpret_cast<const sonde_record_t *>(warp_record.data())));

    sonde_access_launch_t launch{};
    launch.launch = number;
    launch.name = names[number - 1];
    launch.flags = SONDE_LAUNCH_WATCHED;
    launch.kernel_period = launch.block_period = 1;
    launch.accesses = 32;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_ACCESS, SONDE_ACCESS_LAUNCH, launch));

    sonde_access_object_t object{};
    object.launch = number;
    object.address = 0x100000;
    object.bytes = 8192;
    object.object_kind = SONDE_OBJECT_IS_ALLOCATION;
    (number == 1 ? object.writes : object.reads) = 32;
    (number == 1 ? object.write_bytes : object.read_bytes) = 128;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_ACCESS, SONDE_ACCESS_OBJECT, object));

    sonde_access_intervals_t intervals{};
    intervals.launch = number;
    intervals.address = 0x100000;
    intervals.bytes = 8192;
    intervals.touched = 128;
    intervals.kind = number == 1 ? 2 : 1;
    intervals.granule = 1;
    const auto interval_record =
        with_data(SONDE_SPACE_ACCESS, SONDE_ACCESS_INTERVALS, intervals, &sonde_access_intervals_t::edges, {0, 128}, 2);
    ASSERT_TRUE(writer.emit(reinterpret_cast<const sonde_record_t *>(interval_record.data())));

    sonde_access_instruction_t instruction{};
    instruction.launch = number;
    instruction.pc = 0x40;
    instruction.threads = 32;
    instruction.warps = 1;
    instruction.bytes = 128;
    instruction.sectors = number == 1 ? 32 : 4;
    instruction.least_sectors = 4;
    instruction.memory = 1;
    instruction.access = number == 1 ? 2 : 1;
    instruction.size = 4;
    ASSERT_TRUE(writer.emit(SONDE_SPACE_ACCESS, SONDE_ACCESS_INSTRUCTION, instruction));
  }
}

TEST_F(WorkloadAccesses, ACaptureMadeHereComesOutAsItWentIn) {
  {
    const auto &store = host().service<sonde_store_service_t>();
    Session session = Session::open(host());
    sonde_recording_t *recording = nullptr;
    host().check(store.record(session.get(), (folder_ / "run.sonde").c_str(), nullptr, nullptr, &recording));
    session.start();
    emit_accesses(session);
    session.stop();
    host().check(store.finish(recording));
  }
  Session session = Session::open(host());
  Analysis analysis(session, ("{heat_map_picture: '" + (folder_ / "heat.svg").string() + "'}").c_str());
  replay(folder_ / "run.sonde", session, analysis);

  for (const Row &row : rows(session, "working_sets")) {
    EXPECT_EQ(row.at("max").as.i64, 8192) << row.at("kernel").as.text;
    EXPECT_EQ(row.at("touched_max").as.i64, 128);
  }
  const auto footprints = rows(session, "footprints");
  ASSERT_EQ(footprints.size(), 2u);
  EXPECT_EQ(footprints[0].at("footprint").as.u64, 16384u);
  EXPECT_EQ(footprints[0].at("ratio").as.f64, 2);
  EXPECT_STREQ(footprints[1].at("level").as.text, "touched");
  EXPECT_EQ(footprints[1].at("max").as.i64, 128);
  const auto reuse = rows(session, "kernel_reuse");
  ASSERT_EQ(reuse.size(), 1u);
  EXPECT_STREQ(reuse[0].at("producer").as.text, "produce");
  EXPECT_STREQ(reuse[0].at("consumer").as.text, "consume");
  EXPECT_EQ(reuse[0].at("bytes").as.u64, 128u);
  EXPECT_EQ(rows(session, "coalescing").at(0).at("ratio").as.f64, 8);
  EXPECT_EQ(rows(session, "block_divergence").size(), 2u);
  EXPECT_EQ(rows(session, "word_heat").size(), 8u);  // 4 sectors of each launch
  EXPECT_EQ(verdict(session, "workload.uncoalesced"), SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(verdict(session, "workload.working_set"), SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(verdict(session, "workload.accesses_complete"), SONDE_VERDICT_OK);
  EXPECT_EQ(verdict(session, "workload.bank_conflicts"), SONDE_VERDICT_UNSUPPORTED);
  EXPECT_GT(files::file_size(folder_ / "heat.svg"), 500u);

  uint64_t bytes = 0;
  using Query = sonde_status(sonde_session_t *, uint32_t, uint64_t *);
  ASSERT_EQ(function<Query>("working_set_bytes")(session.get(), 0, &bytes), SONDE_OK);
  EXPECT_EQ(bytes, 8192u);
  ASSERT_EQ(function<Query>("footprint_bytes")(session.get(), 0, &bytes), SONDE_OK);
  EXPECT_EQ(bytes, 16384u);
  struct Seen {
    std::vector<std::string> names;
    std::vector<uint64_t> last;
  } seen;
  const auto callback = [](void *user, const sonde_value_t *arguments, uint64_t count, sonde_value_t *) {
    auto *const self = static_cast<Seen *>(user);
    if (count != 4) return SONDE_E_INVALID;
    self->names.emplace_back(arguments[0].as.text);
    self->last.push_back(arguments[3].as.u64);
    return SONDE_OK;
  };
  using Top = sonde_status(sonde_session_t *, uint64_t, sonde_callback_t, void *, sonde_drop_user_t);
  ASSERT_EQ(function<Top>("kernel_traffic")(session.get(), 10, callback, &seen, nullptr), SONDE_OK);
  EXPECT_EQ(seen.names, (std::vector<std::string>{"consume", "produce"}));
  EXPECT_EQ(seen.last, (std::vector<uint64_t>{128, 128}));
  seen = {};
  ASSERT_EQ(function<Top>("hot_objects")(session.get(), 10, callback, &seen, nullptr), SONDE_OK);
  EXPECT_EQ(seen.last, (std::vector<uint64_t>{64}));
}

TEST_F(WorkloadAccesses, OptionsThatCannotBeAreRefusedByName) {
  Session session = Session::open(host());
  const auto refusal = [&](const std::string &yaml) -> std::string {
    try {
      Analysis analysis(session, yaml.c_str());
    } catch (const Failure &failure) {
      return failure.what();
    }
    return "";
  };
  EXPECT_NE(refusal("{accesses: everything}").find("'everything'"), std::string::npos);
  EXPECT_NE(refusal("{word_heat_blocks: '0,x'}").find("'x'"), std::string::npos);
  EXPECT_NE(refusal("{ceilings: {drum: 1e12}}").find("'drum'"), std::string::npos);
  EXPECT_NE(refusal("{ceilings: {dram: 0}}").find("above 0"), std::string::npos);
  EXPECT_NE(refusal("{flops: [{kernel: gemm}]}").find("flops.0"), std::string::npos);
  EXPECT_NE(refusal("{flops: [{kernel: gemm, operations: 1, work: int4}]}").find("'int4'"), std::string::npos);
  EXPECT_NE(refusal("{ceilings_file: /no/such/file.yaml}").find("/no/such/file.yaml"), std::string::npos);
  EXPECT_EQ(refusal("{flops: [{kernel: gemm, operations: 1e9}]}"), "");
}

TEST_F(WorkloadAccesses, CeilingsComeFromAFileToo) {
  std::ofstream(folder_ / "ceilings.yaml")
      << "# measured\ndevice: \"a device\"\nceilings:\n  dram: 4.0e12\n  fp32: 5.0e13\n";
  const std::string yaml = "{ceilings: {fp32: 1.0e13}, ceilings_file: '" + (folder_ / "ceilings.yaml").string() +
                           "', flops: [{kernel: work, operations: 1e6}]}";
  Session session = Session::open(host());
  Analysis analysis(session, yaml.c_str());
  session.start();
  Writer writer = session.writer();
  sonde_device_kernel_t kernel{};
  kernel.name = session.intern("work");
  const uint64_t now = sonde_stamp();
  kernel.end = now + 1000;
  ASSERT_TRUE(writer.emit(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, kernel, now));
  session.stop();
  analysis.finish();
  std::map<std::string, double> ceilings;
  for (const Row &row : rows(session, "ceilings")) ceilings[row.at("ceiling").as.text] = row.at("per_second").as.f64;
  EXPECT_EQ(ceilings, (std::map<std::string, double>{{"dram", 4e12}, {"fp32", 1e13}})) << "options come first";
  EXPECT_EQ(rows(session, "roofline").at(0).at("operations").as.f64, 1e6);
}

}  // namespace
}  // namespace sonde
