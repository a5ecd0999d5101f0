#include "options.h"

namespace sonde::workload {

const sonde_option_t kOptionSpecs[kOptionCount] = {
    sonde_option_t{"idle_share", "0.5",
                   "a device that idles for this part of its span is reported; the default of Nsight Systems' "
                   "gpu_time_util rule is a use below 50 %",
                   "1", "0..1", SONDE_OPTION_F64, 0},
    sonde_option_t{"idle_span", "1ms", "devices whose span is shorter are not judged idle (own choice)", "ns", "",
                   SONDE_OPTION_TIME, 0},
    sonde_option_t{"launch_gap", "100us",
                   "longest gap that still belongs to a launch-bound phase; Holistic Trace Analysis calls a launch "
                   "delay beyond 100 us an outlier",
                   "ns", "", SONDE_OPTION_TIME, 0},
    sonde_option_t{"launch_bound_kernel_time", "20us",
                   "longest kernel that a launch-bound phase may hold; Holistic Trace Analysis gives 5 to 20 us as "
                   "the host's usual time for a launch",
                   "ns", "", SONDE_OPTION_TIME, 0},
    sonde_option_t{"launch_bound_kernels", "32", "fewest kernels of a launch-bound phase (own choice)", "1",
                   "2..1000000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"launch_bound_idle_share", "0.3", "least idle part of a launch-bound phase (own choice)", "1",
                   "0..1", SONDE_OPTION_F64, 0},
    sonde_option_t{"blocking_copy_share", "0.05",
                   "blocking copies that hold kernels up for this part of a device's span are reported (own choice)",
                   "1", "0..1", SONDE_OPTION_F64, 0},
    sonde_option_t{"tiny_copy_bytes", "4096",
                   "a copy with fewer bytes is tiny: at 32 GB/s (PCIe 5 x16) its bytes take 0.13 us, a fraction of "
                   "what starting it costs",
                   "bytes", "1..1099511627776", SONDE_OPTION_I64, 0},
    sonde_option_t{"tiny_copy_share", "0.5", "part of the host-device copies that must be tiny (own choice)", "1",
                   "0..1", SONDE_OPTION_F64, 0},
    sonde_option_t{"tiny_copies", "100", "fewest tiny copies worth a report (own choice)", "1", "1..1000000000",
                   SONDE_OPTION_I64, 0},
    sonde_option_t{"concurrency_share", "0.05",
                   "a device with several streams whose kernels overlap for less than this part of their busy time "
                   "is reported (own choice)",
                   "1", "0..1", SONDE_OPTION_F64, 0},
    sonde_option_t{"concurrency_streams", "2", "streams with kernels that count as several", "1", "2..1000000",
                   SONDE_OPTION_I64, 0},
    sonde_option_t{"longest_gaps", "10", "rows of the table of gaps for each device", "1", "0..100000",
                   SONDE_OPTION_I64, 0},
    sonde_option_t{"timeline_rows", "256", "most rows of a memory timeline", "1", "2..1000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"exact_values", "1024",
                   "percentiles are exact up to this many values of a row, beyond that within 1/256", "1",
                   "0..100000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"reorder_records", "65536",
                   "records that a device, the calls or the allocations of a process hold back to put them in order "
                   "of time",
                   "1", "1..100000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"join_records", "262144", "launches and kernels remembered for joining each other, a process", "1",
                   "1..100000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"name_limit", "65536", "kernels, and scopes, of a process told apart by name; more share one row",
                   "1", "1..100000000", SONDE_OPTION_I64, 0},
    sonde_option_t{"group_scopes", "true",
                   "scopes whose names differ only in numbers behind the name (\"aten::mm, seq = 7\") share a row", "",
                   "", SONDE_OPTION_BOOL, 0},
};

Options read_options(const Config &config) {
  Options options;
  options.idle_share = config.f64("idle_share");
  options.idle_span_ns = config.time_ns("idle_span");
  options.launch_gap_ns = config.time_ns("launch_gap");
  options.launch_bound_kernel_ns = config.time_ns("launch_bound_kernel_time");
  options.launch_bound_kernels = config.i64("launch_bound_kernels");
  options.launch_bound_idle_share = config.f64("launch_bound_idle_share");
  options.blocking_copy_share = config.f64("blocking_copy_share");
  options.tiny_copy_bytes = config.i64("tiny_copy_bytes");
  options.tiny_copy_share = config.f64("tiny_copy_share");
  options.tiny_copies = config.i64("tiny_copies");
  options.concurrency_share = config.f64("concurrency_share");
  options.concurrency_streams = config.i64("concurrency_streams");
  options.longest_gaps = config.i64("longest_gaps");
  options.timeline_rows = config.i64("timeline_rows");
  options.exact_values = config.i64("exact_values");
  options.reorder_records = config.i64("reorder_records");
  options.join_records = config.i64("join_records");
  options.name_limit = config.i64("name_limit");
  options.group_scopes = config.boolean("group_scopes");
  return options;
}

}  // namespace sonde::workload
