// Schema of the space sonde.sample: one entry for each record struct in include/sonde/spaces/sample.h.
#include <sonde/spaces/sample.h>

#include <iterator>

#include "core/builtin_schemas.h"

namespace sonde::core {
namespace {

const sonde_field_t kSampleStallReason[] = {
    SONDE_FIELD(sonde_sample_stall_reason_t, index, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_stall_reason_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_stall_reason_t, stall, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_sample_stall_reason_t, vendor, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_sample_stall_reason_t, flags, SONDE_KIND_FLAGS, "", "not_issued"),
};

const sonde_field_t kSamplePc[] = {
    SONDE_FIELD(sonde_sample_pc_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_sample_pc_t, module, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_pc_t, pc, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_sample_pc_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_pc_t, samples, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_sample_pc_t, latency, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_sample_pc_t, function, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_sample_pc_t, stall, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_sample_pc_t, function_index, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_pc_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_pc_t, device, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_pc_t, flags, SONDE_KIND_FLAGS, "", "vendor_checksum"),
};

const sonde_field_t kSampleWindow[] = {
    SONDE_FIELD(sonde_sample_window_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_sample_window_t, samples, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_sample_window_t, recorded, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_sample_window_t, dropped, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_sample_window_t, foreign, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_sample_window_t, pcs, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_sample_window_t, range, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_window_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_window_t, device, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_window_t, period_log2, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_sample_window_t, mode, SONDE_KIND_ENUM, "", "unknown|continuous|ranges|serialized"),
    SONDE_FIELD(sonde_sample_window_t, flags, SONDE_KIND_FLAGS, "", "hardware_buffer_full"),
};

const sonde_field_t kSampleLine[] = {
    SONDE_FIELD(sonde_sample_line_t, module, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_line_t, pc, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_sample_line_t, function, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_sample_line_t, file, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_sample_line_t, line, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_sample_line_t, frames, SONDE_KIND_SPAN_STRING, "", ""),
};

const sonde_field_t kSampleCounter[] = {
    SONDE_FIELD(sonde_sample_counter_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_sample_counter_t, launch, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_sample_counter_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_counter_t, value, SONDE_KIND_FLOAT, "", ""),
    SONDE_FIELD(sonde_sample_counter_t, function, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_sample_counter_t, metric, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_sample_counter_t, unit, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_sample_counter_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_counter_t, device, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_sample_counter_t, passes, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_sample_counter_t, replay, SONDE_KIND_ENUM, "", "unknown|kernel"),
};

const sonde_record_type_t kSampleTypes[] = {
    {SONDE_SAMPLE_STALL_REASON, sizeof(sonde_sample_stall_reason_t), "stall_reason",
     "a stall reason that the device distinguishes", kSampleStallReason, std::size(kSampleStallReason),
     sizeof(sonde_field_t)},
    {SONDE_SAMPLE_PC, sizeof(sonde_sample_pc_t), "pc", "samples of one instruction with one stall reason", kSamplePc,
     std::size(kSamplePc), sizeof(sonde_field_t)},
    {SONDE_SAMPLE_WINDOW, sizeof(sonde_sample_window_t), "window", "what sampling gave in a window, and what it lost",
     kSampleWindow, std::size(kSampleWindow), sizeof(sonde_field_t)},
    {SONDE_SAMPLE_LINE, sizeof(sonde_sample_line_t), "line", "where a sampled instruction comes from", kSampleLine,
     std::size(kSampleLine), sizeof(sonde_field_t)},
    {SONDE_SAMPLE_COUNTER, sizeof(sonde_sample_counter_t), "counter", "the value of one metric over one kernel launch",
     kSampleCounter, std::size(kSampleCounter), sizeof(sonde_field_t)},
};

}  // namespace

BuiltIn sample_space() {
  return built_in(SONDE_SPACE_SAMPLE, "sonde.sample", "what was sampled or counted rather than traced", kSampleTypes);
}

}  // namespace sonde::core
