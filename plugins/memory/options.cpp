#include "options.h"

namespace sonde::memory {
namespace {

constexpr const char *kRows = "0..1000000";

sonde_option_t share(const char *name, const char *fallback, const char *help) {
  return {name, fallback, help, "1", "0..1", SONDE_OPTION_F64, 0};
}
sonde_option_t kernels(const char *name, const char *help) {
  return {name, "1", help, "1", "0..1000000000", SONDE_OPTION_F64, 0};
}
sonde_option_t number(const char *name, const char *fallback, const char *help, const char *range,
                      const char *unit = "1") {
  return {name, fallback, help, unit, range, SONDE_OPTION_I64, 0};
}
sonde_option_t choice(const char *name, const char *fallback, const char *help, const char *choices) {
  return {name, fallback, help, "", choices, SONDE_OPTION_TEXT, 0};
}
sonde_option_t truth(const char *name, const char *fallback, const char *help) {
  return {name, fallback, help, "", "", SONDE_OPTION_BOOL, 0};
}

}  // namespace

const sonde_option_t kOptionSpecs[kOptionCount] = {
    kernels("early_kernels",
            "an object is allocated early when so many kernels are launched before its first use; below 1 a share of "
            "all kernels (DrGPUM, default 1)"),
    kernels("late_kernels",
            "an object is freed late when so many kernels are launched after its last use; below 1 a share (DrGPUM, "
            "default 1)"),
    kernels(
        "idle_kernels",
        "an object is idle when so many kernels are launched between two uses; below 1 a share (DrGPUM, default 1)"),
    truth("memory_aware", "false",
          "report early, late and idle objects only where another object was freed or allocated meanwhile (the rule of "
          "msMemScope)"),
    choice("host_uses", "reads",
           "operations of the host that use an object: none (DrGPUM), reads (results that are copied out were needed "
           "until then), all (writes too)",
           "none|reads|all"),
    share(
        "reuse_tolerance", "0",
        "how much two objects may differ in size, of the larger one, and still share memory; 0: equal sizes (DrGPUM)"),
    number("object_bytes", "1", "smaller objects are not judged; an object of 0 bytes holds nothing (own choice)",
           "0..1099511627776", "bytes"),
    truth("judge_segments", "false",
          "judge allocations that a caching allocator cuts tensors from like any other; else only their tensors are"),
    truth("trust_watched", "false",
          "take kernels that were watched, but not as a whole (copies through tensor maps), for having touched only "
          "what was "
          "seen; findings then have half their confidence"),
    share("access_rate", "0.8",
          "an object with a smaller part of its bytes ever accessed is over-allocated (own choice; the published limit "
          "could not be checked)"),
    share("fragmentation", "0.5",
          "and only where 1 - widest unused piece / all unused bytes is at most this, so that it can be cut off (own "
          "choice)"),
    number("over_allocation_bytes", "512",
           "and only where the widest unused piece has so many bytes: caching allocators round sizes up to 512 "
           "(PyTorch, kMinBlockSize)",
           "1..1099511627776", "bytes"),
    {"frequency_cv", "1",
     "an object is accessed unevenly when the coefficient of variation over its touched pages reaches this; at 1 the "
     "spread is as large as the mean (own choice; no limit is published in code)",
     "1", "0..1000000", SONDE_OPTION_F64, 0},
    number("frequency_pages", "2", "fewest touched pages to judge that (two are the least that can differ)",
           "2..1000000000"),
    number("frequency_bins", "1024",
           "parts that the pages of an object are counted in; where it has more pages, several share a part",
           "2..1048576"),
    number("structured_slices", "2", "fewest disjoint slices of an object with structured access (own choice)",
           "2..1000000000"),
    share("structured_share", "0.5", "and the largest slice holds at most this part of the object (own choice)"),
    number("interval_limit", "1024",
           "intervals of touched bytes that are kept of an object; beyond, the narrowest holes count as touched",
           "1..1000000"),
    truth("intervals", "true", "ask for touched bytes (costs most when capturing)"),
    truth("pages", "true", "ask for histograms over pages"),
    share("peak_saving_share", "0.1", "a peak that can be lowered by this part is reported (own choice)"),
    share("unused_reserved_share", "0.3",
          "memory reserved by a caching allocator of which this part is unused when most is reserved is reported (own "
          "choice)"),
    share("forced_growth_share", "0.1",
          "so is memory reserved although enough was free in pieces too small, of all that was reserved (own choice)"),
    number("pack_objects", "8192",
           "largest objects that are packed to see what sharing saves; the others are only counted", "2..65536"),
    number("object_rows", "100", "rows of each table of objects; what is left out is summed up", kRows),
    number("findings_of_rule", "10", "findings of a rule and level, worst first; the tables count all", "1..100000"),
    number("timeline_rows", "256", "most rows of the table fragmentation for each device", "2..1000000"),
    number("reorder_records", "16384", "records held back to put them in order of time", "1..100000000"),
    number("remembered", "16384", "ended objects and launches that late records may still name", "0..100000000"),
    choice("svg", "", "file for a picture of the objects over time", ""),
    choice("html", "", "file for a page with that picture and the findings", ""),
    choice("perfetto", "", "file for a trace of objects and operations, for ui.perfetto.dev or chrome://tracing", ""),
    choice("axis", "time", "what pictures and traces run along: time of the host's calls, or operations",
           "time|operations"),
    number("picture_objects", "60", "objects drawn, those that waste most", "1..10000"),
    number("perfetto_operations", "1000000", "operations written to the trace; the others are counted",
           "0..1000000000"),
};

Options read_options(const Config &config) {
  Options options;
  options.early_kernels.value = config.f64("early_kernels");
  options.late_kernels.value = config.f64("late_kernels");
  options.idle_kernels.value = config.f64("idle_kernels");
  options.memory_aware = config.boolean("memory_aware");
  const std::string uses = config.text("host_uses");
  options.host_uses = uses == "none" ? HostUses::kNone : uses == "all" ? HostUses::kAll : HostUses::kReads;
  options.reuse_tolerance = config.f64("reuse_tolerance");
  options.object_bytes = config.i64("object_bytes");
  options.judge_segments = config.boolean("judge_segments");
  options.trust_watched = config.boolean("trust_watched");
  options.access_rate = config.f64("access_rate");
  options.fragmentation = config.f64("fragmentation");
  options.over_allocation_bytes = config.i64("over_allocation_bytes");
  options.frequency_cv = config.f64("frequency_cv");
  options.frequency_pages = config.i64("frequency_pages");
  options.frequency_bins = config.i64("frequency_bins");
  options.structured_slices = config.i64("structured_slices");
  options.structured_share = config.f64("structured_share");
  options.interval_limit = config.i64("interval_limit");
  options.intervals = config.boolean("intervals");
  options.pages = config.boolean("pages");
  options.peak_saving_share = config.f64("peak_saving_share");
  options.unused_reserved_share = config.f64("unused_reserved_share");
  options.forced_growth_share = config.f64("forced_growth_share");
  options.pack_objects = config.i64("pack_objects");
  options.object_rows = config.i64("object_rows");
  options.findings_of_rule = config.i64("findings_of_rule");
  options.timeline_rows = config.i64("timeline_rows");
  options.reorder_records = config.i64("reorder_records");
  options.remembered = config.i64("remembered");
  options.svg = config.text("svg");
  options.html = config.text("html");
  options.perfetto = config.text("perfetto");
  options.time_axis = config.text("axis") == "time";
  options.picture_objects = config.i64("picture_objects");
  options.perfetto_operations = config.i64("perfetto_operations");
  return options;
}

}  // namespace sonde::memory
