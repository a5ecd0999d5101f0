// Entry of the plugin `cuda_sampling`: its options and the interface sonde.port/1.
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <sonde/export.h>
#include <sonde/plugin.h>
#include <sonde/port.h>
#include <sonde/toolkit/cubin_lines.h>

#include "common/entry.h"
#include "counters.h"
#include "sampling_port.h"

namespace sonde::cuda {

namespace {

constexpr sonde_option_t kOptions[] = {
    {"mode", "continuous",
     "continuous: kernels run as they would; ranges: continuous, switched on and off by `on` and `off`; serialized: "
     "one kernel at a time, samples carry the launch",
     "", "continuous|ranges|serialized", SONDE_OPTION_TEXT, 0},
    {"period", "16", "a sample every 2^n cycles of a multiprocessor, n from 5 to 31; 0: CUPTI's choice", "", "0..31",
     SONDE_OPTION_I64, 0},
    {"on", "100ms", "mode ranges: how long sampling is on, to the next launch", "ns", "1000000..60000000000",
     SONDE_OPTION_TIME, 0},
    {"off", "0ms", "mode ranges: how long it is off; 0: never off", "ns", "0..60000000000", SONDE_OPTION_TIME, 0},
    {"drain_period", "20ms", "mode continuous: how often samples are taken out of CUPTI's hands", "ns",
     "1000000..60000000000", SONDE_OPTION_TIME, 0},
    {"hardware_bytes", "0", "size of the hardware's buffer; 0: CUPTI's choice (512 MiB)", "bytes", "0..8589934592",
     SONDE_OPTION_I64, 0},
    {"scratch_bytes", "0", "size of CUPTI's buffer of decoded samples; 0: CUPTI's choice (1 MiB)", "bytes",
     "0..4294967296", SONDE_OPTION_I64, 0},
    {"pcs_per_copy", "2048", "instructions that one read takes at most", "", "64..1048576", SONDE_OPTION_I64, 0},
    {"code", "true", "store each loaded code object once", "", "", SONDE_OPTION_BOOL, 0},
    {"code_bytes", "512Mi", "most memory for code objects; those beyond it have no source lines", "bytes",
     "0..68719476736", SONDE_OPTION_I64, 0},
    {"lines", "true", "record the source line of each sampled instruction, where its code has line tables", "", "",
     SONDE_OPTION_BOOL, 0},
    {"beside_activity", "false",
     "mode continuous: sample while the port `cuda` traces; give that one `objects: false`, CUPTI has one subscription",
     "", "", SONDE_OPTION_BOOL, 0},
    {"metrics", "[]",
     "count these metrics for each kernel launch instead of sampling, by CUPTI's full names: "
     "[sm__cycles_elapsed.max, dram__bytes_read.sum]; kernels are repeated and serialised",
     "", "", SONDE_OPTION_TEXTS, 0},
    {"cupti", "", "file or folder of libcupti; empty: SONDE_CUPTI_PATH, then the usual places", "", "",
     SONDE_OPTION_TEXT, 0},
};

// The frames of an instruction, "file:line@function" each, innermost first, separated by " < "; "" when it has none.
// [any]
sonde_status source_of(const char *file, const char *function, uint64_t pc, const char **out) {
  thread_local std::string text;
  text.clear();
  return guarded("cuda_sampling", [&] {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return services().host->set_error(SONDE_E_IO, (std::string(file) + ": cannot be read").c_str());
    const std::vector<uint8_t> image(std::istreambuf_iterator<char>(stream), {});
    std::string error;
    const auto lines = toolkit::CubinLines::read(image, error);
    if (!lines) return services().host->set_error(SONDE_E_PARSE, (std::string(file) + ": " + error).c_str());
    for (const toolkit::SourceFrame &frame : lines->find(function, pc)) {
      text += (text.empty() ? "" : " < ") + toolkit::frame_text(frame);
    }
    *out = text.c_str();
    return SONDE_OK;
  });
}

const sonde_export_t kExports[] = {
    SONDE_EXPORT(source_of, status, (text, text, u64, out_text),
                 "source of an instruction of a code object's file: file, function, offset in the function"),
};

SamplingPortOptions read_options(const sonde_config_t *config) {
  SamplingPortOptions options;
  const OptionReader reader(config);
  std::string mode = "continuous";
  reader.read("mode", mode);
  if (mode == "ranges") options.sampler.mode = SamplingMode::kRanges;
  if (mode == "serialized") options.sampler.mode = SamplingMode::kSerialized;
  reader.read_number("period", options.sampler.period_log2);
  reader.read_time("on", options.sampler.on_ns);
  reader.read_time("off", options.sampler.off_ns);
  reader.read_time("drain_period", options.sampler.drain_period_ns);
  reader.read_number("hardware_bytes", options.sampler.hardware_bytes);
  reader.read_number("scratch_bytes", options.sampler.scratch_bytes);
  reader.read_number("pcs_per_copy", options.sampler.pcs_per_copy);
  reader.read("code", options.code);
  reader.read_number("code_bytes", options.sampler.code_bytes);
  reader.read("lines", options.lines);
  reader.read("beside_activity", options.sampler.beside_activity);
  reader.read("cupti", options.sampler.cupti);
  return options;
}

std::vector<std::string> read_metrics(const sonde_config_t *config) {
  std::vector<std::string> metrics;
  uint64_t count = 0;
  if (config == nullptr || services().config->count(config, "metrics", &count) != SONDE_OK) return metrics;
  for (uint64_t i = 0; i < count; ++i) {
    const char *text = nullptr;
    const std::string path = "metrics." + std::to_string(i);
    if (services().config->get_text(config, path.c_str(), &text) == SONDE_OK) metrics.emplace_back(text);
  }
  return metrics;
}

// An instance samples or counts: the two exclude each other in a process.
struct Instance {
  std::unique_ptr<SamplingPort> sampling;
  Counters *counters = nullptr;  // never deleted, see counters.h
};

Instance &instance_of(void *instance) { return *static_cast<Instance *>(instance); }

sonde_status create(sonde_session_t *session, const sonde_config_t *options, void **instance) {
  *instance = nullptr;
  return guarded("cuda_sampling", [&] {
    SamplingPortOptions read = read_options(options);
    if (read.sampler.period_log2 != 0 && read.sampler.period_log2 < 5) {
      return services().host->set_error(SONDE_E_INVALID, "cuda_sampling: period must be 0 or 5 to 31");
    }
    auto made = std::make_unique<Instance>();
    std::vector<std::string> metrics = read_metrics(options);
    if (metrics.empty()) {
      made->sampling = std::make_unique<SamplingPort>(session, std::move(read));
    } else {
      made->counters = new Counters(session, std::move(metrics), read.sampler.cupti);
    }
    *instance = made.release();
    return SONDE_OK;
  });
}

sonde_status start(void *instance) {
  return guarded("cuda_sampling", [&] {
    Instance &one = instance_of(instance);
    return one.counters != nullptr ? one.counters->start() : one.sampling->start();
  });
}

sonde_status demand(void *instance) {
  return guarded("cuda_sampling", [&] {
    Instance &one = instance_of(instance);
    return one.counters != nullptr ? one.counters->demand() : one.sampling->demand();
  });
}

sonde_status flush(void *instance, uint32_t forced) {
  (void)forced;
  return guarded("cuda_sampling", [&] {
    Instance &one = instance_of(instance);
    return one.counters != nullptr ? SONDE_OK : one.sampling->flush();  // counters are emitted at each launch
  });
}

sonde_status stop(void *instance) {
  return guarded("cuda_sampling", [&] {
    Instance &one = instance_of(instance);
    return one.counters != nullptr ? one.counters->stop() : one.sampling->stop();
  });
}

void destroy(void *instance) {
  if (instance == nullptr) return;
  stop(instance);
  delete static_cast<Instance *>(instance);
}

sonde_status entry(uint32_t which, void *argument) {
  (void)argument;
  // The port samples from its start on.
  return which == SONDE_ENTRY_CUDA_INJECTION ? SONDE_OK : SONDE_E_UNIMPLEMENTED;
}

constexpr sonde_port_t kPort = {sizeof(sonde_port_t), 0, create, start, demand, flush, stop, destroy, entry};

const void *get_interface(const char *id) { return std::strcmp(id, SONDE_PORT_INTERFACE) == 0 ? &kPort : nullptr; }

}  // namespace

}  // namespace sonde::cuda

SONDE_DEFINE_PLUGIN = {
    sizeof(sonde_plugin_entry_t),
    SONDE_ABI_MAJOR,
    0,
    "cuda_sampling",
    "0.1.0",
    "CUDA through CUPTI: sampled instructions with stall reasons and source lines, hardware counters",
    "Apache-2.0",
    sonde::cuda::kExports,
    static_cast<uint32_t>(std::size(sonde::cuda::kExports)),
    sizeof(sonde_export_t),
    sonde::cuda::kOptions,
    static_cast<uint32_t>(std::size(sonde::cuda::kOptions)),
    sizeof(sonde_option_t),
    sonde::cuda::fetch_services,
    nullptr,
    sonde::cuda::get_interface,
};
