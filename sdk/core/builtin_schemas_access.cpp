// Schema of the space sonde.access: one entry for each record struct in include/sonde/spaces/access.h.
#include <sonde/spaces/access.h>

#include <iterator>

#include "core/builtin_schemas.h"

namespace sonde::core {
namespace {

const sonde_field_t kAccessLaunch[] = {
    SONDE_FIELD(sonde_access_launch_t, launch, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_launch_t, readable, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_access_launch_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_launch_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_launch_t, graph_node, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_launch_t, module, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_launch_t, function_begin, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_access_launch_t, accesses, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_launch_t, outside, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_launch_t, dropped, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_launch_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_launch_t, device, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_launch_t, graph_exec, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_launch_t, name, SONDE_KIND_STRING, "", ""),
    {"grid_x", offsetof(sonde_access_launch_t, grid) + 0, 4, SONDE_KIND_UINT, 0, "", ""},
    {"grid_y", offsetof(sonde_access_launch_t, grid) + 4, 4, SONDE_KIND_UINT, 0, "", ""},
    {"grid_z", offsetof(sonde_access_launch_t, grid) + 8, 4, SONDE_KIND_UINT, 0, "", ""},
    {"block_x", offsetof(sonde_access_launch_t, block) + 0, 4, SONDE_KIND_UINT, 0, "", ""},
    {"block_y", offsetof(sonde_access_launch_t, block) + 4, 4, SONDE_KIND_UINT, 0, "", ""},
    {"block_z", offsetof(sonde_access_launch_t, block) + 8, 4, SONDE_KIND_UINT, 0, "", ""},
    SONDE_FIELD(sonde_access_launch_t, kernel_period, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_launch_t, block_period, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_launch_t, ranges, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_launch_t, flags, SONDE_KIND_FLAGS, "",
                "watched|skipped|incomplete|unpatched|device_graph|ranges_cut|pages_cut|unfinished|state_full|shared"),
    SONDE_FIELD(sonde_access_launch_t, counted_in, SONDE_KIND_ID, "", ""),
};

const sonde_field_t kAccessObject[] = {
    SONDE_FIELD(sonde_access_object_t, launch, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_object_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_access_object_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_object_t, ordinal, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_object_t, reads, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_object_t, writes, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_object_t, atomics, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_object_t, copies, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_object_t, read_bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_object_t, write_bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_object_t, copy_bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_object_t, sizes, SONDE_KIND_SPAN_UINT, "", ""),
    SONDE_FIELD(sonde_access_object_t, object_kind, SONDE_KIND_ENUM, "", "none|allocation|tensor|remainder|static"),
    SONDE_FIELD(sonde_access_object_t, name, SONDE_KIND_STRING, "", ""),
};

const sonde_field_t kAccessPages[] = {
    SONDE_FIELD(sonde_access_pages_t, launch, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_pages_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_access_pages_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_pages_t, ordinal, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_pages_t, page_bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_pages_t, pages, SONDE_KIND_SPAN_UINT, "", ""),
    SONDE_FIELD(sonde_access_pages_t, counts, SONDE_KIND_SPAN_UINT, "", ""),
};

const sonde_field_t kAccessIntervals[] = {
    SONDE_FIELD(sonde_access_intervals_t, launch, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_intervals_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_access_intervals_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_intervals_t, ordinal, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_intervals_t, touched, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_intervals_t, edges, SONDE_KIND_SPAN_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_intervals_t, kind, SONDE_KIND_ENUM, "", "none|read|written"),
    SONDE_FIELD(sonde_access_intervals_t, granule, SONDE_KIND_UINT, "bytes", ""),
};

const sonde_field_t kAccessInstruction[] = {
    SONDE_FIELD(sonde_access_instruction_t, launch, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_instruction_t, pc, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_access_instruction_t, threads, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_instruction_t, warps, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_instruction_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_instruction_t, sectors, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_instruction_t, least_sectors, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_instruction_t, wavefronts, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_instruction_t, least_wavefronts, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_instruction_t, memory, SONDE_KIND_ENUM, "", "none|global|shared|local"),
    SONDE_FIELD(sonde_access_instruction_t, access, SONDE_KIND_FLAGS, "", "read|write|system|prefetch"),
    SONDE_FIELD(sonde_access_instruction_t, size, SONDE_KIND_UINT, "bytes", ""),
};

const sonde_field_t kAccessWarps[] = {
    SONDE_FIELD(sonde_access_warps_t, launch, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_warps_t, count, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_warps_t, data, SONDE_KIND_SPAN_BYTES, "", ""),
};

const sonde_field_t kAccessInvalid[] = {
    SONDE_FIELD(sonde_access_invalid_t, launch, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_invalid_t, pc, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_access_invalid_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_access_invalid_t, count, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_invalid_t, nearest, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_access_invalid_t, nearest_bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_invalid_t, ordinal, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_invalid_t, distance, SONDE_KIND_INT, "bytes", ""),
    {"block_x", offsetof(sonde_access_invalid_t, block) + 0, 4, SONDE_KIND_UINT, 0, "", ""},
    {"block_y", offsetof(sonde_access_invalid_t, block) + 4, 4, SONDE_KIND_UINT, 0, "", ""},
    {"block_z", offsetof(sonde_access_invalid_t, block) + 8, 4, SONDE_KIND_UINT, 0, "", ""},
    {"thread_x", offsetof(sonde_access_invalid_t, thread) + 0, 4, SONDE_KIND_UINT, 0, "", ""},
    {"thread_y", offsetof(sonde_access_invalid_t, thread) + 4, 4, SONDE_KIND_UINT, 0, "", ""},
    {"thread_z", offsetof(sonde_access_invalid_t, thread) + 8, 4, SONDE_KIND_UINT, 0, "", ""},
    SONDE_FIELD(sonde_access_invalid_t, size, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_invalid_t, access, SONDE_KIND_FLAGS, "", "read|write|system|prefetch"),
    SONDE_FIELD(sonde_access_invalid_t, reason, SONDE_KIND_ENUM, "", "none|outside|freed|misaligned|straddles"),
    SONDE_FIELD(sonde_access_invalid_t, function, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_access_invalid_t, file, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_access_invalid_t, line, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_invalid_t, object, SONDE_KIND_STRING, "", ""),
};

const sonde_field_t kAccessEvents[] = {
    SONDE_FIELD(sonde_access_events_t, launch, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_events_t, count, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_events_t, data, SONDE_KIND_SPAN_BYTES, "", ""),
};

const sonde_field_t kAccessTransfer[] = {
    SONDE_FIELD(sonde_access_transfer_t, source, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_access_transfer_t, target, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_access_transfer_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_transfer_t, width, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_transfer_t, rows, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_transfer_t, source_pitch, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_transfer_t, target_pitch, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_access_transfer_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_transfer_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_transfer_t, graph_node, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_transfer_t, graph_exec, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_transfer_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_transfer_t, device, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_access_transfer_t, kind, SONDE_KIND_ENUM, "",
                "unknown|host_to_device|device_to_host|device_to_device|host_to_host|peer_to_peer|host_to_array|array_"
                "to_host|array_to_array|array_to_device|device_to_array"),
    SONDE_FIELD(sonde_access_transfer_t, value, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_access_transfer_t, flags, SONDE_KIND_FLAGS, "", "asynchronous|set|graph"),
};

const sonde_record_type_t kAccessTypes[] = {
    {SONDE_ACCESS_LAUNCH, sizeof(sonde_access_launch_t), "launch", "a kernel launch that was seen, watched or not",
     kAccessLaunch, std::size(kAccessLaunch), sizeof(sonde_field_t)},
    {SONDE_ACCESS_OBJECT, sizeof(sonde_access_object_t), "object", "totals of one launch in one live range",
     kAccessObject, std::size(kAccessObject), sizeof(sonde_field_t)},
    {SONDE_ACCESS_PAGES, sizeof(sonde_access_pages_t), "pages",
     "touched pages of one live range with their access counts", kAccessPages, std::size(kAccessPages),
     sizeof(sonde_field_t)},
    {SONDE_ACCESS_INTERVALS, sizeof(sonde_access_intervals_t), "intervals",
     "bytes of one live range that a launch touched", kAccessIntervals, std::size(kAccessIntervals),
     sizeof(sonde_field_t)},
    {SONDE_ACCESS_INSTRUCTION, sizeof(sonde_access_instruction_t), "instruction",
     "totals of one launch at one instruction", kAccessInstruction, std::size(kAccessInstruction),
     sizeof(sonde_field_t)},
    {SONDE_ACCESS_WARPS, sizeof(sonde_access_warps_t), "warps", "warp accesses, packed", kAccessWarps,
     std::size(kAccessWarps), sizeof(sonde_field_t)},
    {SONDE_ACCESS_INVALID, sizeof(sonde_access_invalid_t), "invalid", "an access that is wrong", kAccessInvalid,
     std::size(kAccessInvalid), sizeof(sonde_field_t)},
    {SONDE_ACCESS_EVENTS, sizeof(sonde_access_events_t), "events", "events of device code, packed", kAccessEvents,
     std::size(kAccessEvents), sizeof(sonde_field_t)},
    {SONDE_ACCESS_TRANSFER, sizeof(sonde_access_transfer_t), "transfer", "a copy or set that the host asked for",
     kAccessTransfer, std::size(kAccessTransfer), sizeof(sonde_field_t)},
};

}  // namespace

BuiltIn access_space() {
  return built_in(SONDE_SPACE_ACCESS, "sonde.access", "what device code did to memory", kAccessTypes);
}

}  // namespace sonde::core
