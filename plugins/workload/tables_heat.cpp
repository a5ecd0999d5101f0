// Tables of heat: objects, blocks, and both over time.
#include "tables_access.h"

namespace sonde::workload {
namespace {

class HeatTables : public AccessTablePublisher {
 public:
  using AccessTablePublisher::AccessTablePublisher;

  void all() {
    const Heat &heat = accesses().heat();
    using Level = toolkit::ObjectLevel;
    if (heat.objects(Level::kAllocation).size() + heat.objects(Level::kTensor).size() == 0) return;
    hot_objects();
    if (heat.blocks().size() == 0) return;
    hot_blocks();
    heat_map();
  }

 private:
  static std::optional<double> per_page(uint64_t accesses, uint64_t bytes) {
    constexpr uint64_t kPage = 4096;
    if (bytes == 0) return std::nullopt;
    return static_cast<double>(accesses) / static_cast<double>((bytes + kPage - 1) / kPage);
  }

  int64_t since_start(uint32_t source, int64_t time) const {
    const auto it = workload_.sources().find(source);
    return it == workload_.sources().end() ? time : time - it->second.first_ns;
  }

  void hot_objects() {
    Table result =
        table("hot_objects", "Hot objects",
              "The objects with the most accesses of kernels, hot_objects of each level. An address that was "
              "used again is another object.");
    result.text("level", "allocation or tensor; a tensor's accesses are its allocation's too", kKey)
        .u64("device", "1", "the runtime's number; empty: the host", kKey)
        .text("object", "its name, or its address")
        .u64("id", "1", "of its life, in order of begin", kKey | kHidden)
        .text("address", "first byte", kHidden)
        .u64("bytes", "bytes", "")
        .u64("accesses", "1", "thread accesses", kDown)
        .u64("reads", "1", "of these; all where only pages were collected", kHidden)
        .u64("writes", "1", "", kHidden)
        .u64("atomics", "1", "", kHidden)
        .u64("copies", "1", "asynchronous copies of device code", kHidden)
        .u64("requested", "bytes", "that threads asked for")
        .u64("launches", "1", "that touched it")
        .u64("host_operations", "1", "copies and sets of the host that touched it", kHidden)
        .f64("accesses_per_page", "1", "accesses / pages of 4 KiB")
        .u64("first_kernel", "1", "launches of the process before the first that touched it", kHidden)
        .u64("last_kernel", "1", "likewise the last", kHidden)
        .i64("busiest", "ns", "begin of the stretch with the most accesses, since the process's first record", kHidden)
        .i64("stretch", "ns", "its length", kHidden)
        .f64("busiest_share", "1", "of the object's accesses in that stretch", kHidden)
        .create();
    for (const toolkit::ObjectLevel level : {toolkit::ObjectLevel::kAllocation, toolkit::ObjectLevel::kTensor}) {
      for (const auto *const entry : accesses().heat().objects(level).sorted()) {
        const ObjectHeat &heat = entry->item;
        const toolkit::MemoryObject &object = heat.object;
        const auto busiest = std::max_element(heat.times.begin(), heat.times.end());
        const bool any = busiest != heat.times.end();
        const std::string name = object_name(object.name, object.address), address = hexadecimal(object.address);
        result.row({process(object.source),
                    object.source,
                    level_name(level),
                    device_cell(object.device),
                    name,
                    object.id,
                    address,
                    object.bytes,
                    heat.accesses(),
                    heat.reads,
                    heat.writes,
                    heat.atomics,
                    heat.copies,
                    heat.bytes,
                    heat.launches,
                    heat.host_operations,
                    per_page(heat.accesses(), object.bytes),
                    heat.launches == 0 ? std::nullopt : std::optional<uint64_t>(heat.first_kernel),
                    heat.launches == 0 ? std::nullopt : std::optional<uint64_t>(heat.last_kernel),
                    any ? std::optional<int64_t>(since_start(
                              object.source, heat.begin_ns + heat.width_ns * (busiest - heat.times.begin())))
                        : std::nullopt,
                    any ? std::optional<int64_t>(heat.width_ns) : std::nullopt,
                    any ? ratio_of(*busiest, heat.accesses()) : std::nullopt});
      }
    }
  }

  void hot_blocks() {
    Table result = table("hot_blocks", "Hot blocks",
                         "The blocks of allocations with the most accesses: of block_bytes where pages were collected, "
                         "else the whole allocation.");
    result.u64("device", "1", "the runtime's number", kKey)
        .text("object", "the allocation's name, or its address")
        .u64("id", "1", "of its life", kKey | kHidden)
        .text("address", "first byte of the block", kKey)
        .u64("bytes", "bytes", "of the block; blocks double where an allocation has more than object_blocks")
        .boolean("whole", "the block is the allocation: no pages were collected", kHidden)
        .u64("accesses", "1", "thread accesses", kDown)
        .f64("share", "1", "of the accesses to all allocations of the process and device")
        .f64("density", "1", "accesses a byte")
        .create();
    for (const auto *const entry : accesses().heat().blocks().sorted()) {
      const BlockHeat &block = entry->item;
      const auto total = accesses().heat().totals().find(Heat::total_key(block.source, block.device));
      const std::string name = object_name(block.name, block.object_address), address = hexadecimal(block.address);
      result.row(
          {process(block.source), block.source, device_cell(block.device), name, block.object, address, block.bytes,
           block.is_whole, entry->weight,
           total == accesses().heat().totals().end() ? std::nullopt : ratio_of(entry->weight, total->second.accesses),
           ratio_of(entry->weight, block.bytes)});
    }
  }

  void heat_map() {
    Table result = table("heat_map", "Heat map",
                         "Accesses of the hot blocks by stretch of time, at most time_bins stretches each; stretches "
                         "without accesses have no row. The option heat_map_picture draws it.");
    result.show_rows(8);
    result.u64("device", "1", "the runtime's number", kKey)
        .text("object", "the allocation's name, or its address")
        .u64("id", "1", "of its life", kKey | kHidden)
        .text("address", "first byte of the block", kKey)
        .u64("bytes", "bytes", "of the block", kHidden)
        .i64("begin", "ns", "of the stretch, since the process's first record", kKey)
        .i64("length", "ns", "of the stretch", kHidden)
        .u64("accesses", "1", "thread accesses")
        .create();
    std::vector<const BlockHeat *> blocks;
    for (const auto *const entry : accesses().heat().blocks().sorted()) blocks.push_back(&entry->item);
    std::stable_sort(blocks.begin(), blocks.end(), [](const BlockHeat *a, const BlockHeat *b) {
      return std::tie(a->source, a->device, a->address, a->object) <
             std::tie(b->source, b->device, b->address, b->object);
    });
    for (const BlockHeat *const block : blocks) {
      const std::string name = object_name(block->name, block->object_address), address = hexadecimal(block->address);
      for (size_t bin = 0; bin < block->times.size(); ++bin) {
        if (block->times[bin] == 0) continue;
        result.row({process(block->source), block->source, device_cell(block->device), name, block->object, address,
                    block->bytes,
                    since_start(block->source, block->begin_ns + block->width_ns * static_cast<int64_t>(bin)),
                    block->width_ns, block->times[bin]});
      }
    }
  }
};

}  // namespace

void publish_heat_tables(const Workload &workload, const Host &host, sonde_session_t *session) {
  HeatTables(workload, host, session).all();
}

}  // namespace sonde::workload
