// Entry of the plugin `cuda_paging`: its options and the interface sonde.port/1.
#include <cstring>
#include <iterator>
#include <memory>
#include <string>

#include <sonde/plugin.h>
#include <sonde/port.h>

#include "common/entry.h"
#include "pager.h"

namespace sonde::cuda::paging {

namespace {

constexpr char kId[] = "cuda_paging";

constexpr sonde_option_t kOptions[] = {
    {"plan", "{}", "the plan itself, as the analysis `uvm` writes it; README has its form", "", "", SONDE_OPTION_TREE,
     0},
    {"plan_file", "", "file of a plan instead: a plan alone, or a run's configuration that holds one", "", "",
     SONDE_OPTION_TEXT, 0},
    {"thread", "true", "moves are asked for by a thread of the port; else by the thread that launches", "", "",
     SONDE_OPTION_BOOL, 0},
    {"slack", "16", "launches by which a planned one may come early or late, where the plan gives its occurrence", "1",
     "0..1000000", SONDE_OPTION_I64, 0},
    {"mismatches", "8", "planned launches or allocations that may differ before the plan is given up", "1",
     "0..1000000000", SONDE_OPTION_I64, 0},
    {"patience", "1s", "how long a launch waits for the port's thread without any move being made", "ns",
     "1000000..60000000000", SONDE_OPTION_TIME, 0},
    {"beside_activity", "false",
     "apply the plan while the port `cuda` traces; give that one `objects: false`, CUPTI has one subscription", "", "",
     SONDE_OPTION_BOOL, 0},
    {"cupti", "", "file or folder of libcupti; empty: SONDE_CUPTI_PATH, then the usual places", "", "",
     SONDE_OPTION_TEXT, 0},
};

struct ConfigRelease {
  void operator()(sonde_config_t *config) const { services().config->release(config); }
};

// The plan of the options, or of the file that they name. SONDE_E_INVALID with the place.
sonde_status read_plan(const sonde_config_t *options, toolkit::PagingPlan &plan) {
  const sonde_config_service_t &service = *services().config;
  std::string file;
  OptionReader(options).read("plan_file", file);
  std::unique_ptr<sonde_config_t, ConfigRelease> loaded;
  const sonde_config_t *tree = nullptr;
  uint64_t entries = 0;
  if (!file.empty()) {
    sonde_config_t *found = nullptr;
    if (const sonde_status status = service.load(file.c_str(), &found); status != SONDE_OK) return status;
    loaded.reset(found);
    if (service.child(found, "ports.cuda_paging.plan", &tree) != SONDE_OK) tree = found;
  } else if (options == nullptr || service.child(options, "plan", &tree) != SONDE_OK ||
             service.count(tree, "", &entries) != SONDE_OK || entries == 0) {
    return services().host->set_error(SONDE_E_INVALID, "cuda_paging: there is no plan; give `plan` or `plan_file`");
  }
  std::string error;
  if (toolkit::read_paging_plan(service, tree, plan, error)) return SONDE_OK;
  return services().host->set_error(SONDE_E_INVALID, ("cuda_paging: " + error).c_str());
}

sonde_status create(sonde_session_t *session, const sonde_config_t *config, void **instance) {
  *instance = nullptr;
  return guarded(kId, [&]() -> sonde_status {
    PagerOptions options;
    if (const sonde_status status = read_plan(config, options.plan); status != SONDE_OK) return status;
    const OptionReader reader(config);
    reader.read("thread", options.has_thread);
    reader.read_number("slack", options.follow.slack);
    reader.read_number("mismatches", options.follow.mismatches);
    reader.read_time("patience", options.patience_ns);
    reader.read("beside_activity", options.beside_activity);
    reader.read("cupti", options.cupti);
    *instance = new Pager(session, std::move(options));
    return SONDE_OK;
  });
}

Pager *pager_of(void *instance) { return static_cast<Pager *>(instance); }

sonde_status start(void *instance) {
  return guarded(kId, [&] { return pager_of(instance)->start(); });
}

sonde_status stop(void *instance) {
  return guarded(kId, [&] { return pager_of(instance)->stop(); });
}

void destroy(void *instance) {
  if (instance == nullptr) return;
  (void)stop(instance);
  if (!pager_of(instance)->is_abandoned()) delete pager_of(instance);
}

sonde_status entry(uint32_t which, void *) {
  return which == SONDE_ENTRY_CUDA_INJECTION ? SONDE_OK : SONDE_E_UNIMPLEMENTED;
}

constexpr sonde_port_t kPort = {sizeof(sonde_port_t), 0, create, start, nullptr, nullptr, stop, destroy, entry};

const void *get_interface(const char *id) { return std::strcmp(id, SONDE_PORT_INTERFACE) == 0 ? &kPort : nullptr; }

}  // namespace

}  // namespace sonde::cuda::paging

SONDE_DEFINE_PLUGIN = {
    sizeof(sonde_plugin_entry_t),
    SONDE_ABI_MAJOR,
    0,
    "cuda_paging",
    "0.1.0",
    "applies a plan for CUDA managed memory: prefetches, evictions and advice at planned launches",
    "Apache-2.0",
    nullptr,
    0,
    sizeof(sonde_export_t),
    sonde::cuda::paging::kOptions,
    static_cast<uint32_t>(std::size(sonde::cuda::paging::kOptions)),
    sizeof(sonde_option_t),
    sonde::cuda::fetch_services,
    nullptr,
    sonde::cuda::paging::get_interface,
};
