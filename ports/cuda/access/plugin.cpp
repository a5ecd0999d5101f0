// Entry of the plugin `cuda_access`: its options and the interface sonde.port/1.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include <sonde/plugin.h>
#include <sonde/port.h>

#include "common/entry.h"
#include "port.h"

namespace sonde::cuda::access {

namespace {

constexpr char kId[] = "cuda_access";

constexpr sonde_option_t kOptions[] = {
    {"collect", "objects",
     "what may be collected where a session wants it, separated by commas: objects, pages, intervals, instructions, "
     "records, values, check, events; or nothing but launches: none",
     "", "", SONDE_OPTION_TEXT, 0},
    {"kernels", "", "watch kernels whose name has one of these parts, separated by commas; !part leaves out", "", "",
     SONDE_OPTION_TEXT, 0},
    {"kernel_period", "1", "watch the first launch of each kernel, then one of so many; the code is unpatched between",
     "", "1..1000000", SONDE_OPTION_I64, 0},
    {"block_period", "1", "watch one block of so many", "", "1..1000000", SONDE_OPTION_I64, 0},
    {"page_bytes", "4096", "size of a page in histograms; a power of two", "bytes", "4096..2097152", SONDE_OPTION_I64,
     0},
    {"when_full", "stall", "where there is no room for a launch or its records: wait, or drop and count", "",
     "stall|drop", SONDE_OPTION_TEXT, 0},
    {"state_bytes", "512Mi", "most device memory for what launches count", "bytes", "1048576..68719476736",
     SONDE_OPTION_I64, 0},
    {"interval_bytes", "1Gi", "device memory for a launch's map of touched bytes, half of what it can touch", "bytes",
     "1048576..68719476736", SONDE_OPTION_I64, 0},
    {"record_bytes", "512Mi", "device memory for records on their way", "bytes", "1048576..68719476736",
     SONDE_OPTION_I64, 0},
    {"record_threads", "3", "threads that carry records to the host", "", "1..32", SONDE_OPTION_I64, 0},
    {"patch", "full",
     "for measurements: the same instructions patched with a function that does nothing, or with one "
     "atomic operation a warp access",
     "", "full|empty|naive", SONDE_OPTION_TEXT, 0},
    {"sanitizer", "", "file or folder of libsanitizer-public.so; empty: SONDE_SANITIZER_PATH, then the usual places",
     "", "", SONDE_OPTION_TEXT, 0},
    {"device_code", "", "folder of the port's device code; empty: beside the plugin", "", "", SONDE_OPTION_TEXT, 0},
};

std::vector<std::string> words(const std::string &text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    size_t from = begin;
    size_t to = end;
    while (from < to && text[from] == ' ') ++from;
    while (to > from && text[to - 1] == ' ') --to;
    if (from != to) out.push_back(text.substr(from, to - from));
    begin = end + 1;
  }
  return out;
}

// 0 and a message in `error` for a word that is no feature.
uint32_t features_of(const std::string &text, std::string &error) {
  static constexpr struct {
    const char *word;
    uint32_t bits;
  } kWords[] = {{"objects", kObjects},
                {"pages", kPages},
                {"intervals", kIntervals},
                {"instructions", kInstructions},
                {"records", kRecords},
                {"values", kRecords | kValues},
                {"check", kCheck},
                {"events", kEvents},
                {"none", 0}};
  uint32_t out = 0;
  for (const std::string &word : words(text)) {
    const auto *const found =
        std::find_if(std::begin(kWords), std::end(kWords), [&](const auto &known) { return word == known.word; });
    if (found == std::end(kWords)) {
      error = "cuda_access: option collect: '" + word +
              "' is none of objects, pages, intervals, instructions, records, values, check, events, none";
      return 0;
    }
    out |= found->bits;
  }
  // Both would share the blocks, whose entries have one form.
  if ((out & kEvents) != 0 && (out & kRecords) != 0) {
    error = "cuda_access: option collect: records and events cannot be collected together";
    return 0;
  }
  return out;
}

sonde_status create(sonde_session_t *session, const sonde_config_t *config, void **instance) {
  *instance = nullptr;
  return guarded(kId, [&]() -> sonde_status {
    PortOptions options;
    const OptionReader reader(config);
    std::string collect = "objects";
    std::string kernels;
    std::string when_full = "stall";
    std::string patch = "full";
    SpaceOptions &space = options.watcher.space;
    reader.read("collect", collect);
    reader.read("kernels", kernels);
    reader.read_number("kernel_period", options.limits.kernel_period);
    reader.read_number("block_period", options.limits.block_period);
    reader.read_number("page_bytes", space.page_bytes);
    reader.read("when_full", when_full);
    reader.read_number("state_bytes", space.state_bytes);
    reader.read_number("interval_bytes", space.interval_bytes);
    reader.read_number("record_bytes", space.record_bytes);
    reader.read_number("record_threads", options.watcher.record_threads);
    reader.read("patch", patch);
    reader.read("sanitizer", options.watcher.sanitizer);
    reader.read("device_code", options.watcher.folder);
    std::string error;
    options.collect = features_of(collect, error);
    if (error.empty() && (space.page_bytes & (space.page_bytes - 1)) != 0) {
      error = "cuda_access: option page_bytes: " + std::to_string(space.page_bytes) + " is no power of two";
    }
    if (!error.empty()) return services().host->set_error(SONDE_E_INVALID, error.c_str());
    space.stall = when_full != "drop";
    options.limits.floor = patch == "empty";
    options.limits.naive = patch == "naive";
    for (const std::string &word : words(kernels)) {
      if (word[0] == '!') {
        options.limits.except.push_back(word.substr(1));
      } else {
        options.limits.only.push_back(word);
      }
    }
    *instance = new Port(session, options);
    return SONDE_OK;
  });
}

Port *port_of(void *instance) { return static_cast<Port *>(instance); }

sonde_status start(void *instance) {
  return guarded(kId, [&] { return port_of(instance)->start(); });
}

sonde_status demand(void *instance) {
  return guarded(kId, [&] { return port_of(instance)->demand(); });
}

sonde_status flush(void *instance, uint32_t forced) {
  return guarded(kId, [&] { return port_of(instance)->flush(forced != 0); });
}

sonde_status stop(void *instance) {
  return guarded(kId, [&] { return port_of(instance)->stop(); });
}

void destroy(void *instance) {
  if (instance == nullptr) return;
  (void)stop(instance);
  delete port_of(instance);
}

sonde_status entry(uint32_t which, void *) {
  return which == SONDE_ENTRY_CUDA_INJECTION ? SONDE_OK : SONDE_E_UNIMPLEMENTED;
}

constexpr sonde_port_t kPort = {sizeof(sonde_port_t), 0, create, start, demand, flush, stop, destroy, entry};

const void *get_interface(const char *id) { return std::strcmp(id, SONDE_PORT_INTERFACE) == 0 ? &kPort : nullptr; }

}  // namespace

}  // namespace sonde::cuda::access

SONDE_DEFINE_PLUGIN = {
    sizeof(sonde_plugin_entry_t),
    SONDE_ABI_MAJOR,
    1,
    "cuda_access",
    "0.1.0",
    "CUDA device code through the Compute Sanitizer: accesses by object, page, interval, instruction; records; checks",
    "Apache-2.0",
    nullptr,
    0,
    sizeof(sonde_export_t),
    sonde::cuda::access::kOptions,
    static_cast<uint32_t>(std::size(sonde::cuda::access::kOptions)),
    sizeof(sonde_option_t),
    sonde::cuda::fetch_services,
    nullptr,
    sonde::cuda::access::get_interface,
};
