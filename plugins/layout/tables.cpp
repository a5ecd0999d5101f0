#include <map>
#include <string>

#include "publish.h"

namespace sonde::layout_lint {
namespace {

constexpr uint32_t kKey = SONDE_COLUMN_KEY;
constexpr uint32_t kHidden = SONDE_COLUMN_HIDDEN;
constexpr uint32_t kDown = SONDE_COLUMN_SORT_DOWN;

void publish_summary(const Lint &lint, const Host &host, sonde_session_t *session) {
  Table table(host, session, kOrigin, "summary", "Layout lint", "What was looked at.");
  table.u64("files", "1", "TTGIR files")
      .u64("operations", "1", "operations in them")
      .u64("sites", "1", "operations that move data: the rows of the table sites")
      .u64("unparsed", "1", "files and encodings that could not be read")
      .u64("unsupported", "1", "sites without a plan; their column reason says why")
      .u64("issues", "1", "findings of the sites")
      .create();
  uint64_t operations = 0, issues = 0;
  for (const FileResult &file : lint.files()) {
    operations += file.operations;
    for (const Site &site : file.sites) issues += site.issues.size();
  }
  table.row({lint.files().size(), operations, lint.sites(), lint.unparsed(), lint.unsupported(), issues});
}

void publish_kinds(const Lint &lint, const Host &host, sonde_session_t *session) {
  Table table(host, session, kOrigin, "operations", "Sites by operation",
              "One row for each kind of operation and plan.");
  table.text("operation", "name in the TTGIR", kKey)
      .text("plan", "how the data moves; empty: the sites have none", kKey)
      .u64("sites", "1", "how many", kDown)
      .u64("in_loops", "1", "of these, within a loop")
      .u64("shared", "bytes", "greatest shared memory of one site")
      .u64("conflicts", "wavefronts", "sum of the wavefronts of one warp that bank conflicts lose")
      .u64("issues", "1", "findings of these sites")
      .create();
  struct Sum {
    uint64_t sites = 0, in_loops = 0, shared = 0, conflicts = 0, issues = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> kinds;
  for (const FileResult &file : lint.files()) {
    for (const Site &site : file.sites) {
      Sum &sum = kinds[{site.operation, site.plan}];
      ++sum.sites;
      sum.in_loops += site.loop_depth > 0 ? 1 : 0;
      sum.shared = std::max(sum.shared, site.shared_bytes.value_or(0));
      sum.conflicts += site.store_conflicts.value_or(0) + site.load_conflicts.value_or(0);
      sum.issues += site.issues.size();
    }
  }
  for (const auto &[key, sum] : kinds) {
    table.row({key.first, key.second, sum.sites, sum.in_loops, sum.shared, sum.conflicts, sum.issues});
  }
}

void publish_sites(const Lint &lint, const Host &host, sonde_session_t *session) {
  Table table(
      host, session, kOrigin, "sites", "Sites",
      "One row for each operation that moves data. Accesses are those of one warp; an empty cell does not apply "
      "or is not known.");
  table.text("path", "TTGIR file", kKey | kHidden)
      .u64("ir_line", "1", "line in it", kKey | kHidden)
      .text("kernel", "function", kHidden)
      .text("file", "source file of the program; of inlined calls the frame in the kernel's own file")
      .u64("line", "1", "line in it, empty when the TTGIR does not say")
      .text("variable", "that the line assigns", kHidden)
      .text("operation", "name in the TTGIR")
      .text("tensor", "shape and element type")
      .text("source", "encoding of the source, as written", kHidden)
      .text("destination", "encoding of the destination, as written", kHidden)
      .text("plan", "how the data moves")
      .text("reason", "why there is no plan", kHidden)
      .text("unjudged", "rules that could not be looked at here, with the reason", kHidden)
      .text("instruction", "that moves it; store, load for conversions through shared memory", kHidden)
      .u64("shared", "bytes", "shared memory of a block that is used")
      .u64("store_conflicts", "wavefronts", "lost to bank conflicts by one warp's stores to shared memory")
      .u64("load_conflicts", "wavefronts", "lost by its loads")
      .u64("vector", "bits", "that a lane moves by one instruction; of conversions by one store")
      .u64("load_vector", "bits", "of conversions: by one load", kHidden)
      .u64("instructions", "1", "of one thread", kHidden)
      .u64("shuffles", "1", "of one thread", kHidden)
      .u64("repetitions", "1", "rounds of store, barrier, load, barrier", kHidden)
      .u64("sectors", "1", "32-byte sectors of a warp's worst request, the fewest that what is proved allows")
      .u64("sectors_most", "1", "the most that it allows", kHidden)
      .f64("efficiency", "1", "different bytes asked for / (32 * sectors)")
      .u64("loop_depth", "1", "loops around it")
      .u64("source_copies", "1", "holders of each element of the source", kHidden)
      .u64("destination_copies", "1", "holders of each element of the destination", kHidden)
      .u64("issues", "1", "findings", kDown)
      .show_rows(40)
      .create();
  for (const FileResult &file : lint.files()) {
    for (const Site &site : file.sites) {
      const std::optional<uint64_t> line = site.line == 0 ? std::nullopt : std::optional<uint64_t>(site.line);
      std::string unjudged;
      for (const Unseen &unseen : site.unseen) {
        unjudged += (unjudged.empty() ? "" : "; ") + unseen.rule + ": " + unseen.reason;
      }
      table.row({site.path,
                 site.ir_line,
                 site.kernel,
                 site.file,
                 line,
                 site.variable,
                 site.operation,
                 site.tensor,
                 site.source,
                 site.destination,
                 site.plan,
                 site.reason,
                 unjudged,
                 site.instruction,
                 site.shared_bytes,
                 site.store_conflicts,
                 site.load_conflicts,
                 site.vector_bits,
                 site.load_vector_bits,
                 site.instructions,
                 site.shuffles,
                 site.repetitions,
                 site.sectors,
                 site.sectors_most,
                 site.efficiency,
                 site.loop_depth,
                 site.source_copies,
                 site.destination_copies,
                 uint64_t{site.issues.size()}});
    }
  }
}

void publish_files(const Lint &lint, const Host &host, sonde_session_t *session) {
  Table table(host, session, kOrigin, "files", "Files", "One row for each TTGIR file.");
  table.text("path", "TTGIR file", kKey)
      .text("target", "what it was compiled for, by its attribute ttg.target")
      .u64("operations", "1", "operations in it")
      .u64("sites", "1", "rows of the table sites")
      .u64("unparsed", "1", "encodings that could not be read; 1 for a file that could not be read")
      .u64("issues", "1", "findings of its sites", kDown)
      .text("error", "why it could not be read, with line and column")
      .create();
  for (const FileResult &file : lint.files()) {
    uint64_t issues = 0;
    for (const Site &site : file.sites) issues += site.issues.size();
    table.row(
        {file.path, file.target, file.operations, uint64_t{file.sites.size()}, file.unparsed, issues, file.error});
  }
}

}  // namespace

void publish_tables(const Lint &lint, const Host &host, sonde_session_t *session) {
  publish_summary(lint, host, session);
  publish_kinds(lint, host, session);
  publish_sites(lint, host, session);
  publish_files(lint, host, session);
}

}  // namespace sonde::layout_lint
