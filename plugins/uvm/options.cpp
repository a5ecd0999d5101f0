#include "options.h"

namespace sonde::uvm {

const sonde_option_t kOptionSpecs[kOptionCount] = {
    sonde_option_t{"mode", "plan", "make a plan, or show what a run did that applied one (plans carry that word)", "",
                   "plan|applied", SONDE_OPTION_TEXT, 0},
    sonde_option_t{"plan", "plan.yaml", "file to write the plan to, from the current folder; empty: none", "", "",
                   SONDE_OPTION_TEXT, 0},
    sonde_option_t{"overwrite", "false", "also where that file was edited since it was written, or is no plan", "", "",
                   SONDE_OPTION_BOOL, 0},
    sonde_option_t{"calibration", "", "file of the simulator's parameters, as `sonde call uvm fit` prints them", "", "",
                   SONDE_OPTION_TEXT, 0},
    sonde_option_t{"predict", "", "file of a plan to predict beside the one that is made", "", "", SONDE_OPTION_TEXT,
                   0},
    sonde_option_t{"capacity", "0", "memory of the device that the plan may use; 0: all of it less `reserve`", "bytes",
                   "0..", SONDE_OPTION_I64, 0},
    sonde_option_t{"reserve", "512Mi", "device memory that contexts and libraries take (own choice)", "bytes", "0..",
                   SONDE_OPTION_I64, 0},
    sonde_option_t{"level", "auto",
                   "move whole allocations, or the pages that launches touch; auto: what the simulator finds faster",
                   "", "auto|object|tensor", SONDE_OPTION_TEXT, 0},
    sonde_option_t{"least_gain", "0.02", "a plan that saves less of the time is not made (own choice)", "1", "0..1",
                   SONDE_OPTION_F64, 0},
    sonde_option_t{"memory", "auto",
                   "what is taken for managed memory; all: any memory of the device, as if it were managed; auto: all "
                   "where there is no managed memory",
                   "", "auto|managed|all", SONDE_OPTION_TEXT, 0},
    sonde_option_t{"home", "auto",
                   "where pages are at first: the host, or nowhere (never touched); auto: by migrations where the "
                   "capture has any and can be trusted to have all, else the host",
                   "", "auto|host|nowhere", SONDE_OPTION_TEXT, 0},
    sonde_option_t{
        "trusted_migrations", "4096",
        "migrations of a process up to which a capture is trusted to have all (on an H200 CUPTI reported all "
        "of 2,861, and not all of those behind 5,412)",
        "1", "0..1000000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"device", "-1", "device to plan for; -1: the one whose launches touch most", "", "-1..1024",
                   SONDE_OPTION_I64, 0},
    sonde_option_t{"chunk", "32Mi", "greatest piece that moves at once when memory is short (own choice)", "bytes",
                   "65536..", SONDE_OPTION_I64, 0},
    sonde_option_t{"slack", "1.5", "look-ahead beyond what bandwidth and kernel times ask for, a factor (own choice)",
                   "1", "1..100", SONDE_OPTION_F64, 0},
    sonde_option_t{"pin_share", "0.5",
                   "what this share of the launches touches is pinned when memory is short (own choice)", "1", "0..1",
                   SONDE_OPTION_F64, 0},
    sonde_option_t{"ping_pong", "3",
                   "turns between host and device from which a buffer may stay on the host (own choice)", "1",
                   "1..1000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"least_bytes", "256Ki",
                   "smaller ranges are left to the driver: at 32 GB/s their bytes take less than a call costs", "bytes",
                   "0..", SONDE_OPTION_I64, 0},
    sonde_option_t{"most_moves", "20000", "moves of a plan at most", "1", "1..10000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"most_spans", "64", "ranges of one launch in one allocation told apart; more are joined over gaps",
                   "1", "1..1000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"most_launches", "262144", "launches of a process that are kept, at 200 bytes each", "1",
                   "1..1000000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"most_accesses", "1000000", "block accesses up to which the optimum is calculated, at 24 bytes each",
                   "1", "1..1000000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"device_rate", "2e12",
                   "bytes per second of a kernel that was only seen while it faulted (H200, streaming: 2.2e12)",
                   "bytes/s", "1..", SONDE_OPTION_F64, 0},
    sonde_option_t{"rows", "50", "rows of the tables of ranges, launches and moves", "1", "0..1000000",
                   SONDE_OPTION_I64, 0},
};

Options read_options(const Config &config) {
  Options options;
  options.is_applied = config.text("mode") == "applied";
  options.plan = config.text("plan");
  options.overwrite = config.boolean("overwrite");
  options.calibration = config.text("calibration");
  options.predict = config.text("predict");
  options.capacity = static_cast<uint64_t>(config.i64("capacity"));
  options.reserve = static_cast<uint64_t>(config.i64("reserve"));
  options.level = config.text("level");
  options.least_gain = config.f64("least_gain");
  options.most_accesses = static_cast<uint64_t>(config.i64("most_accesses"));
  options.rows = static_cast<uint64_t>(config.i64("rows"));
  const std::string memory = config.text("memory");
  options.profile.memory = memory == "all" ? Memory::kAll : memory == "managed" ? Memory::kManaged : Memory::kAutomatic;
  options.profile.trusted_migrations = static_cast<uint64_t>(config.i64("trusted_migrations"));
  const std::string home = config.text("home");
  options.profile.home = home == "host"      ? HomeRule::kHost
                         : home == "nowhere" ? HomeRule::kNowhere
                                             : HomeRule::kAutomatic;
  const int64_t device = config.i64("device");
  options.profile.device = device < 0 ? kNone : static_cast<uint32_t>(device);
  options.profile.most_spans = static_cast<uint32_t>(config.i64("most_spans"));
  options.profile.most_launches = static_cast<uint64_t>(config.i64("most_launches"));
  options.profile.device_rate = config.f64("device_rate");
  options.planner.chunk_bytes = static_cast<uint64_t>(config.i64("chunk"));
  options.planner.slack = config.f64("slack");
  options.planner.pin_share = config.f64("pin_share");
  options.planner.ping_pong = static_cast<uint32_t>(config.i64("ping_pong"));
  options.planner.least_bytes = static_cast<uint64_t>(config.i64("least_bytes"));
  options.planner.most_moves = static_cast<uint64_t>(config.i64("most_moves"));
  return options;
}

}  // namespace sonde::uvm
