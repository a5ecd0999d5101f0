// Entry of the plugin `cuda`: its options and the interface sonde.port/1.
#include <cstring>
#include <string>

#include <sonde/plugin.h>
#include <sonde/port.h>

#include "common/entry.h"
#include "nvtx.h"
#include "port.h"

namespace sonde::cuda {

namespace {

constexpr sonde_option_t kOptions[] = {
    {"api", "false", "record every call of the CUDA runtime and driver, and CUPTI's own overheads", "", "",
     SONDE_OPTION_BOOL, 0},
    {"launches", "true", "record the calls that launch kernels and graphs, where calls are wanted", "", "",
     SONDE_OPTION_BOOL, 0},
    {"memory", "true", "record allocations, frees and memory pools", "", "", SONDE_OPTION_BOOL, 0},
    {"sync", "true", "record synchronisations", "", "", SONDE_OPTION_BOOL, 0},
    {"nvtx", "true", "record NVTX ranges, marks and names", "", "", SONDE_OPTION_BOOL, 0},
    {"graphs", "node", "each node of a CUDA graph, or one interval for each graph launch", "", "node|graph",
     SONDE_OPTION_TEXT, 0},
    {"managed", "false", "record faults and migrations of managed memory; slows programs that use it", "", "",
     SONDE_OPTION_BOOL, 0},
    {"objects", "true", "subscribe to CUPTI's callbacks for graphs, modules and streams", "", "", SONDE_OPTION_BOOL, 0},
    {"clock", "stamp", "clock that CUPTI is given: the host's stamp, or its own, related by repeated readings", "",
     "stamp|vendor", SONDE_OPTION_TEXT, 0},
    {"buffer_bytes", "8Mi", "size of an activity buffer; the first session of a process sets it", "bytes",
     "65536..268435456", SONDE_OPTION_I64, 0},
    {"pool_bytes", "256Mi", "most memory for activity buffers; beyond it CUPTI drops records and counts them", "bytes",
     "131072..17179869184", SONDE_OPTION_I64, 0},
    {"prepare_buffers", "true", "clear activity buffers on a helper thread, not on the program's", "", "",
     SONDE_OPTION_BOOL, 0},
    {"flush_period", "100ms", "longest time that CUPTI holds finished records back", "ns", "1000000..60000000000",
     SONDE_OPTION_TIME, 0},
    {"late_after", "1s", "a record that began this long before a flush is promised not to follow it; see README", "ns",
     "1000000..3600000000000", SONDE_OPTION_TIME, 0},
    {"budget", "0", "greatest slow-down of the program: collect in windows chosen at random; 0: everything", "1",
     "0..1", SONDE_OPTION_F64, 0},
    {"budget_slot", "20ms", "shortest time that is collected or left out under a budget", "ns", "1000000..10000000000",
     SONDE_OPTION_TIME, 0},
    {"cupti", "", "file or folder of libcupti; empty: SONDE_CUPTI_PATH, then the usual places", "", "",
     SONDE_OPTION_TEXT, 0},
};

PortOptions read_options(const sonde_config_t *config) {
  PortOptions options;
  const OptionReader reader(config);
  std::string graphs = "node";
  std::string clock = "stamp";
  reader.read("api", options.api);
  reader.read("launches", options.launches);
  reader.read("memory", options.memory);
  reader.read("sync", options.sync);
  reader.read("nvtx", options.nvtx);
  reader.read("graphs", graphs);
  reader.read("managed", options.managed);
  reader.read("objects", options.objects);
  reader.read("clock", clock);
  reader.read_number("buffer_bytes", options.collector.buffer_bytes);
  reader.read_number("pool_bytes", options.collector.pool_bytes);
  reader.read("prepare_buffers", options.collector.prepare_buffers);
  reader.read_time("flush_period", options.collector.flush_period_ns);
  reader.read_time("late_after", options.late_after_ns);
  reader.read_real("budget", options.budget);
  reader.read_time("budget_slot", options.collector.slot_ns);
  reader.read("cupti", options.collector.cupti);
  options.graph_nodes = graphs != "graph";
  options.collector.vendor_clock = clock == "vendor";
  return options;
}

Port *port_of(void *instance) { return static_cast<Port *>(instance); }

sonde_status create(sonde_session_t *session, const sonde_config_t *options, void **instance) {
  *instance = nullptr;
  return guarded("cuda", [&] {
    *instance = new Port(session, read_options(options));
    return SONDE_OK;
  });
}

sonde_status start(void *instance) {
  return guarded("cuda", [&] { return port_of(instance)->start(); });
}

sonde_status demand(void *instance) {
  return guarded("cuda", [&] { return port_of(instance)->demand(); });
}

sonde_status flush(void *instance, uint32_t forced) {
  return guarded("cuda", [&] { return port_of(instance)->flush(forced != 0); });
}

sonde_status stop(void *instance) {
  return guarded("cuda", [&] { return port_of(instance)->stop(); });
}

void destroy(void *instance) {
  if (instance == nullptr) return;
  stop(instance);
  delete port_of(instance);
}

sonde_status entry(uint32_t which, void *argument) {
  switch (which) {
    case SONDE_ENTRY_CUDA_INJECTION:
      return SONDE_OK;  // the port collects from its start on
    case SONDE_ENTRY_NVTX_INJECTION:
      return guarded("cuda", [&] { return nvtx::inject(reinterpret_cast<nvtx::GetExportTable>(argument)); });
    default:
      return SONDE_E_UNIMPLEMENTED;
  }
}

constexpr sonde_port_t kPort = {sizeof(sonde_port_t), 0, create, start, demand, flush, stop, destroy, entry};

const void *get_interface(const char *id) { return std::strcmp(id, SONDE_PORT_INTERFACE) == 0 ? &kPort : nullptr; }

}  // namespace

}  // namespace sonde::cuda

SONDE_DEFINE_PLUGIN = {
    sizeof(sonde_plugin_entry_t),
    SONDE_ABI_MAJOR,
    0,
    "cuda",
    "0.1.0",
    "CUDA through CUPTI: kernels, copies, memory, graphs, calls; and NVTX",
    "Apache-2.0",
    nullptr,
    0,
    sizeof(sonde_export_t),
    sonde::cuda::kOptions,
    static_cast<uint32_t>(std::size(sonde::cuda::kOptions)),
    sizeof(sonde_option_t),
    sonde::cuda::fetch_services,
    nullptr,
    sonde::cuda::get_interface,
};
