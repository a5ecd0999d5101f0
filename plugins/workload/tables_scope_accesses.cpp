// Tables of operators, layers and phases: what the kernels inside did to memory.
#include <map>

#include "tables_access.h"

namespace sonde::workload {
namespace {

class ScopeAccessTables : public AccessTablePublisher {
 public:
  using AccessTablePublisher::AccessTablePublisher;

  void all() {
    phases();
    const bool any = accesses().seen().launches != 0;
    if (any && !accesses().scopes().scopes().empty()) scope_accesses();
    if (any && !accesses().scopes().layers().empty()) layers();
  }

 private:
  static std::optional<int64_t> greatest(const Distribution &values) {
    return values.count() == 0 ? std::nullopt : std::optional<int64_t>(values.statistics.max());
  }
  static std::optional<double> mean(const Distribution &values) {
    return values.count() == 0 ? std::nullopt : std::optional<double>(values.statistics.mean());
  }

  void phases() {
    struct Row {
      const PhaseTime *time = nullptr;
      const PhaseRow *accesses = nullptr;
    };
    std::map<std::tuple<uint32_t, uint32_t, Phase>, Row> rows;
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, time] : source.host.phases()) rows[{id, std::get<0>(key), std::get<1>(key)}].time = &time;
    }
    for (const auto &[key, row] : accesses().scopes().phases()) rows[key].accesses = &row;
    // Without a framework that tells phases, all is `other`: no news.
    const bool any = std::any_of(rows.begin(), rows.end(),
                                 [](const auto &entry) { return std::get<2>(entry.first) != Phase::kOther; });
    if (!any) return;
    Table result = table("phases", "Phases",
                         "Forward: launched inside operators that may make autograd nodes; backward: inside those that "
                         "run them; optimizer: inside scopes named by optimizer_scopes; other: the rest.");
    result.u64("device", "1", "the runtime's number", kKey)
        .text("phase", "", kKey)
        .u64("kernels", "1", "whose launching call is known; empty where calls were not recorded")
        .i64("device_time", "ns", "sum of their lengths", kDown)
        .u64("launches", "1", "by records of accesses, watched or not; empty without", kHidden)
        .u64("accesses", "1", "thread accesses to global memory")
        .u64("read", "bytes", "that threads asked to read")
        .u64("written", "bytes", "that threads asked to write")
        .f64("mean_working_set", "bytes", "of a launch: bytes of the allocations that it touched", kHidden)
        .i64("working_set", "bytes", "the greatest of any launch")
        .i64("tensor_working_set", "bytes", "likewise of tensors", kHidden)
        .create();
    for (const auto &[key, row] : rows) {
      const auto &[source, device, phase] = key;
      const auto time = [&](auto value) { return row.time == nullptr ? Cell(std::nullopt) : Cell(value); };
      const auto access = [&](auto value) { return row.accesses == nullptr ? Cell(std::nullopt) : Cell(value); };
      static const PhaseRow kNone(0);
      const PhaseRow &found = row.accesses == nullptr ? kNone : *row.accesses;
      result.row({process(source), source, device, phase_name(static_cast<uint32_t>(phase)),
                  time(row.time == nullptr ? 0 : row.time->kernels),
                  time(row.time == nullptr ? 0 : row.time->device_ns), access(found.sums.launches),
                  access(found.sums.accesses), access(found.sums.read_bytes), access(found.sums.write_bytes),
                  mean(found.objects[0]), greatest(found.objects[0]), greatest(found.objects[1])});
    }
  }

  void scope_accesses() {
    Table result = table("scope_accesses", "Memory of scopes and operators",
                         "What the kernels launched inside a scope did to memory; inner scopes count for outer ones.");
    constexpr std::array kKinds = {"scope", "operator", "range", "mark"};
    result.text("scope", "name", kKey)
        .text("domain", "who says so", kKey | kHidden)
        .text("kind", "scope or operator", kKey)
        .u64("runs", "1", "times it was open with a launch inside")
        .u64("launches", "1", "inside, watched or not")
        .u64("self_launches", "1", "of these, those with it as the innermost", kHidden)
        .u64("accesses", "1", "thread accesses to global memory")
        .u64("read", "bytes", "that threads asked to read")
        .u64("written", "bytes", "that threads asked to write", kDown)
        .f64("working_set", "bytes",
             "bytes of the different allocations that the launches of one run touched, mean over runs")
        .i64("max_working_set", "bytes", "greatest of any run", kHidden)
        .f64("tensor_working_set", "bytes", "likewise of tensors, mean")
        .i64("max_tensor_working_set", "bytes", "", kHidden)
        .create();
    std::vector<std::pair<ScopeKey, const ScopeAccessRow *>> rows;
    for (const auto &[key, row] : accesses().scopes().scopes()) {
      if (row.sums.launches != 0) rows.emplace_back(key, &row);
    }
    std::stable_sort(rows.begin(), rows.end(), [&](const auto &a, const auto &b) {
      const uint64_t x = a.second->sums.read_bytes + a.second->sums.write_bytes;
      const uint64_t y = b.second->sums.read_bytes + b.second->sums.write_bytes;
      if (x != y) return x > y;
      return workload_.text(a.first.name) < workload_.text(b.first.name);
    });
    for (const auto &[key, row] : rows) {
      result.row({process(key.source), key.source, workload_.text(key.name), workload_.text(key.domain),
                  kKinds[static_cast<size_t>(key.kind)], row->runs, row->sums.launches, row->self_launches,
                  row->sums.accesses, row->sums.read_bytes, row->sums.write_bytes, mean(row->objects[0]),
                  greatest(row->objects[0]), mean(row->objects[1]), greatest(row->objects[1])});
    }
  }

  void layers() {
    Table result = table("layers", "Layers",
                         "Scopes of layer_domain: what the kernels of their forward and of their backward pass did to "
                         "memory. A backward operator belongs to the layer that made its autograd node.");
    result.text("layer", "name of the module's scope", kKey)
        .u64("forward_launches", "1", "")
        .u64("forward_accesses", "1", "thread accesses to global memory", kHidden)
        .u64("forward_bytes", "bytes", "that threads asked to read or write", kDown)
        .u64("backward_launches", "1", "")
        .u64("backward_accesses", "1", "", kHidden)
        .u64("backward_bytes", "bytes", "")
        .create();
    struct Row {
      uint32_t source;
      const std::string *name;
      const LayerRow *row;
    };
    const auto bytes = [](const AccessSums &sums) { return sums.read_bytes + sums.write_bytes; };
    std::vector<Row> rows;
    for (const auto &[key, row] : accesses().scopes().layers()) {
      if (row.forward.launches + row.backward.launches == 0) continue;
      rows.push_back({std::get<0>(key), &workload_.text(std::get<1>(key)), &row});
    }
    std::sort(rows.begin(), rows.end(), [&](const Row &a, const Row &b) {
      const uint64_t x = bytes(a.row->forward) + bytes(a.row->backward);
      const uint64_t y = bytes(b.row->forward) + bytes(b.row->backward);
      return x != y ? x > y : std::tie(*a.name, a.source) < std::tie(*b.name, b.source);
    });
    for (const Row &row : rows) {
      result.row({process(row.source), row.source, *row.name, row.row->forward.launches, row.row->forward.accesses,
                  bytes(row.row->forward), row.row->backward.launches, row.row->backward.accesses,
                  bytes(row.row->backward)});
    }
  }
};

}  // namespace

void publish_scope_access_tables(const Workload &workload, const Host &host, sonde_session_t *session) {
  ScopeAccessTables(workload, host, session).all();
}

}  // namespace sonde::workload
