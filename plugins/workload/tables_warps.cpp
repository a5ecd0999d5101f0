// Tables from warp records: divergence of blocks, reuse by scope, patterns, heat of words.
#include <array>

#include "access_patterns.h"
#include "tables_access.h"

namespace sonde::workload {
namespace {

constexpr std::array kMemories = {"global", "shared", "local", "other"};
const char *kind_text(uint32_t kind) { return kind == 3 ? "atomic" : kind == 2 ? "write" : "read"; }

class WarpTables : public AccessTablePublisher {
 public:
  using AccessTablePublisher::AccessTablePublisher;

  void all() {
    if (accesses().warps().kernels().empty()) return;
    rows_ = by_weight(accesses().warps().kernels(), [](const WarpRow &row) { return row.accesses; });
    block_divergence();
    block_clusters();
    reuse_scopes();
    reuse_edges();
    access_patterns();
    word_heat();
  }

 private:
  void block_divergence() {
    Table result = table("block_divergence", "Divergence between blocks",
                         "How far the blocks of a launch differ in what they access, from warp records.");
    kernel_columns(result)
        .u64("launches", "1", "with warp records")
        .f64("variation", "1", "standard deviation / mean of the blocks' thread accesses, mean over launches")
        .f64("worst_variation", "1", "of the launch where it is greatest; the rest is of that launch", kDown)
        .u64("launch", "1", "its number", kHidden)
        .u64("blocks", "1", "compared")
        .u64("block_period", "1", "one block of so many was compared", kHidden)
        .u64("instructions", "1", "by which they were compared", kHidden)
        .u64("least", "1", "thread accesses of a block")
        .f64("mean", "1", "", kHidden)
        .u64("greatest", "1", "")
        .u64("exact_clusters", "1", "different vectors of accesses by instruction; 1: all blocks do the same")
        .u64("cosine_clusters", "1", "likewise, vectors with a cosine of at least divergence_cosine being one")
        .create();
    for (const auto &[key, row] : rows_) {
      const DivergenceResult &worst = row->worst;
      if (worst.blocks == 0) continue;
      result.row({process(key.source), key.source, short_name(key.name), workload_.text(key.name), key.device,
                  row->launches, row->variation_ppm.mean() * 1e-6, worst.variation, row->worst_launch, worst.blocks,
                  worst.period, worst.instructions, worst.least, worst.mean, worst.greatest, worst.exact_clusters,
                  static_cast<uint64_t>(worst.clusters.size())});
    }
  }

  void block_clusters() {
    Table result = table("block_clusters", "Clusters of blocks",
                         "Of the launch of each kernel whose blocks differ most: blocks that do about the same.");
    result.show_rows(8);
    kernel_columns(result)
        .u64("cluster", "1", "from 1, in order of the first block", kKey)
        .u64("blocks", "1", "in it")
        .u64("first_block", "1", "the least linear number, which stands for the cluster")
        .u64("accesses", "1", "thread accesses of that block")
        .u64("reads", "1", "", kHidden)
        .u64("writes", "1", "", kHidden)
        .create();
    for (const auto &[key, row] : rows_) {
      uint64_t number = 0;
      for (const BlockCluster &cluster : row->worst.clusters) {
        result.row({process(key.source), key.source, short_name(key.name), workload_.text(key.name), key.device,
                    ++number, cluster.blocks, cluster.first_block, cluster.accesses, cluster.reads, cluster.writes});
      }
    }
  }

  void reuse_scopes() {
    Table result = table("reuse_scopes", "Reuse within launches",
                         "Words of 4 bytes by who used them before: nobody, the same thread, another one of its warp, "
                         "of its block, of another block. Scaled where a part of the words was watched.");
    kernel_columns(result)
        .text("memory", "global or shared", kKey)
        .u64("words", "1", "accesses to words", kDown)
        .f64("cold", "1", "part that is the first use in the launch")
        .f64("thread", "1", "part used last by the same thread")
        .f64("warp", "1", "by another thread of the warp")
        .f64("block", "1", "by another warp of the block")
        .f64("grid", "1", "by another block; between blocks the order is that of the records")
        .u64("repeated", "1", "words that several lanes of one warp access shared, not in words", kHidden)
        .u64("word_period", "1", "one word of so many was watched, the greatest of any launch", kHidden)
        .create();
    for (const auto &[key, row] : rows_) {
      for (uint32_t memory = 0; memory < 3; ++memory) {
        ScopeWeights sums;
        uint64_t repeated = 0;
        for (const auto &[pc, node] : row->graph.nodes) {
          if (node.memory != memory) continue;
          for (size_t i = 0; i < kReuseScopes; ++i) sums.words[i] += node.in.words[i];
          repeated += node.repeated;
        }
        if (sums.total() == 0) continue;
        result.row({process(key.source), key.source, short_name(key.name), workload_.text(key.name), key.device,
                    kMemories[memory], sums.total(), sums.share(ReuseScope::kCold), sums.share(ReuseScope::kThread),
                    sums.share(ReuseScope::kWarp), sums.share(ReuseScope::kBlock), sums.share(ReuseScope::kGrid),
                    repeated, row->reuse_period});
      }
    }
  }

  void reuse_edges() {
    Table result =
        table("reuse_edges", "Reuse between instructions",
              "From the instruction that used a word last to the one that uses it again: the reuse graph of a "
              "kernel.");
    result.show_rows(8);
    kernel_columns(result)
        .text("from", "offset of the earlier instruction; empty: first use", kKey)
        .text("to", "offset of the later one", kKey)
        .text("access", "of the later one", kHidden)
        .u64("words", "1", "", kDown)
        .u64("thread", "1", "of these, used last by the same thread", kHidden)
        .u64("warp", "1", "by another thread of the warp", kHidden)
        .u64("block", "1", "by another warp of the block", kHidden)
        .u64("grid", "1", "by another block", kHidden)
        .create();
    for (const auto &[key, row] : rows_) {
      struct Row {
        std::optional<uint32_t> from;
        uint32_t to;
        ScopeWeights weights;
      };
      std::vector<Row> edges;
      for (const auto &[edge, weights] : row->graph.edges) edges.push_back({edge.from, edge.to, weights});
      for (const auto &[pc, node] : row->graph.nodes) {
        if (node.in.of(ReuseScope::kCold) == 0) continue;
        ScopeWeights cold;
        cold.words[0] = node.in.of(ReuseScope::kCold);
        edges.push_back({std::nullopt, pc, cold});
      }
      std::sort(edges.begin(), edges.end(), [](const Row &a, const Row &b) {
        const uint64_t x = a.weights.total(), y = b.weights.total();
        return x != y ? x > y : std::tie(a.to, a.from) < std::tie(b.to, b.from);
      });
      for (const Row &edge : edges) {
        const std::string from = edge.from ? hexadecimal(*edge.from) : "", to = hexadecimal(edge.to);
        result.row({process(key.source), key.source, short_name(key.name), workload_.text(key.name), key.device, from,
                    to, kind_text(row->graph.nodes.at(edge.to).kind), edge.weights.total(),
                    edge.weights.of(ReuseScope::kThread), edge.weights.of(ReuseScope::kWarp),
                    edge.weights.of(ReuseScope::kBlock), edge.weights.of(ReuseScope::kGrid)});
      }
    }
  }

  void access_patterns() {
    Table result = table("access_patterns", "Access patterns of instructions",
                         "What the reuse graph says about an instruction; thresholds are options.");
    kernel_columns(result)
        .text("offset", "of the instruction, bytes from the function's begin", kKey)
        .text("pattern", "", kKey)
        .text("strength", "low, medium or high")
        .f64("measure", "1", "the share or density that the threshold looked at")
        .text("access", "read, write or atomic")
        .text("memory", "global or shared", kHidden)
        .u64("size", "bytes", "of a thread's access", kHidden)
        .u64("words", "1", "that it accessed", kDown)
        .f64("lanes", "1", "of a warp access, mean", kHidden)
        .f64("sectors", "1", "distinct ones of a warp access, mean", kHidden)
        .f64("density", "1", "sectors / lanes * max(1, 32 / size)", kHidden)
        .create();
    for (const auto &[key, row] : rows_) {
      for (const PatternHit &hit : find_patterns(row->graph, workload_.options())) {
        const ReuseNode &node = row->graph.nodes.at(hit.pc);
        const std::string offset = hexadecimal(hit.pc);
        result.row({process(key.source), key.source, short_name(key.name), workload_.text(key.name), key.device, offset,
                    pattern_name(hit.pattern), strength_name(hit.strength), hit.measure, kind_text(node.kind),
                    kMemories[node.memory & 3], node.size, node.in.total(), ratio_of(node.lanes, node.accesses),
                    ratio_of(node.sectors, node.accesses), density(node)});
      }
    }
  }

  void word_heat() {
    Table result =
        table("word_heat", "Heat of words",
              "Sectors of 32 bytes that the blocks of word_heat_blocks touched: thread accesses and distinct "
              "warps of each of their eight words of 4 bytes.");
    result.show_rows(8);
    kernel_columns(result)
        .u64("launch", "1", "its number", kKey | kHidden)
        .u64("block", "1", "linear number", kKey)
        .text("memory", "global, shared or local", kKey)
        .text("sector", "its address", kKey)
        .u64("accesses", "1", "thread accesses to the sector", kDown)
        .u64("warps", "1", "distinct warps of the block that touched it");
    static constexpr std::array kAccessNames = {"accesses_0", "accesses_1", "accesses_2", "accesses_3",
                                                "accesses_4", "accesses_5", "accesses_6", "accesses_7"};
    static constexpr std::array kWarpNames = {"warps_0", "warps_1", "warps_2", "warps_3",
                                              "warps_4", "warps_5", "warps_6", "warps_7"};
    for (const char *const name : kAccessNames) result.u64(name, "1", "thread accesses to this word", kHidden);
    for (const char *const name : kWarpNames) result.u64(name, "1", "distinct warps at this word", kHidden);
    result.text("instructions", "offsets of the first that touched it; ... where there are more", kHidden).create();
    for (const auto &[key, row] : rows_) {
      for (const WarpRow::Sectors &launch : row->sectors) {
        for (const SectorHeat &heat : launch.hottest) {
          std::string pcs;
          for (uint32_t i = 0; i < heat.pc_count; ++i) pcs += (i == 0 ? "" : " ") + hexadecimal(heat.pcs[i]);
          if (heat.has_more_pcs) pcs += " ...";
          const std::string address = hexadecimal(heat.address);
          const auto &a = heat.accesses;
          const auto w = [&](size_t word) { return heat.distinct_warps(word); };
          result.row({process(key.source),
                      key.source,
                      short_name(key.name),
                      workload_.text(key.name),
                      key.device,
                      launch.launch,
                      heat.block,
                      kMemories[heat.memory & 3],
                      address,
                      a[8],
                      w(8),
                      a[0],
                      a[1],
                      a[2],
                      a[3],
                      a[4],
                      a[5],
                      a[6],
                      a[7],
                      w(0),
                      w(1),
                      w(2),
                      w(3),
                      w(4),
                      w(5),
                      w(6),
                      w(7),
                      pcs});
        }
      }
    }
  }

  std::vector<std::pair<KernelKey, const WarpRow *>> rows_;
};

}  // namespace

void publish_warp_tables(const Workload &workload, const Host &host, sonde_session_t *session) {
  WarpTables(workload, host, session).all();
}

}  // namespace sonde::workload
