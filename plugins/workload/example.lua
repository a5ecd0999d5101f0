-- Asks the workload analysis for its numbers and publishes a table of its own: kernels up to 80 % of the time.
-- Grant it: scripts: [{path: example.lua, grant: [workload]}]
local workload = sonde.plugin("workload")

local top = sonde.table{
  name = "top_kernels",
  title = "Kernels that make up 80 % of the kernel time",
  help = "From workload.top_kernels: all devices and processes together.",
  columns = {
    {name = "kernel", kind = "text", key = true, help = "name as the runtime gives it"},
    {name = "count", kind = "u64", unit = "1", help = "how often it ran"},
    {name = "total", kind = "i64", unit = "ns", sort = "down", help = "sum of its lengths"},
    {name = "share", kind = "f64", unit = "1", help = "of the time of all kernels"},
  },
}

-- Called after the last event.
function finish()
  local covered = 0.0
  workload.top_kernels(50, function(name, count, total, share)
    if covered < 0.8 then top:add{name, count, total, share} end
    covered = covered + share
  end)
  sonde.finding{
    rule = "example.summary",
    severity = "note",
    verdict = "ok",
    message = string.format("%d kernels ran; device 0 idled for %.0f %% of its span.", workload.kernel_count(),
                            100 * workload.device_idle_share(0)),
    evidence = {
      {name = "kernel_time", unit = "ns", value = workload.total_kernel_time()},
      {name = "peak", unit = "bytes", value = workload.peak_bytes(0)},
    },
  }
end
