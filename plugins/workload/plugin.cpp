// The workload analysis as a plugin.
#include <sonde/plugin.h>
#include <sonde/sonde.hpp>

#include <array>
#include <string>
#include <vector>

#include "options.h"
#include "publish.h"
#include "workload.h"

namespace {

using sonde::workload::HotObject;
using sonde::workload::KernelTraffic;
using sonde::workload::TopKernel;
using sonde::workload::Workload;

sonde::workload::Options parsed(const sonde::Session &session, const sonde::Config &config) {
  sonde::workload::Options options = sonde::workload::read_options(config);
  sonde::workload::read_trees(session.host(), config, options);
  return options;
}

class Analysis {
 public:
  Analysis(sonde::Session session, sonde::Config options)
      : session_(std::move(session)), workload_(parsed(session_, options), [this](uint32_t source, sonde_string_t id) {
          const char *text = nullptr;
          const auto &capture = session_.host().service<sonde_capture_service_t>();
          return capture.text(session_.get(), source, id, &text) == SONDE_OK ? text : nullptr;
        }) {}

  void start() {
    std::vector<sonde_interest_t> interests = {
        sonde::only(SONDE_SPACE_SESSION, {SONDE_SESSION_START, SONDE_SESSION_WINDOW}), sonde::every(SONDE_SPACE_HOST),
        sonde::only(SONDE_SPACE_DEVICE,
                    {SONDE_DEVICE_KERNEL, SONDE_DEVICE_COPY, SONDE_DEVICE_SET, SONDE_DEVICE_GRAPH_LAUNCH}),
        sonde::only(SONDE_SPACE_MEMORY, {SONDE_MEMORY_ALLOCATE, SONDE_MEMORY_FREE, SONDE_MEMORY_POOL_CREATE,
                                         SONDE_MEMORY_POOL_DESTROY, SONDE_MEMORY_POOL_TRIM, SONDE_MEMORY_SUB_ALLOCATE,
                                         SONDE_MEMORY_SUB_FREE, SONDE_MEMORY_MAP, SONDE_MEMORY_UNMAP}),
        sonde::only(SONDE_SPACE_OBJECT, {SONDE_OBJECT_NAME, SONDE_OBJECT_DEVICE, SONDE_OBJECT_GRAPH}),
        sonde::every(SONDE_SPACE_FRAMEWORK),
        // Launches and transfers alone patch nothing; with them come the other accesses that a capture holds.
        sonde::only(SONDE_SPACE_ACCESS, {SONDE_ACCESS_LAUNCH, SONDE_ACCESS_TRANSFER}),
        sonde::only(SONDE_SPACE_SAMPLE, {SONDE_SAMPLE_COUNTER})};
    struct Level {
      uint32_t type, level;
    };
    for (const Level wanted :
         {Level{SONDE_ACCESS_OBJECT, SONDE_LEVEL_OBJECT_SUMMARY}, Level{SONDE_ACCESS_PAGES, SONDE_LEVEL_PAGE_SUMMARY},
          Level{SONDE_ACCESS_INTERVALS, SONDE_LEVEL_INTERVALS}, Level{SONDE_ACCESS_INSTRUCTION, SONDE_LEVEL_RECORDS},
          Level{SONDE_ACCESS_WARPS, SONDE_LEVEL_RECORDS}}) {
      if ((workload_.options().access_types >> wanted.type & 1) == 0) continue;
      interests.push_back({SONDE_SPACE_ACCESS, wanted.level, uint64_t{1} << wanted.type});
    }
    subscription_ = session_.subscribe("workload", interests,
                                       [this](const sonde::Batch &batch) { workload_.consume(batch.raw()); });
  }

  void finish() {
    subscription_.reset();
    workload_.finish();
    sonde::workload::publish_tables(workload_, session_.host(), session_.get());
    sonde::workload::publish_findings(workload_, session_.host(), session_.get());
    sonde::workload::write_pictures(workload_, session_.host());
  }

  const Workload &workload() const { return workload_; }

 private:
  sonde::Session session_;
  Workload workload_;
  sonde::Subscription subscription_;  // last: it ends before what its handler uses
};

using Plugin = sonde::AnalysisPlugin<Analysis>;

sonde_status kernel_count(sonde_session_t *session, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.workload().kernel_count(); });
}

sonde_status total_kernel_time(sonde_session_t *session, int64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.workload().kernel_ns(); });
}

sonde_status device_idle_share(sonde_session_t *session, uint32_t device, double *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.workload().idle_share(device); });
}

sonde_status peak_bytes(sonde_session_t *session, uint32_t device, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.workload().peak_bytes(device); });
}

sonde_status working_set_bytes(sonde_session_t *session, uint32_t device, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.workload().working_set(device); });
}

sonde_status footprint_bytes(sonde_session_t *session, uint32_t device, uint64_t *out) {
  return Plugin::with(session, [&](const Analysis &analysis) { *out = analysis.workload().footprint(device); });
}

// Calls back with each row on the caller's thread; an error of the callback ends the list and is returned.
template <typename Row, typename Cells>
sonde_status each(sonde_session_t *session, std::vector<Row> (Workload::*rows)(uint64_t) const, uint64_t limit,
                  sonde_callback_t callback, void *user, sonde_drop_user_t drop_user, Cells &&cells) {
  sonde_status answer = SONDE_OK;
  const sonde_status status = Plugin::with(session, [&](const Analysis &analysis) {
    for (const Row &row : (analysis.workload().*rows)(limit)) {
      const auto values = cells(row);
      answer = callback(user, values.data(), values.size(), nullptr);
      if (answer < 0) break;
    }
  });
  if (drop_user != nullptr) drop_user(user);
  if (status < 0) return status;
  return answer == SONDE_E_STOP ? SONDE_OK : answer;
}

sonde_status hot_objects(sonde_session_t *session, uint64_t limit, sonde_callback_t callback, void *user,
                         sonde_drop_user_t drop_user) {
  return each(session, &Workload::hot_objects, limit, callback, user, drop_user, [](const HotObject &row) {
    return std::array{sonde::Cell(row.name).value(), sonde::Cell(row.address).value(), sonde::Cell(row.bytes).value(),
                      sonde::Cell(row.accesses).value()};
  });
}

sonde_status kernel_traffic(sonde_session_t *session, uint64_t limit, sonde_callback_t callback, void *user,
                            sonde_drop_user_t drop_user) {
  return each(session, &Workload::kernel_traffic, limit, callback, user, drop_user, [](const KernelTraffic &row) {
    return std::array{sonde::Cell(row.name).value(), sonde::Cell(row.launches).value(),
                      sonde::Cell(row.accesses).value(), sonde::Cell(row.bytes).value()};
  });
}

// Calls back once for each kernel name on the caller's thread; an error of the callback ends the list and is returned.
sonde_status top_kernels(sonde_session_t *session, uint64_t limit, sonde_callback_t callback, void *user,
                         sonde_drop_user_t drop_user) {
  sonde_status answer = SONDE_OK;
  const sonde_status status = Plugin::with(session, [&](const Analysis &analysis) {
    const std::vector<TopKernel> rows = analysis.workload().top_kernels(limit);
    const double whole = static_cast<double>(analysis.workload().kernel_ns());
    for (const TopKernel &row : rows) {
      const double share = whole > 0 ? static_cast<double>(row.total_ns) / whole : 0;
      const sonde_value_t arguments[] = {sonde::Cell(row.name).value(), sonde::Cell(row.count).value(),
                                         sonde::Cell(row.total_ns).value(), sonde::Cell(share).value()};
      answer = callback(user, arguments, 4, nullptr);
      if (answer < 0) break;
    }
  });
  if (drop_user != nullptr) drop_user(user);
  if (status < 0) return status;
  return answer == SONDE_E_STOP ? SONDE_OK : answer;
}

const sonde_export_t exports[] = {
    SONDE_EXPORT(kernel_count, status, (session, out_u64), "kernels that ran so far, over all devices and processes"),
    SONDE_EXPORT(total_kernel_time, status, (session, out_i64), "sum of the lengths of the kernels so far, ns"),
    SONDE_EXPORT(device_idle_share, status, (session, u32, out_f64),
                 "part of a device's span in which it ran nothing, 0 to 1"),
    SONDE_EXPORT(peak_bytes, status, (session, u32, out_u64),
                 "most bytes allocated on a device at one time, of any one process"),
    SONDE_EXPORT(working_set_bytes, status, (session, u32, out_u64),
                 "most bytes of objects that one launch on a device touched, of any one process"),
    SONDE_EXPORT(footprint_bytes, status, (session, u32, out_u64),
                 "most bytes alive on a device at one time while accesses were followed"),
    SONDE_EXPORT(hot_objects, status, (session, u64, callback),
                 "calls back with name, address, bytes and accesses of the most accessed allocations that have ended"),
    SONDE_EXPORT(kernel_traffic, status, (session, u64, callback),
                 "calls back with name, watched launches, accesses and requested bytes of the kernels with the most"),
    SONDE_EXPORT(top_kernels, status, (session, u64, callback),
                 "calls back with name, count, total ns and share of the kernels with the most time"),
};

}  // namespace

SONDE_DEFINE_PLUGIN = {
    .struct_size = sizeof(sonde_plugin_entry_t),
    .abi_major = SONDE_ABI_MAJOR,
    .abi_minor_required = 0,
    .id = "workload",
    .version = "0.1.0",
    .summary = "kernels, calls, copies, idle time, memory, accesses and scopes of a run, with findings",
    .license = "Apache-2.0",
    .exports = exports,
    .export_count = sizeof(exports) / sizeof(exports[0]),
    .export_stride = sizeof(sonde_export_t),
    .options = sonde::workload::kOptionSpecs,
    .option_count = sonde::workload::kOptionCount,
    .option_stride = sizeof(sonde_option_t),
    .init = &Plugin::init,
    .shutdown = nullptr,
    .get_interface = &Plugin::get_interface,
};
