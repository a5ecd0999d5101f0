// Tables of the roofline.
#include "roofline_rows.h"
#include "tables_access.h"

namespace sonde::workload {
namespace {

class RooflineTables : public AccessTablePublisher {
 public:
  using AccessTablePublisher::AccessTablePublisher;

  void all() {
    const std::vector<RooflineRow> rows = roofline_rows(workload_);
    if (rows.empty()) return;
    roofline(rows);
    if (workload_.options().ceilings.any()) ceilings();
  }

 private:
  void roofline(const std::vector<RooflineRow> &rows) {
    Table result =
        table("roofline", "Roofline",
              "Work and traffic of a launch, mean, against what the device can do (option ceilings). Work is "
              "floating-point operations, from counters or the option flops.");
    kernel_columns(result)
        .u64("launches", "1", "behind the time", kHidden)
        .u64("counted", "1", "launches behind the counters", kHidden)
        .f64("time", "ns", "of a launch, mean; empty where no kernel records are in the capture")
        .f64("time_share", "1", "of the kernel time of the device", kDown)
        .f64("operations", "1", "of all kinds")
        .text("work", "kind with the most operations", kHidden)
        .boolean("given", "the operations come from the option flops", kHidden)
        .f64("dram_bytes", "bytes", "", kHidden)
        .f64("l2_bytes", "bytes", "", kHidden)
        .f64("intensity", "1/byte", "operations / bytes of device memory")
        .f64("l2_intensity", "1/byte", "operations / bytes of L2", kHidden)
        .f64("sector_intensity", "1/byte", "operations / (32 * sectors), from instruction records", kHidden)
        .f64("requested_intensity", "1/byte", "operations / bytes that threads asked for, from records of accesses",
             kHidden)
        .f64("rate", "1/s", "operations / time")
        .f64("least_time", "ns", "max of operations / ceiling (summed over kinds) and bytes / ceiling", kHidden)
        .text("bound", "which of them is greatest: work, dram or l2")
        .f64("attained", "1", "least_time / time")
        .create();
    const auto nanoseconds = [](double seconds) {
      return seconds > 0 ? std::optional<double>(seconds * 1e9) : std::nullopt;
    };
    for (const RooflineRow &row : rows) {
      const KernelCost &cost = row.cost;
      size_t most = kWorks;
      for (size_t i = 0; i < kWorks; ++i) {
        if (cost.work[i] && (most == kWorks || *cost.work[i] > *cost.work[most])) most = i;
      }
      result.row({process(row.kernel.source),
                  row.kernel.source,
                  short_name(row.kernel.name),
                  workload_.text(row.kernel.name),
                  row.kernel.device,
                  row.launches,
                  row.counted,
                  nanoseconds(cost.seconds),
                  row.time_share,
                  row.point.operations,
                  most == kWorks ? "" : work_name(static_cast<Work>(most)),
                  cost.is_given,
                  cost.traffic[0],
                  cost.traffic[1],
                  row.point.dram_intensity,
                  row.point.l2_intensity,
                  sector_intensity(row),
                  requested_intensity(row),
                  row.point.rate,
                  nanoseconds(row.point.least_seconds),
                  bound_name(row.point.bound),
                  row.point.attained});
    }
  }

  static std::optional<double> per_byte(const std::optional<double> &operations, double bytes, uint64_t launches) {
    if (!operations || bytes <= 0 || launches == 0) return std::nullopt;
    return *operations * static_cast<double>(launches) / bytes;
  }

  std::optional<double> sector_intensity(const RooflineRow &row) const {
    const KernelUnits *const units = accesses().instructions().kernels().find(row.kernel);
    if (units == nullptr) return std::nullopt;
    return per_byte(row.point.operations, 32.0 * static_cast<double>(units->global.units), units->launches);
  }

  std::optional<double> requested_intensity(const RooflineRow &row) const {
    const WorkingSetRow *const sets = accesses().working_sets().kernels().find(row.kernel);
    if (sets == nullptr) return std::nullopt;
    return per_byte(row.point.operations, static_cast<double>(sets->read_bytes + sets->write_bytes + sets->copy_bytes),
                    sets->watched);
  }

  void ceilings() {
    Table result(host_, session_, kOrigin, "ceilings", "Ceilings", "What the device can do, as the options say.");
    result.text("ceiling", "kind of work, or level of memory", kKey)
        .f64("per_second", "1/s", "operations or bytes")
        .f64("ridge", "1/byte", "of work: intensity from which device memory is no longer the bound")
        .create();
    const Ceilings &given = workload_.options().ceilings;
    for (size_t i = 0; i < kWorks; ++i) {
      if (given.work[i] == 0) continue;
      result.row({work_name(static_cast<Work>(i)), given.work[i],
                  given.traffic[0] > 0 ? std::optional<double>(given.work[i] / given.traffic[0]) : std::nullopt});
    }
    for (size_t i = 0; i < kTraffics; ++i) {
      if (given.traffic[i] > 0) {
        result.row({traffic_name(static_cast<Traffic>(i)), given.traffic[i], std::nullopt});
      }
    }
  }
};

}  // namespace

void publish_roofline_tables(const Workload &workload, const Host &host, sonde_session_t *session) {
  RooflineTables(workload, host, session).all();
}

}  // namespace sonde::workload
