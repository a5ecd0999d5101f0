// Schemas of the built-in spaces: one entry for each record struct in include/sonde/spaces/.
#include <sonde/spaces/device.h>
#include <sonde/spaces/framework.h>
#include <sonde/spaces/host.h>
#include <sonde/spaces/memory.h>
#include <sonde/spaces/object.h>
#include <sonde/spaces/session.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "core/builtin_schemas.h"
#include "core/spaces.h"

namespace sonde::core {
namespace {

constexpr const char *kMemoryKinds = "unknown|pageable|pinned|device|array|managed|device_static|managed_static";

const sonde_field_t kSessionStart[] = {
    SONDE_FIELD(sonde_session_start_t, unix_ns, SONDE_KIND_UINT, "ns", ""),
    SONDE_FIELD(sonde_session_start_t, process, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_session_start_t, parent_process, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_session_start_t, host, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_session_start_t, boot, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_session_start_t, program, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_session_start_t, command, SONDE_KIND_STRING, "", ""),
};

const sonde_field_t kSessionStop[] = {
    SONDE_FIELD(sonde_session_stop_t, unix_ns, SONDE_KIND_UINT, "ns", ""),
    SONDE_FIELD(sonde_session_stop_t, reason, SONDE_KIND_ENUM, "", "asked|exit|deadline|error"),
};

const sonde_field_t kSessionClockPair[] = {
    SONDE_FIELD(sonde_session_clock_pair_t, value, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_session_clock_pair_t, uncertainty, SONDE_KIND_UINT, "ns", ""),
    SONDE_FIELD(sonde_session_clock_pair_t, clock, SONDE_KIND_UINT, "", ""),
};

const sonde_field_t kSessionLoss[] = {
    SONDE_FIELD(sonde_session_loss_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_session_loss_t, records, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_session_loss_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_session_loss_t, cause, SONDE_KIND_ENUM, "",
                "none|ring_full|too_big|queue_full|overwritten|vendor|memory_cap|disk|tail|malformed|deadline|"
                "subscriber|damaged|late"),
};

const sonde_field_t kSessionNote[] = {
    SONDE_FIELD(sonde_session_note_t, severity, SONDE_KIND_ENUM, "", "info|warning|error|no_data"),
    SONDE_FIELD(sonde_session_note_t, origin, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_session_note_t, text, SONDE_KIND_STRING, "", ""),
};

const sonde_field_t kSessionStream[] = {
    SONDE_FIELD(sonde_session_stream_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_session_stream_t, thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_session_stream_t, kind, SONDE_KIND_ENUM, "", "thread|port"),
    SONDE_FIELD(sonde_session_stream_t, name, SONDE_KIND_STRING, "", ""),
};

const sonde_field_t kSessionFork[] = {
    SONDE_FIELD(sonde_session_fork_t, child, SONDE_KIND_ID, "", ""),
};

const sonde_field_t kSessionWindow[] = {
    SONDE_FIELD(sonde_session_window_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_session_window_t, stratum, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_session_window_t, launches, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_session_window_t, slots, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_session_window_t, collected, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_session_window_t, state, SONDE_KIND_ENUM, "", "left_out|collected"),
    SONDE_FIELD(sonde_session_window_t, next, SONDE_KIND_ENUM, "", "left_out|collected"),
    SONDE_FIELD(sonde_session_window_t, origin, SONDE_KIND_STRING, "", ""),
};

const sonde_field_t kHostCall[] = {
    SONDE_FIELD(sonde_host_call_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_host_call_t, thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_host_call_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_host_call_t, function, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_host_call_t, domain, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_host_call_t, result, SONDE_KIND_INT, "", ""),
};

const sonde_field_t kHostCallBegin[] = {
    SONDE_FIELD(sonde_host_call_begin_t, thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_host_call_begin_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_host_call_begin_t, function, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_host_call_begin_t, domain, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_host_call_begin_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_host_call_begin_t, stream, SONDE_KIND_ID, "", ""),
};

const sonde_field_t kHostCallEnd[] = {
    SONDE_FIELD(sonde_host_call_end_t, thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_host_call_end_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_host_call_end_t, result, SONDE_KIND_INT, "", ""),
};

const sonde_field_t kDeviceKernel[] = {
    SONDE_FIELD(sonde_device_kernel_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_device_kernel_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_kernel_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_kernel_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_kernel_t, device, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_device_kernel_t, name, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_device_kernel_t, graph_exec, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_kernel_t, graph_node, SONDE_KIND_ID, "", ""),
    {"grid_x", offsetof(sonde_device_kernel_t, grid) + 0, 4, SONDE_KIND_UINT, 0, "", ""},
    {"grid_y", offsetof(sonde_device_kernel_t, grid) + 4, 4, SONDE_KIND_UINT, 0, "", ""},
    {"grid_z", offsetof(sonde_device_kernel_t, grid) + 8, 4, SONDE_KIND_UINT, 0, "", ""},
    {"block_x", offsetof(sonde_device_kernel_t, block) + 0, 4, SONDE_KIND_UINT, 0, "", ""},
    {"block_y", offsetof(sonde_device_kernel_t, block) + 4, 4, SONDE_KIND_UINT, 0, "", ""},
    {"block_z", offsetof(sonde_device_kernel_t, block) + 8, 4, SONDE_KIND_UINT, 0, "", ""},
    SONDE_FIELD(sonde_device_kernel_t, static_shared, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_device_kernel_t, dynamic_shared, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_device_kernel_t, registers, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_device_kernel_t, local, SONDE_KIND_UINT, "bytes", ""),
    {"cluster_x", offsetof(sonde_device_kernel_t, cluster) + 0, 4, SONDE_KIND_UINT, 0, "", ""},
    {"cluster_y", offsetof(sonde_device_kernel_t, cluster) + 4, 4, SONDE_KIND_UINT, 0, "", ""},
    {"cluster_z", offsetof(sonde_device_kernel_t, cluster) + 8, 4, SONDE_KIND_UINT, 0, "", ""},
    SONDE_FIELD(sonde_device_kernel_t, priority, SONDE_KIND_UINT, "", ""),
};

const sonde_field_t kDeviceCopy[] = {
    SONDE_FIELD(sonde_device_copy_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_device_copy_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_copy_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_copy_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_copy_t, device, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_device_copy_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_device_copy_t, graph_node, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_copy_t, graph_exec, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_copy_t, kind, SONDE_KIND_ENUM, "",
                "unknown|host_to_device|device_to_host|device_to_device|host_to_host|peer_to_peer|host_to_array|array_"
                "to_host|array_to_array|array_to_device|device_to_array"),
    SONDE_FIELD(sonde_device_copy_t, source_memory, SONDE_KIND_ENUM, "", kMemoryKinds),
    SONDE_FIELD(sonde_device_copy_t, destination_memory, SONDE_KIND_ENUM, "", kMemoryKinds),
    SONDE_FIELD(sonde_device_copy_t, flags, SONDE_KIND_FLAGS, "", "async"),
    SONDE_FIELD(sonde_device_copy_t, peer_device, SONDE_KIND_UINT, "", ""),
};

const sonde_field_t kDeviceSet[] = {
    SONDE_FIELD(sonde_device_set_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_device_set_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_set_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_set_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_set_t, device, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_device_set_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_device_set_t, graph_node, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_set_t, graph_exec, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_set_t, memory, SONDE_KIND_ENUM, "", kMemoryKinds),
    SONDE_FIELD(sonde_device_set_t, value, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_device_set_t, flags, SONDE_KIND_FLAGS, "", "async"),
};

const sonde_field_t kDeviceSync[] = {
    SONDE_FIELD(sonde_device_sync_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_device_sync_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_sync_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_sync_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_sync_t, kind, SONDE_KIND_ENUM, "", "unknown|event|stream_wait_event|stream|context"),
    SONDE_FIELD(sonde_device_sync_t, event, SONDE_KIND_ID, "", ""),
};

const sonde_field_t kDeviceGraphLaunch[] = {
    SONDE_FIELD(sonde_device_graph_launch_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_device_graph_launch_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_graph_launch_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_graph_launch_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_graph_launch_t, device, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_device_graph_launch_t, graph_exec, SONDE_KIND_ID, "", ""),
};

const sonde_field_t kDevicePageFault[] = {
    SONDE_FIELD(sonde_device_page_fault_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_device_page_fault_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_device_page_fault_t, count, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_device_page_fault_t, process, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_page_fault_t, processor, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_device_page_fault_t, access, SONDE_KIND_ENUM, "", "unknown|read|write|atomic|prefetch"),
};

const sonde_field_t kDeviceMigration[] = {
    SONDE_FIELD(sonde_device_migration_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_device_migration_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_device_migration_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_device_migration_t, process, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_migration_t, source, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_device_migration_t, destination, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_device_migration_t, cause, SONDE_KIND_ENUM, "",
                "unknown|access|prefetch|eviction|access_counters|coherence"),
};

const sonde_field_t kDeviceThrash[] = {
    SONDE_FIELD(sonde_device_thrash_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_device_thrash_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_device_thrash_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_device_thrash_t, process, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_device_thrash_t, processor, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_device_thrash_t, action, SONDE_KIND_ENUM, "", "seen|throttled|mapped_remotely"),
};

const sonde_field_t kMemoryAllocate[] = {
    SONDE_FIELD(sonde_memory_allocate_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_memory_allocate_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_memory_allocate_t, pool, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_allocate_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_allocate_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_allocate_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_allocate_t, device, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_memory_allocate_t, kind, SONDE_KIND_ENUM, "", kMemoryKinds),
    SONDE_FIELD(sonde_memory_allocate_t, flags, SONDE_KIND_FLAGS, "", "stream_ordered|pooled"),
    SONDE_FIELD(sonde_memory_allocate_t, name, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_memory_allocate_t, call_path, SONDE_KIND_STRING, "", ""),
};

const sonde_field_t kMemoryFree[] = {
    SONDE_FIELD(sonde_memory_free_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_memory_free_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_memory_free_t, pool, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_free_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_free_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_free_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_free_t, device, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_memory_free_t, kind, SONDE_KIND_ENUM, "", kMemoryKinds),
    SONDE_FIELD(sonde_memory_free_t, flags, SONDE_KIND_FLAGS, "", "stream_ordered|pooled"),
};

const sonde_field_t kMemoryPool[] = {
    SONDE_FIELD(sonde_memory_pool_t, pool, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_pool_t, reserved_bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_memory_pool_t, used_bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_memory_pool_t, release_threshold, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_memory_pool_t, device, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_memory_pool_t, kind, SONDE_KIND_ENUM, "", "local|imported"),
};

const sonde_field_t kMemoryMap[] = {
    SONDE_FIELD(sonde_memory_map_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_memory_map_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_memory_map_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_map_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_map_t, device, SONDE_KIND_UINT, "", ""),
};

const sonde_field_t kMemoryAdvise[] = {
    SONDE_FIELD(sonde_memory_advise_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_memory_advise_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_memory_advise_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_advise_t, correlation, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_memory_advise_t, device, SONDE_KIND_INT, "", ""),
    SONDE_FIELD(sonde_memory_advise_t, advice, SONDE_KIND_UINT, "", ""),
};

const sonde_field_t kObjectModule[] = {
    SONDE_FIELD(sonde_object_module_t, module, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_module_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_object_module_t, hash, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_module_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_module_t, state, SONDE_KIND_ENUM, "", "loaded|unloaded"),
};

const sonde_field_t kObjectFunction[] = {
    SONDE_FIELD(sonde_object_function_t, module, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_function_t, function, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_function_t, name, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_object_function_t, context, SONDE_KIND_ID, "", ""),
};

const sonde_field_t kObjectTensor[] = {
    SONDE_FIELD(sonde_object_tensor_t, tensor, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_tensor_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_object_tensor_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_object_tensor_t, name, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_object_tensor_t, dtype, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_object_tensor_t, shape, SONDE_KIND_SPAN_INT, "", ""),
    SONDE_FIELD(sonde_object_tensor_t, strides, SONDE_KIND_SPAN_INT, "", ""),
    SONDE_FIELD(sonde_object_tensor_t, role, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_object_tensor_t, device, SONDE_KIND_UINT, "", ""),
};

const sonde_field_t kObjectName[] = {
    SONDE_FIELD(sonde_object_name_t, object, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_name_t, kind, SONDE_KIND_ENUM, "", "none|thread|stream|context|device|event|address"),
    SONDE_FIELD(sonde_object_name_t, name, SONDE_KIND_STRING, "", ""),
};

const sonde_field_t kObjectCallPath[] = {
    SONDE_FIELD(sonde_object_call_path_t, path, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_call_path_t, frames, SONDE_KIND_SPAN_STRING, "", ""),
};

const sonde_field_t kObjectDevice[] = {
    SONDE_FIELD(sonde_object_device_t, memory_bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_object_device_t, memory_bandwidth, SONDE_KIND_UINT, "bytes/s", ""),
    SONDE_FIELD(sonde_object_device_t, device, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_object_device_t, name, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_object_device_t, uuid, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_object_device_t, runtime, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_object_device_t, capability_major, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_object_device_t, capability_minor, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_object_device_t, processors, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_object_device_t, warp, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_object_device_t, core_clock_khz, SONDE_KIND_UINT, "kHz", ""),
    SONDE_FIELD(sonde_object_device_t, l2_bytes, SONDE_KIND_UINT, "bytes", ""),
};

const sonde_field_t kObjectContext[] = {
    SONDE_FIELD(sonde_object_context_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_context_t, device, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_object_context_t, null_stream, SONDE_KIND_ID, "", ""),
};

const sonde_field_t kObjectStream[] = {
    SONDE_FIELD(sonde_object_stream_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_stream_t, context, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_stream_t, priority, SONDE_KIND_INT, "", ""),
    SONDE_FIELD(sonde_object_stream_t, flags, SONDE_KIND_FLAGS, "", "default|non_blocking"),
    SONDE_FIELD(sonde_object_stream_t, state, SONDE_KIND_ENUM, "", "made|destroyed"),
};

const sonde_field_t kObjectGraph[] = {
    SONDE_FIELD(sonde_object_graph_t, graph, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_graph_t, source, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_object_graph_t, graph_exec, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_graph_t, state, SONDE_KIND_ENUM, "", "made|destroyed"),
    SONDE_FIELD(sonde_object_graph_t, nodes, SONDE_KIND_UINT, "", ""),
};

const sonde_field_t kObjectCode[] = {
    SONDE_FIELD(sonde_object_code_t, hash, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_object_code_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_object_code_t, offset, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_object_code_t, data, SONDE_KIND_SPAN_BYTES, "", ""),
};

const sonde_field_t kFrameworkScope[] = {
    SONDE_FIELD(sonde_framework_scope_t, scope, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_scope_t, thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_scope_t, name, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_scope_t, domain, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_scope_t, category, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_scope_t, color, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_framework_scope_t, payload, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_framework_scope_t, payload_kind, SONDE_KIND_ENUM, "", "none|unsigned|signed|double"),
};

const sonde_field_t kFrameworkOperator[] = {
    SONDE_FIELD(sonde_framework_operator_t, scope, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, name, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, domain, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, category, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, color, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, payload, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, payload_kind, SONDE_KIND_ENUM, "", "none|unsigned|signed|double"),
    SONDE_FIELD(sonde_framework_operator_t, link, SONDE_KIND_ENUM, "", "none|forward|backward"),
    SONDE_FIELD(sonde_framework_operator_t, sequence, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, forward_thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, call_path, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, input_types, SONDE_KIND_SPAN_STRING, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, input_arguments, SONDE_KIND_SPAN_UINT, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, input_ranks, SONDE_KIND_SPAN_INT, "", ""),
    SONDE_FIELD(sonde_framework_operator_t, input_shapes, SONDE_KIND_SPAN_INT, "", ""),
};
// A schema continues an earlier one only where the fields stay in place.
static_assert(offsetof(sonde_framework_operator_t, payload_kind) == offsetof(sonde_framework_scope_t, payload_kind));
static_assert(offsetof(sonde_framework_operator_t, sequence) == sizeof(sonde_framework_scope_t));

const sonde_field_t kFrameworkScopeEnd[] = {
    SONDE_FIELD(sonde_framework_scope_end_t, scope, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_scope_end_t, thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_scope_end_t, domain, SONDE_KIND_STRING, "", ""),
};

const sonde_field_t kFrameworkMetric[] = {
    SONDE_FIELD(sonde_framework_metric_t, thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_metric_t, value, SONDE_KIND_FLOAT, "", ""),
    SONDE_FIELD(sonde_framework_metric_t, name, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_metric_t, unit, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_metric_t, rule, SONDE_KIND_ENUM, "", "inclusive|exclusive|property"),
};

const sonde_field_t kFrameworkTensor[] = {
    SONDE_FIELD(sonde_framework_tensor_t, address, SONDE_KIND_ADDRESS, "", ""),
    SONDE_FIELD(sonde_framework_tensor_t, bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_framework_tensor_t, allocated, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_framework_tensor_t, reserved_bytes, SONDE_KIND_UINT, "bytes", ""),
    SONDE_FIELD(sonde_framework_tensor_t, thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_tensor_t, device, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_framework_tensor_t, name, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_tensor_t, pool, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_tensor_t, stream, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_tensor_t, scope, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_tensor_t, flags, SONDE_KIND_FLAGS, "", "earlier"),
};

const sonde_field_t kFrameworkCompile[] = {
    SONDE_FIELD(sonde_framework_compile_t, end, SONDE_KIND_TIME, "", ""),
    SONDE_FIELD(sonde_framework_compile_t, thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_compile_t, kind, SONDE_KIND_ENUM, "", "compile|recompile|graph_break|cache_hit"),
    SONDE_FIELD(sonde_framework_compile_t, name, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_compile_t, reason, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_compile_t, file, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_compile_t, line, SONDE_KIND_UINT, "", ""),
    SONDE_FIELD(sonde_framework_compile_t, id, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_compile_t, attempt, SONDE_KIND_UINT, "", ""),
};

const sonde_field_t kFrameworkCompiledKernel[] = {
    SONDE_FIELD(sonde_framework_compiled_kernel_t, thread, SONDE_KIND_ID, "", ""),
    SONDE_FIELD(sonde_framework_compiled_kernel_t, name, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_compiled_kernel_t, id, SONDE_KIND_STRING, "", ""),
    SONDE_FIELD(sonde_framework_compiled_kernel_t, operators, SONDE_KIND_SPAN_STRING, "", ""),
    SONDE_FIELD(sonde_framework_compiled_kernel_t, sources, SONDE_KIND_SPAN_STRING, "", ""),
};

const sonde_record_type_t kSessionTypes[] = {
    {SONDE_SESSION_START, sizeof(sonde_session_start_t), "start", "the process whose events follow", kSessionStart,
     std::size(kSessionStart), sizeof(sonde_field_t)},
    {SONDE_SESSION_STOP, sizeof(sonde_session_stop_t), "stop", "the end of the capture", kSessionStop,
     std::size(kSessionStop), sizeof(sonde_field_t)},
    {SONDE_SESSION_CLOCK_PAIR, sizeof(sonde_session_clock_pair_t), "clock_pair", "two clocks read together",
     kSessionClockPair, std::size(kSessionClockPair), sizeof(sonde_field_t)},
    {SONDE_SESSION_LOSS, sizeof(sonde_session_loss_t), "loss", "records that a stream lost", kSessionLoss,
     std::size(kSessionLoss), sizeof(sonde_field_t)},
    {SONDE_SESSION_NOTE, sizeof(sonde_session_note_t), "note", "an error, a doubt, or why there is no data",
     kSessionNote, std::size(kSessionNote), sizeof(sonde_field_t)},
    {SONDE_SESSION_STREAM, sizeof(sonde_session_stream_t), "stream", "a stream begins", kSessionStream,
     std::size(kSessionStream), sizeof(sonde_field_t)},
    {SONDE_SESSION_FORK, sizeof(sonde_session_fork_t), "fork", "the process forked", kSessionFork,
     std::size(kSessionFork), sizeof(sonde_field_t)},
    {SONDE_SESSION_WINDOW, sizeof(sonde_session_window_t), "window", "what a port collected or left out for its budget",
     kSessionWindow, std::size(kSessionWindow), sizeof(sonde_field_t)},
};

const sonde_record_type_t kHostTypes[] = {
    {SONDE_HOST_CALL, sizeof(sonde_host_call_t), "call", "a call that has ended", kHostCall, std::size(kHostCall),
     sizeof(sonde_field_t)},
    {SONDE_HOST_CALL_BEGIN, sizeof(sonde_host_call_begin_t), "call_begin", "a call begins", kHostCallBegin,
     std::size(kHostCallBegin), sizeof(sonde_field_t)},
    {SONDE_HOST_CALL_END, sizeof(sonde_host_call_end_t), "call_end", "a call ends", kHostCallEnd,
     std::size(kHostCallEnd), sizeof(sonde_field_t)},
};

const sonde_record_type_t kDeviceTypes[] = {
    {SONDE_DEVICE_KERNEL, sizeof(sonde_device_kernel_t), "kernel", "a kernel ran", kDeviceKernel,
     std::size(kDeviceKernel), sizeof(sonde_field_t)},
    {SONDE_DEVICE_COPY, sizeof(sonde_device_copy_t), "copy", "memory was copied", kDeviceCopy, std::size(kDeviceCopy),
     sizeof(sonde_field_t)},
    {SONDE_DEVICE_SET, sizeof(sonde_device_set_t), "set", "memory was set", kDeviceSet, std::size(kDeviceSet),
     sizeof(sonde_field_t)},
    {SONDE_DEVICE_SYNC, sizeof(sonde_device_sync_t), "sync", "a synchronisation", kDeviceSync, std::size(kDeviceSync),
     sizeof(sonde_field_t)},
    {SONDE_DEVICE_GRAPH_LAUNCH, sizeof(sonde_device_graph_launch_t), "graph_launch", "a graph ran", kDeviceGraphLaunch,
     std::size(kDeviceGraphLaunch), sizeof(sonde_field_t)},
    {SONDE_DEVICE_PAGE_FAULT, sizeof(sonde_device_page_fault_t), "page_fault", "page faults of managed memory",
     kDevicePageFault, std::size(kDevicePageFault), sizeof(sonde_field_t)},
    {SONDE_DEVICE_MIGRATION, sizeof(sonde_device_migration_t), "migration", "pages of managed memory moved",
     kDeviceMigration, std::size(kDeviceMigration), sizeof(sonde_field_t)},
    {SONDE_DEVICE_THRASH, sizeof(sonde_device_thrash_t), "thrash", "pages of managed memory move back and forth",
     kDeviceThrash, std::size(kDeviceThrash), sizeof(sonde_field_t)},
};

const sonde_record_type_t kMemoryTypes[] = {
    {SONDE_MEMORY_ALLOCATE, sizeof(sonde_memory_allocate_t), "allocate", "memory was allocated", kMemoryAllocate,
     std::size(kMemoryAllocate), sizeof(sonde_field_t)},
    {SONDE_MEMORY_FREE, sizeof(sonde_memory_free_t), "free", "memory was freed", kMemoryFree, std::size(kMemoryFree),
     sizeof(sonde_field_t)},
    {SONDE_MEMORY_POOL_CREATE, sizeof(sonde_memory_pool_t), "pool_create", "a pool was made", kMemoryPool,
     std::size(kMemoryPool), sizeof(sonde_field_t)},
    {SONDE_MEMORY_POOL_DESTROY, sizeof(sonde_memory_pool_t), "pool_destroy", "a pool was destroyed", kMemoryPool,
     std::size(kMemoryPool), sizeof(sonde_field_t)},
    {SONDE_MEMORY_POOL_TRIM, sizeof(sonde_memory_pool_t), "pool_trim", "a pool gave memory back", kMemoryPool,
     std::size(kMemoryPool), sizeof(sonde_field_t)},
    {SONDE_MEMORY_SUB_ALLOCATE, sizeof(sonde_memory_allocate_t), "sub_allocate",
     "a block was handed out of an allocation", kMemoryAllocate, std::size(kMemoryAllocate), sizeof(sonde_field_t)},
    {SONDE_MEMORY_SUB_FREE, sizeof(sonde_memory_free_t), "sub_free", "a block went back to its allocation", kMemoryFree,
     std::size(kMemoryFree), sizeof(sonde_field_t)},
    {SONDE_MEMORY_MAP, sizeof(sonde_memory_map_t), "map", "memory was mapped", kMemoryMap, std::size(kMemoryMap),
     sizeof(sonde_field_t)},
    {SONDE_MEMORY_UNMAP, sizeof(sonde_memory_map_t), "unmap", "memory was unmapped", kMemoryMap, std::size(kMemoryMap),
     sizeof(sonde_field_t)},
    {SONDE_MEMORY_ADVISE, sizeof(sonde_memory_advise_t), "advise", "advice on managed memory", kMemoryAdvise,
     std::size(kMemoryAdvise), sizeof(sonde_field_t)},
    {SONDE_MEMORY_PREFETCH, sizeof(sonde_memory_advise_t), "prefetch", "managed memory was prefetched", kMemoryAdvise,
     std::size(kMemoryAdvise), sizeof(sonde_field_t)},
};

const sonde_record_type_t kObjectTypes[] = {
    {SONDE_OBJECT_MODULE, sizeof(sonde_object_module_t), "module", "a code object", kObjectModule,
     std::size(kObjectModule), sizeof(sonde_field_t)},
    {SONDE_OBJECT_FUNCTION, sizeof(sonde_object_function_t), "function", "a device function", kObjectFunction,
     std::size(kObjectFunction), sizeof(sonde_field_t)},
    {SONDE_OBJECT_TENSOR, sizeof(sonde_object_tensor_t), "tensor", "a tensor", kObjectTensor, std::size(kObjectTensor),
     sizeof(sonde_field_t)},
    {SONDE_OBJECT_NAME, sizeof(sonde_object_name_t), "name", "a name the program gave", kObjectName,
     std::size(kObjectName), sizeof(sonde_field_t)},
    {SONDE_OBJECT_CALL_PATH, sizeof(sonde_object_call_path_t), "call_path", "a call path", kObjectCallPath,
     std::size(kObjectCallPath), sizeof(sonde_field_t)},
    {SONDE_OBJECT_DEVICE, sizeof(sonde_object_device_t), "device", "a device", kObjectDevice, std::size(kObjectDevice),
     sizeof(sonde_field_t)},
    {SONDE_OBJECT_CONTEXT, sizeof(sonde_object_context_t), "context", "a context", kObjectContext,
     std::size(kObjectContext), sizeof(sonde_field_t)},
    {SONDE_OBJECT_STREAM, sizeof(sonde_object_stream_t), "stream", "a stream of a runtime", kObjectStream,
     std::size(kObjectStream), sizeof(sonde_field_t)},
    {SONDE_OBJECT_GRAPH, sizeof(sonde_object_graph_t), "graph", "a graph made executable, cloned or destroyed",
     kObjectGraph, std::size(kObjectGraph), sizeof(sonde_field_t)},
    {SONDE_OBJECT_CODE, sizeof(sonde_object_code_t), "code", "a piece of a code object", kObjectCode,
     std::size(kObjectCode), sizeof(sonde_field_t)},
};

const sonde_record_type_t kFrameworkTypes[] = {
    {SONDE_FRAMEWORK_OPERATOR_BEGIN, sizeof(sonde_framework_operator_t), "operator_begin", "an operator begins",
     kFrameworkOperator, std::size(kFrameworkOperator), sizeof(sonde_field_t)},
    {SONDE_FRAMEWORK_OPERATOR_END, sizeof(sonde_framework_scope_end_t), "operator_end", "an operator ends",
     kFrameworkScopeEnd, std::size(kFrameworkScopeEnd), sizeof(sonde_field_t)},
    {SONDE_FRAMEWORK_SCOPE_PUSH, sizeof(sonde_framework_scope_t), "scope_push", "a scope opens", kFrameworkScope,
     std::size(kFrameworkScope), sizeof(sonde_field_t)},
    {SONDE_FRAMEWORK_SCOPE_POP, sizeof(sonde_framework_scope_end_t), "scope_pop", "a scope closes", kFrameworkScopeEnd,
     std::size(kFrameworkScopeEnd), sizeof(sonde_field_t)},
    {SONDE_FRAMEWORK_RANGE_START, sizeof(sonde_framework_scope_t), "range_start", "a range begins", kFrameworkScope,
     std::size(kFrameworkScope), sizeof(sonde_field_t)},
    {SONDE_FRAMEWORK_RANGE_END, sizeof(sonde_framework_scope_end_t), "range_end", "a range ends", kFrameworkScopeEnd,
     std::size(kFrameworkScopeEnd), sizeof(sonde_field_t)},
    {SONDE_FRAMEWORK_MARK, sizeof(sonde_framework_scope_t), "mark", "a moment", kFrameworkScope,
     std::size(kFrameworkScope), sizeof(sonde_field_t)},
    {SONDE_FRAMEWORK_METRIC, sizeof(sonde_framework_metric_t), "metric", "a number of the open scope", kFrameworkMetric,
     std::size(kFrameworkMetric), sizeof(sonde_field_t)},
    {SONDE_FRAMEWORK_TENSOR_ALLOCATE, sizeof(sonde_framework_tensor_t), "tensor_allocate", "the framework allocated",
     kFrameworkTensor, std::size(kFrameworkTensor), sizeof(sonde_field_t)},
    {SONDE_FRAMEWORK_TENSOR_FREE, sizeof(sonde_framework_tensor_t), "tensor_free", "the framework freed",
     kFrameworkTensor, std::size(kFrameworkTensor), sizeof(sonde_field_t)},
    {SONDE_FRAMEWORK_COMPILE, sizeof(sonde_framework_compile_t), "compile", "a compilation", kFrameworkCompile,
     std::size(kFrameworkCompile), sizeof(sonde_field_t)},
    {SONDE_FRAMEWORK_COMPILED_KERNEL, sizeof(sonde_framework_compiled_kernel_t), "compiled_kernel",
     "a kernel that the framework's compiler made", kFrameworkCompiledKernel, std::size(kFrameworkCompiledKernel),
     sizeof(sonde_field_t)},
};

}  // namespace

void register_builtin_spaces() {
  const BuiltIn spaces[] = {
      built_in(SONDE_SPACE_SESSION, "sonde.session", "what the capture says about itself", kSessionTypes),
      built_in(SONDE_SPACE_HOST, "sonde.host", "calls of a runtime or driver by the program", kHostTypes),
      built_in(SONDE_SPACE_DEVICE, "sonde.device", "what ran on an accelerator", kDeviceTypes),
      built_in(SONDE_SPACE_MEMORY, "sonde.memory", "the life of address ranges", kMemoryTypes),
      built_in(SONDE_SPACE_OBJECT, "sonde.object", "things that other records refer to", kObjectTypes),
      built_in(SONDE_SPACE_FRAMEWORK, "sonde.framework", "what the program above the runtime says it is doing",
               kFrameworkTypes),
      access_space(),
      sample_space(),
  };
  for (const BuiltIn &space : spaces) {
    if (auto result = register_space(space.schema, space.number); !result) {
      std::fprintf(stderr, "sonde: fatal: %s\n", result.error().text.c_str());
      std::abort();
    }
  }
}

}  // namespace sonde::core
