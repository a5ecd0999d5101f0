// Tables of instructions: coalescing and bank conflicts.
#include "tables_access.h"

namespace sonde::workload {
namespace {

std::string access_name(uint32_t access) {
  const uint32_t kind = access & 3u;
  return kind == 3 ? "atomic" : kind == 2 ? "write" : (access & 8u) != 0 ? "prefetch" : "read";
}

class InstructionTables : public AccessTablePublisher {
 public:
  using AccessTablePublisher::AccessTablePublisher;

  void all() {
    if (accesses().instructions().kernels().empty()) return;
    units("coalescing", "Coalescing of kernels",
          "Sectors of 32 bytes that warps touched in global memory, against the fewest that the same bytes fit in.",
          "sectors", "least_sectors", &KernelUnits::global);
    units("bank_conflicts", "Shared-memory bank conflicts of kernels",
          "Passes over the banks of shared memory (wavefronts) that warp accesses took, against the fewest possible.",
          "wavefronts", "least_wavefronts", &KernelUnits::shared);
    instructions();
  }

 private:
  void units(const char *name, const char *title, const char *help, const char *unit, const char *least,
             UnitSums KernelUnits::*member) {
    Table result = table(name, title, help);
    kernel_columns(result)
        .u64("launches", "1", "with instruction records")
        .u64("warp_accesses", "1", "accesses of warps", kHidden)
        .u64("bytes", "bytes", "that threads asked for", kHidden)
        .u64(unit, "1", "taken")
        .u64(least, "1", "fewest possible")
        .f64("ratio", "1", "taken / fewest; 1: as good as can be")
        .u64("excess", "1", "taken - fewest", kDown)
        .f64("per_access", "1", "taken by one access of a warp, mean", kHidden)
        .create();
    const auto rows = by_weight(accesses().instructions().kernels(),
                                [member](const KernelUnits &row) { return (row.*member).excess(); });
    for (const auto &[key, row] : rows) {
      const UnitSums &sums = row->*member;
      if (sums.warps == 0) continue;
      result.row({process(key.source), key.source, short_name(key.name), workload_.text(key.name), key.device,
                  row->launches, sums.warps, sums.bytes, sums.units, sums.least_units, sums.ratio(), sums.excess(),
                  ratio_of(sums.units, sums.warps)});
    }
  }

  void instructions() {
    Table result = table("memory_instructions", "Instructions that access memory",
                         "One row for each instruction. Units are sectors in global memory, wavefronts in shared "
                         "memory.");
    kernel_columns(result)
        .text("offset", "bytes from the function's begin; its address where that is not known", kKey)
        .text("memory", "global or shared", kKey)
        .text("access", "read, write, atomic or prefetch", kKey)
        .u64("size", "bytes", "of a thread's access", kKey | kHidden)
        .u64("threads", "1", "thread accesses")
        .u64("warps", "1", "warp accesses", kHidden)
        .u64("units", "1", "taken")
        .u64("least_units", "1", "fewest possible", kHidden)
        .f64("ratio", "1", "taken / fewest")
        .u64("excess", "1", "taken - fewest", kDown)
        .create();
    std::vector<std::pair<InstructionKey, const UnitSums *>> rows;
    for (const auto &[key, sums] : accesses().instructions().instructions()) rows.emplace_back(key, &sums);
    std::sort(rows.begin(), rows.end(), [&](const auto &a, const auto &b) {
      if (a.second->excess() != b.second->excess()) return a.second->excess() > b.second->excess();
      const int order = workload_.text(a.first.kernel.name).compare(workload_.text(b.first.kernel.name));
      return order != 0 ? order < 0 : a.first < b.first;
    });
    for (const auto &[key, sums] : rows) {
      const std::string offset = hexadecimal(key.offset), access = access_name(key.access);
      result.row({process(key.kernel.source), key.kernel.source, short_name(key.kernel.name),
                  workload_.text(key.kernel.name), key.kernel.device, offset,
                  key.memory == kSharedMemory ? "shared" : "global", access, key.size, sums->threads, sums->warps,
                  sums->units, sums->least_units, sums->ratio(), sums->excess()});
    }
  }
};

}  // namespace

void publish_instruction_tables(const Workload &workload, const Host &host, sonde_session_t *session) {
  InstructionTables(workload, host, session).all();
}

}  // namespace sonde::workload
