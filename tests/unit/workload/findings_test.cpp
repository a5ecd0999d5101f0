// Each rule: broken, just not broken, and where it could not look.
#include "capture.h"

#include <sonde/sonde.hpp>

namespace sonde::workload {
namespace {

class FindingsTest : public WorkloadTest {};

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1000 * kUs;

TEST_F(FindingsTest, AnIdleDeviceIsReportedFromTheThresholdOn) {
  // 1 ms of kernels in a span of 2 ms: idle for exactly one half.
  Capture capture;
  capture.kernel("a", 0, kMs / 2).kernel("a", 3 * kMs / 2, 2 * kMs);
  run(capture);
  const auto idle = finding("idle_device");
  EXPECT_EQ(idle.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(idle.evidence.at("idle").i64, 1'000'000);
  EXPECT_EQ(idle.evidence.at("span").i64, 2'000'000);
  EXPECT_EQ(idle.evidence.at("idle_share").f64, 0.5);
  EXPECT_EQ(idle.units.at("idle"), "ns");
  EXPECT_EQ(idle.message, "Device 0 ran nothing for 50.0 % of the 2.00 ms between its first and last activity.");
  EXPECT_NE(idle.formula.find("0.5"), std::string::npos);
}

TEST_F(FindingsTest, ABusyDeviceIsFoundInOrder) {
  Capture capture;
  capture.kernel("a", 0, kMs + 2).kernel("a", 2 * kMs, 2 * kMs + 2);
  run(capture);
  EXPECT_EQ(finding("idle_device").verdict, SONDE_VERDICT_OK);
}

TEST_F(FindingsTest, AThresholdIsAnOption) {
  options.idle_share = 0.1;
  Capture capture;
  capture.kernel("a", 0, 9 * kMs).kernel("a", 10 * kMs, 10 * kMs);
  run(capture);
  EXPECT_EQ(finding("idle_device").verdict, SONDE_VERDICT_VIOLATION);
}

TEST_F(FindingsTest, AShortSpanIsNotJudged) {
  Capture capture;
  capture.kernel("a", 0, 1).kernel("a", 999'000, 999'999);
  run(capture);
  EXPECT_EQ(finding("idle_device").verdict, SONDE_VERDICT_UNSUPPORTED);
}

// `count` kernels of `length` each, `gap` apart.
void add_phase(Capture &capture, uint64_t &at, int count, uint64_t length, uint64_t gap) {
  for (int i = 0; i < count; ++i) {
    capture.kernel("short", at, at + length);
    at += length + gap;
  }
}

TEST_F(FindingsTest, ShortKernelsWithGapsAreLaunchBound) {
  // 40 kernels of 5 us, 5 us apart: span 40 * 10 - 5 = 395 us, idle 39 * 5 = 195 us. Then 200 us later a long kernel.
  Capture capture;
  uint64_t at = 0;
  add_phase(capture, at, 40, 5 * kUs, 5 * kUs);
  capture.kernel("long", at + 200 * kUs, at + 900 * kUs);
  run(capture);
  const auto bound = finding("launch_bound");
  EXPECT_EQ(bound.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(bound.evidence.at("phases").i64, 1);
  EXPECT_EQ(bound.evidence.at("kernels").i64, 40);
  EXPECT_EQ(bound.evidence.at("idle").i64, 195'000);
  EXPECT_EQ(bound.evidence.at("span").i64, 395'000);
  EXPECT_DOUBLE_EQ(bound.gain_seconds, 195e-6);
}

TEST_F(FindingsTest, FewKernelsShortGapsOrLongKernelsAreNotLaunchBound) {
  Capture few, tight, long_kernels, far;
  uint64_t at = 0;
  add_phase(few, at, 31, 5 * kUs, 5 * kUs);
  run(few);
  EXPECT_EQ(finding("launch_bound").verdict, SONDE_VERDICT_OK);
  testing::FakeHost::get().reset();
  at = 0;
  add_phase(tight, at, 40, 5 * kUs, 1 * kUs);  // idle for a sixth
  run(tight);
  EXPECT_EQ(finding("launch_bound").verdict, SONDE_VERDICT_OK);
  testing::FakeHost::get().reset();
  at = 0;
  add_phase(long_kernels, at, 40, 21 * kUs, 20 * kUs);
  run(long_kernels);
  EXPECT_EQ(finding("launch_bound").verdict, SONDE_VERDICT_OK);
  testing::FakeHost::get().reset();
  at = 0;
  add_phase(far, at, 40, 5 * kUs, 101 * kUs);  // the device waits, but not for launches alone
  run(far);
  EXPECT_EQ(finding("launch_bound").verdict, SONDE_VERDICT_OK);
}

TEST_F(FindingsTest, ACopyBetweenShortKernelsIsNotIdleTime) {
  Capture capture;
  uint64_t at = 0;
  for (int i = 0; i < 40; ++i) {
    capture.kernel("short", at, at + 5 * kUs);
    capture.copy(SONDE_COPY_DEVICE_TO_DEVICE, 8, at + 5 * kUs, at + 10 * kUs, true);
    at += 10 * kUs;
  }
  run(capture);
  EXPECT_EQ(finding("launch_bound").verdict, SONDE_VERDICT_OK);
}

TEST_F(FindingsTest, ABlockingCopyBetweenKernelsIsReported) {
  // [100,200) us lies between the kernels; [50,100) is hidden behind one; [0,..) before the first does not count.
  Capture capture;
  capture.copy(SONDE_COPY_HOST_TO_DEVICE, 1 << 20, 0, 20 * kUs, false, SONDE_MEMORY_PAGEABLE);
  capture.kernel("a", 20 * kUs, 100 * kUs);
  capture.copy(SONDE_COPY_DEVICE_TO_HOST, 1 << 20, 50 * kUs, 200 * kUs, false, SONDE_MEMORY_PAGEABLE, 8);
  capture.kernel("a", 200 * kUs, 300 * kUs);
  capture.copy(SONDE_COPY_DEVICE_TO_HOST, 1 << 20, 300 * kUs, 400 * kUs, false);  // after the last
  run(capture);
  const auto blocking = finding("blocking_copies");
  EXPECT_EQ(blocking.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(blocking.evidence.at("blocked").i64, 100'000);
  EXPECT_EQ(blocking.evidence.at("blocking_copies").i64, 3);
  EXPECT_DOUBLE_EQ(blocking.evidence.at("blocked_share").f64, 0.25);
  EXPECT_DOUBLE_EQ(blocking.gain_seconds, 100e-6);
}

TEST_F(FindingsTest, AnAsynchronousPinnedCopyBetweenKernelsIsNot) {
  Capture capture;
  capture.kernel("a", 0, 10 * kUs).copy(SONDE_COPY_HOST_TO_DEVICE, 1 << 20, 10 * kUs, 90 * kUs, true);
  capture.kernel("a", 90 * kUs, 100 * kUs);
  run(capture);
  EXPECT_EQ(finding("blocking_copies").verdict, SONDE_VERDICT_OK);
}

TEST_F(FindingsTest, AnAsynchronousPageableCopyBlocks) {
  Capture capture;
  capture.kernel("a", 0, 10 * kUs);
  capture.copy(SONDE_COPY_HOST_TO_DEVICE, 1 << 20, 10 * kUs, 90 * kUs, true, SONDE_MEMORY_PAGEABLE);
  capture.kernel("a", 90 * kUs, 100 * kUs);
  run(capture);
  EXPECT_EQ(finding("blocking_copies").verdict, SONDE_VERDICT_VIOLATION);
}

TEST_F(FindingsTest, TinyCopiesAreReportedWhereTheyAreMost) {
  Capture capture;
  for (uint64_t i = 0; i < 150; ++i) capture.copy(SONDE_COPY_DEVICE_TO_HOST, 4, 10 * i, 10 * i + 2, true);
  for (uint64_t i = 0; i < 50; ++i) capture.copy(SONDE_COPY_HOST_TO_DEVICE, 4096, 5000 + 10 * i, 5002 + 10 * i, true);
  for (uint64_t i = 0; i < 500; ++i) capture.copy(SONDE_COPY_DEVICE_TO_DEVICE, 4, 9000 + i, 9001 + i, true);
  run(capture);
  const auto tiny = finding("tiny_copies");
  EXPECT_EQ(tiny.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(tiny.evidence.at("tiny_copies").i64, 150)
      << "4096 bytes are not tiny; copies within the device do not count";
  EXPECT_EQ(tiny.evidence.at("copies").i64, 200);
  EXPECT_EQ(tiny.evidence.at("tiny_copy_time").i64, 300);
}

TEST_F(FindingsTest, AFewTinyCopiesAreInOrder) {
  Capture capture;
  for (uint64_t i = 0; i < 99; ++i) capture.copy(SONDE_COPY_DEVICE_TO_HOST, 4, 10 * i, 10 * i + 2, true);
  run(capture);
  EXPECT_EQ(finding("tiny_copies").verdict, SONDE_VERDICT_OK);
}

TEST_F(FindingsTest, StreamsThatTakeTurnsAreNoted) {
  Capture capture;
  for (uint64_t i = 0; i < 10; ++i) capture.kernel("a", 100 * i, 100 * i + 90, {.stream = i % 2});
  run(capture);
  const auto low = finding("low_concurrency");
  EXPECT_EQ(low.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(low.severity, SONDE_SEVERITY_NOTE);
  EXPECT_EQ(low.evidence.at("streams").i64, 2);
}

TEST_F(FindingsTest, StreamsThatOverlapOrASingleOneAreInOrder) {
  Capture overlapping, single;
  for (uint64_t i = 0; i < 10; ++i) overlapping.kernel("a", 100 * i, 100 * i + 110, {.stream = i % 2});
  run(overlapping);
  EXPECT_EQ(finding("low_concurrency").verdict, SONDE_VERDICT_OK);
  testing::FakeHost::get().reset();
  single.kernel("a", 0, 10);
  run(single);
  EXPECT_EQ(finding("low_concurrency").verdict, SONDE_VERDICT_OK);
}

TEST_F(FindingsTest, LostRecordsMakeTheResultsIncomplete) {
  Capture capture;
  capture.kernel("a", 0, 10);
  capture.builder.raw.lost_ring = 3;
  capture.builder.raw.lost_queue = 2;
  run(capture);
  const auto complete = finding("complete");
  EXPECT_EQ(complete.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(complete.evidence.at("lost_records").i64, 3);
  EXPECT_EQ(complete.evidence.at("lost_batches").i64, 2);
}

TEST_F(FindingsTest, SeveralProcessesAreNamed) {
  Capture first(1), second(2);
  first.process(100).kernel("a", 0, 1).kernel("a", 10 * kMs, 10 * kMs + 1);
  second.process(200).kernel("a", 0, 10 * kMs);
  run({&first, &second});
  const auto idle = finding("idle_device");
  EXPECT_NE(idle.message.find("of process 100"), std::string::npos);
  EXPECT_EQ(idle.evidence.at("process").i64, 100);
}

TEST_F(FindingsTest, DeclaredDefaultsAreTheOnesUsed) {
  auto &host = testing::FakeHost::get();
  for (const sonde_option_t &option : kOptionSpecs) {
    EXPECT_NE(std::string(option.help), "");
    host.options[option.name] = option.fallback;
  }
  const Options read = read_options(Config(Host(testing::FakeHost::table()), nullptr));
  EXPECT_EQ(read.idle_share, options.idle_share);
  EXPECT_EQ(read.idle_span_ns, options.idle_span_ns);
  EXPECT_EQ(read.launch_gap_ns, options.launch_gap_ns);
  EXPECT_EQ(read.launch_bound_kernel_ns, options.launch_bound_kernel_ns);
  EXPECT_EQ(read.launch_bound_kernels, options.launch_bound_kernels);
  EXPECT_EQ(read.launch_bound_idle_share, options.launch_bound_idle_share);
  EXPECT_EQ(read.blocking_copy_share, options.blocking_copy_share);
  EXPECT_EQ(read.tiny_copy_bytes, options.tiny_copy_bytes);
  EXPECT_EQ(read.tiny_copy_share, options.tiny_copy_share);
  EXPECT_EQ(read.tiny_copies, options.tiny_copies);
  EXPECT_EQ(read.concurrency_share, options.concurrency_share);
  EXPECT_EQ(read.concurrency_streams, options.concurrency_streams);
  EXPECT_EQ(read.longest_gaps, options.longest_gaps);
  EXPECT_EQ(read.timeline_rows, options.timeline_rows);
  EXPECT_EQ(read.exact_values, options.exact_values);
  EXPECT_EQ(read.reorder_records, options.reorder_records);
  EXPECT_EQ(read.join_records, options.join_records);
  EXPECT_EQ(read.name_limit, options.name_limit);
  EXPECT_EQ(read.group_scopes, options.group_scopes);
  EXPECT_EQ(read.access_types, options.access_types);
  EXPECT_EQ(read.optimizer_scopes, options.optimizer_scopes);
  EXPECT_EQ(read.layer_domain, options.layer_domain);
  EXPECT_EQ(read.hot_objects, options.hot_objects);
  EXPECT_EQ(read.kernel_objects, options.kernel_objects);
  EXPECT_EQ(read.hot_blocks, options.hot_blocks);
  EXPECT_EQ(read.block_bytes, options.block_bytes);
  EXPECT_EQ(read.object_blocks, options.object_blocks);
  EXPECT_EQ(read.time_bins, options.time_bins);
  EXPECT_EQ(read.reuse_intervals, options.reuse_intervals);
  EXPECT_EQ(read.reuse_pairs, options.reuse_pairs);
  EXPECT_EQ(read.remembered_launches, options.remembered_launches);
  EXPECT_EQ(read.instruction_limit, options.instruction_limit);
  EXPECT_EQ(read.warp_launches, options.warp_launches);
  EXPECT_EQ(read.divergence_blocks, options.divergence_blocks);
  EXPECT_EQ(read.divergence_instructions, options.divergence_instructions);
  EXPECT_EQ(read.divergence_cosine, options.divergence_cosine);
  EXPECT_EQ(read.reuse_words, options.reuse_words);
  EXPECT_EQ(read.word_heat_blocks, options.word_heat_blocks);
  EXPECT_EQ(read.word_heat_limit, options.word_heat_limit);
  EXPECT_EQ(read.word_heat_sectors, options.word_heat_sectors);
  EXPECT_EQ(read.word_heat_launches, options.word_heat_launches);
  EXPECT_EQ(read.reuse_least_words, options.reuse_least_words);
  EXPECT_EQ(read.atomic_high, options.atomic_high);
  EXPECT_EQ(read.atomic_medium, options.atomic_medium);
  EXPECT_EQ(read.atomic_medium_warp, options.atomic_medium_warp);
  EXPECT_EQ(read.atomic_low, options.atomic_low);
  EXPECT_EQ(read.atomic_low_warp, options.atomic_low_warp);
  EXPECT_EQ(read.grid_reuse, options.grid_reuse);
  EXPECT_EQ(read.block_reuse, options.block_reuse);
  EXPECT_EQ(read.uncoalesced_density, options.uncoalesced_density);
  EXPECT_EQ(read.uncoalesced_density_high, options.uncoalesced_density_high);
  EXPECT_EQ(read.uncoalesced_cold, options.uncoalesced_cold);
  EXPECT_EQ(read.uncoalesced_cold_high, options.uncoalesced_cold_high);
  EXPECT_EQ(read.streaming_cold, options.streaming_cold);
  EXPECT_EQ(read.streaming_cold_high, options.streaming_cold_high);
  EXPECT_EQ(read.broadcast_addresses, options.broadcast_addresses);
  EXPECT_EQ(read.broadcast_addresses_high, options.broadcast_addresses_high);
  EXPECT_EQ(read.half_lanes, options.half_lanes);
  EXPECT_EQ(read.footprint_ratio, options.footprint_ratio);
  EXPECT_EQ(read.uncoalesced_ratio, options.uncoalesced_ratio);
  EXPECT_EQ(read.uncoalesced_share, options.uncoalesced_share);
  EXPECT_EQ(read.bank_conflict_ratio, options.bank_conflict_ratio);
  EXPECT_EQ(read.bank_conflict_share, options.bank_conflict_share);
  EXPECT_EQ(read.divergence_variation, options.divergence_variation);
  EXPECT_EQ(read.hot_block_share, options.hot_block_share);
  EXPECT_EQ(read.hot_block_bytes_share, options.hot_block_bytes_share);
  EXPECT_EQ(read.roofline_time_share, options.roofline_time_share);
  EXPECT_EQ(read.roofline_attained, options.roofline_attained);
  EXPECT_EQ(read.heat_map_picture, options.heat_map_picture);
  EXPECT_EQ(read.roofline_picture, options.roofline_picture);
}

}  // namespace
}  // namespace sonde::workload
