// From records to tables, findings, pictures and traces.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "picture.h"
#include "records.h"

namespace sonde::memory {
namespace {

using toolkit::ObjectLevel;

constexpr uint64_t kA = 0x10000, kB = 0x20000, kC = 0x30000;

class Results : public MemoryTest {
 protected:
  // Times in ns. a (4,000 bytes): made at 0, used by k0 at 100 and k2 at 300, freed at 400. b (1,000): made at 10, first used
  // at 300, read by the host at 310, freed at 400. c (500): never used, from 20 on, not freed. k1 at 200 touches nothing.
  static void tell(Records &records) {
    records.process(77).allocate(kA, 4000, 0, "a").allocate(kB, 1000, 10, "b").allocate(kC, 500, 20, "c");
    records.copy(0, kA, 4000, 50);
    records.launch(1, "k0", 100).touch(1, kA, 4000, 8).interval(1, kA, 4000, 1, 0, 4000);
    records.launch(2, "k1", 200);
    records.launch(3, "k2", 300).touch(3, kA, 4000, 8).interval(3, kA, 4000, 1, 0, 4000);
    records.touch(3, kB, 1000, 0, 4).interval(3, kB, 1000, 2, 0, 1000);
    records.copy(kB, 0, 1000, 310).free(kA, 400).free(kB, 400);
  }
};

TEST_F(Results, TablesHoldWhatTheDefinitionsGive) {
  Records records;
  tell(records);
  run(records);
  EXPECT_EQ(cell("peak", "level", "allocation", "peak"), "5500");
  EXPECT_EQ(cell("peak", "level", "allocation", "time"), "20");
  EXPECT_EQ(cell("peak", "level", "allocation", "needed"), "5000") << "k2 needs a and b";
  EXPECT_EQ(cell("peak", "level", "allocation", "shared_offsets"), "5000");
  EXPECT_EQ(cell("peak", "level", "allocation", "touched"), "5000");
  EXPECT_EQ(cell("peak", "level", "allocation", "touched_by"), "k2");
  EXPECT_EQ(cell("peak", "level", "allocation", "alive_at_end"), "1");
  EXPECT_EQ(cell("objects", "object", "a", "idle_gap"), "1") << "k1";
  EXPECT_EQ(cell("objects", "object", "b", "early_gap"), "2") << "k0 and k1";
  EXPECT_EQ(cell("objects", "object", "b", "late_gap"), "0");
  EXPECT_EQ(cell("objects", "object", "c", "patterns"), "unused_allocation, leak");
  EXPECT_EQ(cell("objects", "object", "c", "process"), "77");
  EXPECT_EQ(cell("objects", "object", "a", "access_rate"), "1.000000");
  // b: 1,000 bytes from 10 to 300 ns. c: 500 from 20 to 400 ns. Cells are rounded to a millionth of a byte second.
  EXPECT_NEAR(memory->pattern_byte_seconds(ObjectLevel::kAllocation, Pattern::kEarlyAllocation), 1000 * 290e-9, 1e-12);
  EXPECT_NEAR(memory->pattern_byte_seconds(ObjectLevel::kAllocation, Pattern::kUnusedAllocation), 500 * 380e-9, 1e-12);
  EXPECT_EQ(cell("patterns", "pattern", "early_allocation", "at_peak"), "1000");
  EXPECT_EQ(cell("patterns", "pattern", "unused_allocation", "at_peak"), "500");
  EXPECT_EQ(cell("live_at_peak", "object", "b", "saved"), "1000");
  EXPECT_EQ(cell("live_at_peak", "object", "b", "by"), "early_allocation");
  EXPECT_EQ(table("live_at_peak").rows.size(), 3u);
  EXPECT_EQ(table("unmatched_frees").rows.size(), 0u);
}

TEST_F(Results, FindingsCarryWhatSupportsThem) {
  Records records;
  tell(records);
  run(records);
  const testing::FakeFinding found = finding("early_allocation");
  EXPECT_EQ(found.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(found.severity, SONDE_SEVERITY_WARNING);
  EXPECT_EQ(found.message, "Allocation b (1000 B) was allocated 2 kernels before its first use.");
  EXPECT_EQ(found.advice, "Allocate it, and fill it where the host does, just before kernel 2 (k2).");
  EXPECT_EQ(found.formula, "kernels launched strictly between begin and first use >= early_kernels (1 kernel)");
  EXPECT_EQ(found.evidence.at("kernels_between").str(), "2");
  EXPECT_EQ(found.evidence.at("saved_at_peak").str(), "1000");
  EXPECT_EQ(found.evidence.at("objects_like_this").str(), "1");
  EXPECT_DOUBLE_EQ(found.evidence.at("saved").f64, 1000 * 290e-9);
  EXPECT_EQ(found.units.at("saved"), "bytes*s");
  EXPECT_EQ(finding("temporary_idleness").evidence.at("idle_to_kernel").str(), "2");
  EXPECT_EQ(finding("late_deallocation").verdict, SONDE_VERDICT_OK);
  EXPECT_EQ(finding("redundant_allocation").verdict, SONDE_VERDICT_OK);
  EXPECT_EQ(finding("over_allocation").verdict, SONDE_VERDICT_OK);
  EXPECT_EQ(finding("non_uniform_access").verdict, SONDE_VERDICT_UNSUPPORTED) << "no histograms";
  EXPECT_EQ(finding("complete").verdict, SONDE_VERDICT_OK);
  // 500 of 5,500 bytes are 9.1 %, less than a tenth.
  EXPECT_EQ(finding("peak").verdict, SONDE_VERDICT_OK);
}

TEST_F(Results, APeakThatCanBeATenthLowerIsReported) {
  for (const bool is_reached : {true, false}) {
    testing::FakeHost::get().reset();
    Records records;
    records.allocate(kA, 900, 0).allocate(kB, is_reached ? 100 : 99, 0).launch(1, "k", 10).touch(1, kA, 900, 1);
    records.free(kA, 20).free(kB, 20);
    run(records);
    EXPECT_EQ(finding("peak").verdict, is_reached ? SONDE_VERDICT_VIOLATION : SONDE_VERDICT_OK);
  }
}

TEST_F(Results, RowsBeyondTheLimitAreSummedUp) {
  options.object_rows = 1;
  Records records;
  tell(records);
  run(records);
  ASSERT_EQ(table("objects").rows.size(), 2u);
  // b wastes 290,000 byte ns, a 800,000 (idle for 200 ns), c 190,000.
  EXPECT_EQ(table("objects").at(0, "object").str(), "a");
  EXPECT_EQ(table("objects").at(1, "object").str(), "2 others");
  EXPECT_EQ(table("objects").at(1, "bytes").str(), "1500");
  EXPECT_EQ(table("live_at_peak").rows.size(), 2u);
  EXPECT_EQ(table("live_at_peak").at(1, "bytes").str(), "1500");
}

TEST_F(Results, WithoutAccessesRulesOfUsesCouldNotLook) {
  Records records;
  records.allocate(kA, 4000, 0).allocate(kB, 1000, 10).free(kB, 20);
  run(records);
  for (const char *const rule :
       {"early_allocation", "late_deallocation", "redundant_allocation", "unused_allocation", "temporary_idleness",
        "dead_write", "over_allocation", "non_uniform_access", "structured_access", "peak"}) {
    EXPECT_EQ(finding(rule).verdict, SONDE_VERDICT_UNSUPPORTED) << rule;
    EXPECT_NE(finding(rule).reason.find("no record of what kernels accessed"), std::string::npos) << rule;
  }
  EXPECT_EQ(finding("leak").verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(cell("peak", "level", "allocation", "peak"), "5000");
  EXPECT_EQ(cell("peak", "level", "allocation", "needed"), "") << "not known is not 0";
}

TEST_F(Results, UnwatchedLaunchesSayWhy) {
  Records records;
  records.allocate(kA, 4000, 0).launch(1, "k", 10, SONDE_LAUNCH_SKIPPED).free(kA, 20);
  run(records);
  EXPECT_EQ(finding("unused_allocation").verdict, SONDE_VERDICT_UNSUPPORTED);
  EXPECT_NE(finding("unused_allocation").reason.find("none of the 1 kernel launch"), std::string::npos);
}

TEST_F(Results, CountsAloneDoNotSayWhichBytes) {
  Records records;
  records.allocate(kA, 4000, 0).launch(1, "k", 10).touch(1, kA, 4000, 1).free(kA, 20);
  run(records);
  EXPECT_EQ(finding("over_allocation").verdict, SONDE_VERDICT_UNSUPPORTED);
  EXPECT_NE(finding("over_allocation").reason.find("intervals"), std::string::npos);
  EXPECT_NE(finding("non_uniform_access").reason.find("pages"), std::string::npos);
  EXPECT_EQ(finding("early_allocation").verdict, SONDE_VERDICT_OK);
  EXPECT_EQ(finding("peak").verdict, SONDE_VERDICT_OK);
}

TEST_F(Results, AnEmptyCaptureSaysSo) {
  Records records;
  records.process(1);
  run(records);
  EXPECT_EQ(finding("leak").verdict, SONDE_VERDICT_UNSUPPORTED);
  EXPECT_EQ(finding("unmatched_free").verdict, SONDE_VERDICT_UNSUPPORTED);
  EXPECT_EQ(finding("complete").verdict, SONDE_VERDICT_OK);
}

TEST_F(Results, AFreeBeforeItsAllocationIsDataAndTheAllocationLeaks) {
  Records records;
  records.free(kA, 5, 0, 3).allocate(kA, 100, 10);
  run(records);
  ASSERT_EQ(table("unmatched_frees").rows.size(), 1u);
  EXPECT_EQ(table("unmatched_frees").at(0, "address").str(), std::to_string(kA));
  EXPECT_EQ(table("unmatched_frees").at(0, "stream").str(), "3");
  EXPECT_EQ(finding("unmatched_free").verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(finding("leak").verdict, SONDE_VERDICT_VIOLATION);
}

TEST_F(Results, TensorsAreNamedByTheOperatorThatMadeThem) {
  Records records;
  records.allocate(kA, 4096, 0).scope(9, "aten::conv2d", 5).tensor(kA + 1024, 1024, 10, 9).tensor_free(kA + 1024, 20);
  run(records);
  EXPECT_EQ(cell("objects", "level", "tensor", "scope"), "aten::conv2d");
  EXPECT_EQ(cell("segments", "bytes", "4096", "used_peak"), "1024");
  EXPECT_EQ(finding("leak").verdict, SONDE_VERDICT_OK) << "the segment is the allocator's";
  EXPECT_EQ(finding("reserved_unused").verdict, SONDE_VERDICT_VIOLATION) << "three quarters";
}

TEST_F(Results, AFreeOnAnotherStreamIsReportedWithWhatIsKnown) {
  Records open, unknown;
  for (Records *const records : {&open, &unknown}) {
    records->allocate(kA, 4096, 0, "shared", 1, 8).launch(1, "k", 100, SONDE_LAUNCH_WATCHED, 8).touch(1, kA, 4096, 1);
    records->free(kA, 200, 1, 9);
  }
  open.sync(SONDE_SYNC_STREAM, 8, 300, 310);
  run(open);
  EXPECT_EQ(finding("stream_ordered_free").verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(cell("stream_order", "free_stream", "9", "ordering"), "not_shown");
  EXPECT_EQ(cell("stream_order", "free_stream", "9", "apart"), "100");
  testing::FakeHost::get().reset();
  Records again;
  again.allocate(kA, 4096, 0, "shared", 1, 8).launch(1, "k", 100, SONDE_LAUNCH_WATCHED, 8).touch(1, kA, 4096, 1);
  again.free(kA, 200, 1, 9);
  run(again);
  EXPECT_EQ(finding("stream_ordered_free").verdict, SONDE_VERDICT_UNSUPPORTED);
  EXPECT_NE(finding("stream_ordered_free").reason.find("no synchronisation"), std::string::npos);
}

TEST_F(Results, AnotherOrderOfArrivalGivesTheSameResult) {
  Records whole, memory_records, access_records;
  tell(whole);
  run(whole);
  const std::string wanted = draw_objects(*memory);
  testing::FakeHost::get().reset();
  access_records.copy(0, kA, 4000, 50);
  access_records.launch(1, "k0", 100).touch(1, kA, 4000, 8).interval(1, kA, 4000, 1, 0, 4000).launch(2, "k1", 200);
  access_records.launch(3, "k2", 300).touch(3, kA, 4000, 8).interval(3, kA, 4000, 1, 0, 4000);
  access_records.touch(3, kB, 1000, 0, 4).interval(3, kB, 1000, 2, 0, 1000).copy(kB, 0, 1000, 310);
  memory_records.process(77).allocate(kA, 4000, 0, "a").allocate(kB, 1000, 10, "b").allocate(kC, 500, 20, "c");
  memory_records.free(kA, 400).free(kB, 400);
  run({&access_records, &memory_records});
  EXPECT_EQ(draw_objects(*memory), wanted);
}

// Opening and closing elements match, and nothing is open at the end.
void expect_well_formed(const std::string &text) {
  std::vector<std::string> open;
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    const size_t end = text.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.starts_with("!") || tag.ends_with("/") || tag.starts_with("meta")) continue;
    if (tag.starts_with("/")) {
      ASSERT_FALSE(open.empty()) << tag;
      ASSERT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  EXPECT_TRUE(open.empty());
}

size_t count(const std::string &text, const std::string &part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST_F(Results, ThePictureDrawsEachObjectAndItsFindings) {
  Records records;
  tell(records);
  records.allocate(0x90000, 8, 30, "<&\">");
  run(records);
  const std::string svg = draw_objects(*memory);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "<g class=\"bar\">"), 4u);
  EXPECT_NE(svg.find("&lt;&amp;&quot;&gt;"), std::string::npos) << "names are escaped";
  EXPECT_EQ(svg.find("<&\">"), std::string::npos);
  // Each colour once in the legend. Early: b. Idle: a. Unused: c and the one with the odd name.
  EXPECT_EQ(count(svg, "#3b78c2"), 2u);
  EXPECT_EQ(count(svg, "#e6a532"), 2u);
  EXPECT_EQ(count(svg, "#8c62b8"), 3u);
  EXPECT_NE(svg.find("early_allocation: Allocate it, and fill it where the host does, just before kernel 2 (k2)."),
            std::string::npos);
  const std::string page = draw_page(*memory);
  expect_well_formed(page);
  EXPECT_EQ(count(page, "<script"), 0u);
  EXPECT_NE(page.find("temporary_idleness"), std::string::npos);
}

TEST_F(Results, ThePictureMayRunAlongOperations) {
  options.time_axis = false;
  Records records;
  tell(records);
  run(records);
  const std::string svg = draw_objects(*memory);
  expect_well_formed(svg);
  EXPECT_NE(svg.find("over operations"), std::string::npos);
  EXPECT_NE(svg.find(">5<"), std::string::npos) << "five operations: two copies and three kernels";
}

TEST_F(Results, AnEmptyPictureSaysSo) {
  Records records;
  records.process(1);
  run(records);
  expect_well_formed(draw_objects(*memory));
  EXPECT_NE(draw_objects(*memory).find("no device memory"), std::string::npos);
}

std::string read(const std::filesystem::path &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_F(Results, TheTraceHasOperationsObjectsAndSuggestions) {
  const auto path = std::filesystem::temp_directory_path() / ("sonde-memory-trace-" + std::to_string(::getpid()));
  options.perfetto = path.string();
  options.time_axis = false;
  Records records;
  tell(records);
  run(records);
  const std::string trace = read(path);
  std::filesystem::remove(path);
  EXPECT_EQ(memory->trace()->error(), "");
  EXPECT_EQ(memory->trace()->operations(), 5u);
  EXPECT_EQ(count(trace, "\"cat\":\"kernel\""), 3u);
  EXPECT_EQ(count(trace, "\"cat\":\"copy\""), 2u);
  EXPECT_EQ(count(trace, "\"name\":\"IDLE\""), 1u);
  EXPECT_EQ(count(trace, "\"name\":\"EARLY\""), 1u);
  EXPECT_EQ(count(trace, "\"name\":\"ALLOC\""), 3u);
  EXPECT_EQ(count(trace, "\"name\":\"FREE\""), 2u);
  EXPECT_NE(trace.find("\"suggestion: early_allocation\""), std::string::npos);
  EXPECT_EQ(count(trace, "{"), count(trace, "}"));
  EXPECT_TRUE(trace.ends_with("]}\n"));
}

TEST_F(Results, OperationsBeyondTheTracesLimitAreCounted) {
  const auto path = std::filesystem::temp_directory_path() / ("sonde-memory-limit-" + std::to_string(::getpid()));
  options.perfetto = path.string();
  options.perfetto_operations = 2;
  Records records;
  tell(records);
  run(records);
  std::filesystem::remove(path);
  EXPECT_EQ(memory->trace()->operations(), 2u);
  EXPECT_EQ(memory->trace()->not_written(), 3u);
}

TEST_F(Results, AFileThatCannotBeWrittenIsAnError) {
  EXPECT_EQ(write_file("/nonexistent/picture.svg", "x"), "/nonexistent/picture.svg cannot be written");
  options.perfetto = "/nonexistent/trace.json";
  Records records;
  tell(records);
  run(records);
  EXPECT_EQ(memory->trace()->error(), "/nonexistent/trace.json cannot be written");
}

TEST_F(Results, DeclaredDefaultsAreTheOnesUsed) {
  auto &host = testing::FakeHost::get();
  for (const sonde_option_t &option : kOptionSpecs) {
    EXPECT_NE(std::string(option.help), "") << option.name;
    host.options[option.name] = option.fallback;
  }
  const Options read = read_options(Config(Host(testing::FakeHost::table()), nullptr));
  EXPECT_EQ(read.early_kernels.value, options.early_kernels.value);
  EXPECT_EQ(read.late_kernels.value, options.late_kernels.value);
  EXPECT_EQ(read.idle_kernels.value, options.idle_kernels.value);
  EXPECT_EQ(read.memory_aware, options.memory_aware);
  EXPECT_EQ(read.host_uses, options.host_uses);
  EXPECT_EQ(read.reuse_tolerance, options.reuse_tolerance);
  EXPECT_EQ(read.object_bytes, options.object_bytes);
  EXPECT_EQ(read.judge_segments, options.judge_segments);
  EXPECT_EQ(read.trust_watched, options.trust_watched);
  EXPECT_EQ(read.access_rate, options.access_rate);
  EXPECT_EQ(read.fragmentation, options.fragmentation);
  EXPECT_EQ(read.over_allocation_bytes, options.over_allocation_bytes);
  EXPECT_EQ(read.frequency_cv, options.frequency_cv);
  EXPECT_EQ(read.frequency_pages, options.frequency_pages);
  EXPECT_EQ(read.frequency_bins, options.frequency_bins);
  EXPECT_EQ(read.structured_slices, options.structured_slices);
  EXPECT_EQ(read.structured_share, options.structured_share);
  EXPECT_EQ(read.interval_limit, options.interval_limit);
  EXPECT_EQ(read.intervals, options.intervals);
  EXPECT_EQ(read.pages, options.pages);
  EXPECT_EQ(read.peak_saving_share, options.peak_saving_share);
  EXPECT_EQ(read.unused_reserved_share, options.unused_reserved_share);
  EXPECT_EQ(read.forced_growth_share, options.forced_growth_share);
  EXPECT_EQ(read.pack_objects, options.pack_objects);
  EXPECT_EQ(read.object_rows, options.object_rows);
  EXPECT_EQ(read.findings_of_rule, options.findings_of_rule);
  EXPECT_EQ(read.timeline_rows, options.timeline_rows);
  EXPECT_EQ(read.reorder_records, options.reorder_records);
  EXPECT_EQ(read.remembered, options.remembered);
  EXPECT_EQ(read.svg, options.svg);
  EXPECT_EQ(read.html, options.html);
  EXPECT_EQ(read.perfetto, options.perfetto);
  EXPECT_EQ(read.time_axis, options.time_axis);
  EXPECT_EQ(read.picture_objects, options.picture_objects);
  EXPECT_EQ(read.perfetto_operations, options.perfetto_operations);
}

}  // namespace
}  // namespace sonde::memory
