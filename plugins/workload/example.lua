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

  -- Where accesses were collected: traffic of kernels, and the objects that draw most of it.
  local traffic = sonde.table{
    name = "traffic",
    title = "Bytes that kernels asked for",
    help = "From workload.kernel_traffic: launches that were watched.",
    columns = {
      {name = "kernel", kind = "text", key = true, help = "name as the runtime gives it"},
      {name = "launches", kind = "u64", unit = "1", help = "watched ones"},
      {name = "bytes_per_access", kind = "f64", unit = "bytes", help = "of a thread's access, mean"},
    },
  }
  workload.kernel_traffic(10, function(name, launches, accesses, bytes)
    if accesses > 0 then traffic:add{name, launches, bytes / accesses} end
  end)
  workload.hot_objects(1, function(name, address, bytes, accesses)
    sonde.finding{
      rule = "example.hottest",
      severity = "note",
      verdict = "ok",
      message = string.format("The hottest allocation is %s at 0x%x.", name == "" and "unnamed" or name, address),
      evidence = {
        {name = "accesses", unit = "1", value = accesses},
        {name = "working_set", unit = "bytes", value = workload.working_set_bytes(0)},
        {name = "footprint", unit = "bytes", value = workload.footprint_bytes(0)},
      },
    }
  end)
end
